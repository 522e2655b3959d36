"""Finds Java on this machine, and builds its command line."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.apache.unavailable import Unavailable

OLDEST = 17
"""The oldest version that the Apache Kafka server supports."""

QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""For short-lived programs: the serial collector, and no second compiler."""


@cache
def find_java() -> Path:
    return _find("java")


@cache
def find_javac() -> Path:
    return _find("javac")


def command(
    classpath: Sequence[Path],
    name: str,
    *arguments: str,
    heap_mb: int = 256,
    options: Sequence[str] = QUICK,
) -> list[str]:
    """The command that starts this class."""
    paths = os.pathsep.join(f"{path}" for path in classpath)
    return [f"{find_java()}", f"-Xmx{heap_mb}m", *options, "-cp", paths, name, *arguments]


def _find(name: str) -> Path:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{Path(home) / 'bin'}" if home else None)
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise Unavailable(f"there is no {name} {where}: install a JDK {OLDEST} or newer")
    version = _version(Path(found))
    if version < OLDEST:
        raise Unavailable(f"{found} is version {version}; Kafka needs at least {OLDEST}")
    return Path(found)


def _version(program: Path) -> int:
    asked = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    # `openjdk version "17.0.15"`, `javac 17.0.15`, and before Java 9 `version "1.8.0_402"`.
    found = re.search(r"(?:version \"|javac )(?:1\.)?(\d+)", asked.stderr + asked.stdout)
    if asked.returncode != 0 or found is None:
        raise Unavailable(f"{program} does not run: {(asked.stderr or asked.stdout).strip()}")
    return int(found[1])
