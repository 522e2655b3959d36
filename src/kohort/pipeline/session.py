"""Start a Spark session for one command, without Spark's log.

Java, the master and the Python of the workers are checked first, so that a mistake is reported in
one sentence and not as a stack trace.
"""

import importlib.util
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.worker_python import check_session_python, check_worker_python, is_local
from kohort.types import value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN: Final = 17
"""The oldest Java that Spark 4 supports."""

_REQUIRED: Final = ("pyspark", "pandas", "pyarrow", "numba")
_MASTERS: Final = re.compile(
    r"local(\[(\d+|\*)(\s*,\s*\d+)?\])?|local-cluster\[[\d\s,]+\]|spark://\S+:\d+\S*|yarn|k8s://\S+"
)
_JAVA_SECONDS: Final = 60
_MASTER_SECONDS: Final = 5
_LOG_TAIL: Final = 20_000


class SparkUnavailable(PipelineError):
    """Spark cannot start: Java or a Python package is missing."""


class BadMaster(PipelineError, ValueError):
    """A master URL that is malformed, or that does not accept connections."""


@value
class SessionOptions:
    app_name: str
    master: str = "local[*]"
    memory: str | None = None
    """Driver memory in Spark's notation, as in 2g. None uses Spark's own configuration."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark; they override ours."""
    is_verbose: bool = False
    """Show Spark's log on stderr."""


@contextmanager
def open_session(options: SessionOptions) -> "Iterator[SparkSession]":
    """The active session of this process, or a new one that stops with the context."""
    check_spark()
    check_master(options.master)
    from pyspark.sql import SparkSession  # noqa: PLC0415  # check_spark reports a missing PySpark

    running = SparkSession.getActiveSession()
    if running is not None:
        check_session_python(running)
        yield running
        return
    # Workers run the driver's Python, unless the user chose another.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    check_worker_python(os.environ["PYSPARK_PYTHON"], options.master)
    check_java()
    check_master_reachable(options.master)
    session = _start(options)
    try:
        yield session
    finally:
        session.stop()


def check_spark() -> None:
    missing = [name for name in _REQUIRED if importlib.util.find_spec(name) is None]
    if missing:
        raise SparkUnavailable(
            f"{', '.join(missing)} cannot be imported: install Kohort with its extra `spark`, "
            "as in pip install 'kohort[spark]'"
        )


# Java


def check_java() -> None:
    java = find_java()
    if java is None:
        raise SparkUnavailable(
            f"Spark needs Java {JAVA_MIN} or newer, and no java was found: "
            "install it, or set JAVA_HOME"
        )
    found = read_java_version(_run_java_version(java))
    if found is None or found < JAVA_MIN:
        raise SparkUnavailable(
            f"Spark needs Java {JAVA_MIN} or newer, and {java} is "
            f"{'no Java' if found is None else f'Java {found}'}: "
            "install a newer one, or set JAVA_HOME"
        )


def find_java() -> str | None:
    """The Java that Spark will start."""
    home = os.environ.get("JAVA_HOME")
    return f"{Path(home) / 'bin' / 'java'}" if home else shutil.which("java")


def _run_java_version(java: str) -> str:
    try:
        finished = subprocess.run(  # noqa: S603  # the Java that Spark is about to start
            [java, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return finished.stderr + finished.stdout


def read_java_version(text: str) -> int | None:
    """The major version: 17, and 8 for the old form 1.8.0_292."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


# The master


def check_master(master: str) -> None:
    if not _MASTERS.fullmatch(master):
        raise BadMaster(
            f"{master!r} is not a Spark master: use local[*], local[2], spark://HOST:PORT, yarn "
            "or k8s://ADDRESS"
        )


def check_master_reachable(master: str) -> None:
    """Spark itself retries for a minute and then prints a stack trace."""
    found = re.match(r"spark://(.+)", master)
    if found is None:
        return
    reasons = []
    for address in found[1].split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), _MASTER_SECONDS):
                return
        except (OSError, ValueError) as error:
            reasons.append(f"{address}: {error}")
    raise BadMaster(f"{master} cannot be reached ({'; '.join(reasons)}): is the master running?")


# Start


def _start(options: SessionOptions) -> "SparkSession":
    from pyspark import SparkContext  # noqa: PLC0415  # as above
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if not options.is_verbose:
        # py4j logs every Java error, which is raised as an exception as well.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
    conf = _configure(options)
    gateway = _launch(conf, is_verbose=options.is_verbose)
    context = SparkContext(conf=conf, gateway=gateway)
    return SparkSession(context)


def _configure(options: SessionOptions) -> Any:
    from pyspark import SparkConf  # noqa: PLC0415  # as above

    settings = {
        "spark.master": options.master,
        "spark.app.name": options.app_name,
        "spark.log.level": "WARN" if options.is_verbose else "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # All Parquet readers understand this timestamp; the default INT96 is Spark's own.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Workers run on the same machine: a tenth less time than over TCP.
        "spark.python.unix.domain.socket.enabled": "true",
    }
    if is_local(options.master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if options.memory is not None:
        settings["spark.driver.memory"] = options.memory
    return SparkConf().setAll(list((settings | dict(options.settings)).items()))


_JVMS: Final[list[Any]] = []
"""The JVM of this process. It outlives a session, and the next session must use it."""


def _launch(conf: Any, *, is_verbose: bool) -> Any:
    """Start the JVM. Ctrl-C does not reach it; it exits with this process."""
    from pyspark import java_gateway  # noqa: PLC0415  # as above
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415

    if not _JVMS:
        # The JVM prints warnings before it reads its log settings, so both streams are redirected.
        with tempfile.TemporaryFile() as log:
            streams = {} if is_verbose else {"stdout": log, "stderr": log}
            launch: Any = java_gateway.launch_gateway
            try:
                _JVMS.append(launch(conf, popen_kwargs=streams))
            except PySparkRuntimeError as error:
                raise SparkUnavailable(
                    f"Spark did not start: {_find_reason(log) or error}"
                ) from None
    return _JVMS[0]


def _find_reason(log: IO[bytes]) -> str:
    """The first line of a JVM's output that looks like an error."""
    log.seek(0)
    lines = log.read(_LOG_TAIL).decode("utf-8", "replace").splitlines()
    errors = [line.strip() for line in lines if re.search(r"(?i)error|exception|fail|not", line)]
    return (errors or lines or [""])[0]
