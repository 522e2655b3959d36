"""A Spark cluster of its own on this machine: a master and two workers, each a process."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.pipeline.quick import JAVA
from tests.waiting import wait_until

SPARK_HOME = Path(pyspark.__file__).parent

SMALL = {"spark.executor.memory": "512m", "spark.cores.max": "2"}
"""Settings for a session on it."""


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """A master and two workers; its address."""
    with ExitStack() as stack:
        words = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        name = "org.apache.spark.deploy.master.Master"
        log = stack.enter_context(_spark_process(directory / "master", name, *words))
        url = _find_in(log, r"(spark://127\.0\.0\.1:\d+)")
        for place in (directory / "one", directory / "two"):
            name = "org.apache.spark.deploy.worker.Worker"
            share = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
            rest = ("--webui-port", "0", "--work-dir", str(place / "work"))
            log = stack.enter_context(_spark_process(place, name, *share, *rest, url))
            _find_in(log, r"(Successfully registered)")
        yield url


@contextmanager
def _spark_process(directory: Path, *words: str) -> Iterator[Path]:
    """A master or a worker, in a directory of its own; the path of its log."""
    directory.mkdir(parents=True)
    log = directory / "log"
    command = [str(SPARK_HOME / "bin" / "spark-class"), *words]
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=directory, env=environment, stdout=output, stderr=output
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(30)


def _find_in(log: Path, pattern: str) -> str:
    def look() -> str:
        found = re.search(pattern, log.read_text("utf-8", "replace"))
        return found[1] if found else ""

    return wait_until(look, 90, f"{pattern} in {log.name}")
