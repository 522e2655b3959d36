"""A standalone Spark cluster on this machine: a master and two worker processes."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.pipeline.spark_settings import JAVA
from tests.wait import wait_until

SPARK_HOME = Path(pyspark.__file__).parent

SMALL = {"spark.executor.memory": "512m", "spark.cores.max": "2"}
"""Session settings for this cluster."""


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """Yields the URL of the master."""
    with ExitStack() as stack:
        arguments = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        name = "org.apache.spark.deploy.master.Master"
        log = stack.enter_context(_spark_process(directory / "master", name, *arguments))
        url = _find_in(log, r"(spark://127\.0\.0\.1:\d+)")
        for home in (directory / "one", directory / "two"):
            name = "org.apache.spark.deploy.worker.Worker"
            resources = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
            rest = ("--webui-port", "0", "--work-dir", str(home / "work"))
            log = stack.enter_context(_spark_process(home, name, *resources, *rest, url))
            _find_in(log, r"(Successfully registered)")
        yield url


@contextmanager
def _spark_process(directory: Path, *arguments: str) -> Iterator[Path]:
    """Start a master or a worker in its own directory; yields the path of its log."""
    directory.mkdir(parents=True)
    log = directory / "log"
    command = [str(SPARK_HOME / "bin" / "spark-class"), *arguments]
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
