"""Describes the machine and the versions: cores, memory, kernel. No names, no places."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from tests.apache import java
from tests.apache.jars import VERSION as KAFKA_VERSION
from tests.apache.unavailable import Unavailable


def describe_machine() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": f"{len(os.sched_getaffinity(0))} of {_processor()}",
        "memory": f"{memory / 2**30:.0f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
    }


def describe_versions() -> dict[str, str]:
    return {
        "Kohort": version("kohort"),
        "Apache Kafka": KAFKA_VERSION,
        "Python": platform.python_version(),
        "Java": _java(),
    }


def _processor() -> str:
    told = Path("/proc/cpuinfo").read_text("utf-8")
    found = re.search(r"^model name\s*: (.*)$", told, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _java() -> str:
    try:
        program = java.find_java()
    except Unavailable:
        return "none"
    asked = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "([^"]+)"', asked.stderr)
    return found[1] if found else "unknown"
