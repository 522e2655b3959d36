"""A quiet Spark for one command: its Java looked for, its log out of the way, its workers ours.

What is wrong with Java or the master is told in one sentence, before or instead of a stack trace.
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
from kohort.types import value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN: Final = 17
"""What Spark 4 asks for."""

_NEEDED: Final = ("pyspark", "pandas", "pyarrow", "numba")
_MASTERS: Final = re.compile(
    r"local(\[(\d+|\*)(\s*,\s*\d+)?\])?|local-cluster\[[\d\s,]+\]|spark://\S+:\d+\S*|yarn|k8s://\S+"
)
_JAVA_SECONDS: Final = 60
_MASTER_SECONDS: Final = 5
_LOG_TAIL: Final = 20_000


class NoSpark(PipelineError):
    """Spark cannot be started here; says what is missing."""


class BadMaster(PipelineError, ValueError):
    """A master that is none, or that nobody answers for."""


@value
class SessionWish:
    app_name: str
    master: str = "local[*]"
    memory: str | None = None
    """Of the driver, as Spark writes it: 2g. Without it, what Spark's own configuration says."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of Spark; they win over ours."""
    is_verbose: bool = False
    """Whether Spark may write its log to our error stream."""


@contextmanager
def open_session(wish: SessionWish) -> "Iterator[SparkSession]":
    """The session that runs in this process, or else a new one, which ends with the context."""
    check_spark()
    check_master(wish.master)
    from pyspark.sql import SparkSession  # noqa: PLC0415  # who has no Spark is told so above

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    check_java()
    reach_master(wish.master)
    session = _start(wish)
    try:
        yield session
    finally:
        session.stop()


def check_spark() -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise NoSpark(
            f"{', '.join(missing)} cannot be found: install Kohort with its extra named spark, "
            "as in pip install 'kohort[spark]'"
        )


# Java


def check_java() -> None:
    java = find_java()
    if java is None:
        raise NoSpark(
            f"Spark needs Java {JAVA_MIN} or newer, and there is none: "
            "install one, or let JAVA_HOME say where it is"
        )
    found = read_java_version(_ask_version(java))
    if found is None or found < JAVA_MIN:
        raise NoSpark(
            f"Spark needs Java {JAVA_MIN} or newer, and {java} is "
            f"{'no Java' if found is None else f'Java {found}'}: "
            "install one, or let JAVA_HOME say where it is"
        )


def find_java() -> str | None:
    """Where Spark will look for it."""
    home = os.environ.get("JAVA_HOME")
    return f"{Path(home) / 'bin' / 'java'}" if home else shutil.which("java")


def _ask_version(java: str) -> str:
    try:
        finished = subprocess.run(  # noqa: S603  # the Java that Spark is about to start
            [java, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return finished.stderr + finished.stdout


def read_java_version(text: str) -> int | None:
    """The number that people mean: 8 where Java calls itself 1.8.0_292."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


# The master


def check_master(master: str) -> None:
    if not _MASTERS.fullmatch(master):
        raise BadMaster(
            f"{master!r} is no master of Spark's: local[*], local[2], spark://HOST:PORT, yarn "
            "and k8s://ADDRESS are"
        )


def reach_master(master: str) -> None:
    """Spark itself would try for a minute, and end in a stack trace."""
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
    raise BadMaster(f"nobody answers at {master} ({'; '.join(reasons)}): is that master running?")


def is_local(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


# Starting


def _start(wish: SessionWish) -> "SparkSession":
    from pyspark import SparkContext  # noqa: PLC0415  # as above
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # Workers are to be this Python, whatever else is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if not wish.is_verbose:
        # Its bridge to Java tells of every error that is then raised as well.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
    conf = _configure(wish)
    gateway = _launch(conf, is_verbose=wish.is_verbose)
    context = SparkContext(conf=conf, gateway=gateway)
    return SparkSession(context)


def _configure(wish: SessionWish) -> Any:
    from pyspark import SparkConf  # noqa: PLC0415  # as above

    settings = {
        "spark.master": wish.master,
        "spark.app.name": wish.app_name,
        "spark.log.level": "WARN" if wish.is_verbose else "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # A moment in UTC to whoever reads the files, not twelve bytes that only Spark explains.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Rows come from Python workers on the same machine: a tenth less time than over TCP.
        "spark.python.unix.domain.socket.enabled": "true",
    }
    if is_local(wish.master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if wish.memory is not None:
        settings["spark.driver.memory"] = wish.memory
    return SparkConf().setAll(list((settings | dict(wish.settings)).items()))


_JVMS: Final[list[Any]] = []
"""The JVM of this process: it outlives a session, and the next one has to use it."""


def _launch(conf: Any, *, is_verbose: bool) -> Any:
    """Start the JVM; Ctrl-C does not reach it, and it ends when this process does."""
    from pyspark import java_gateway  # noqa: PLC0415  # as above
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415

    if not _JVMS:
        # The JVM warns before any setting of its log is read: so its whole stream is turned away.
        with tempfile.TemporaryFile() as log:
            streams = {} if is_verbose else {"stdout": log, "stderr": log}
            launch: Any = java_gateway.launch_gateway
            try:
                _JVMS.append(launch(conf, popen_kwargs=streams))
            except PySparkRuntimeError as error:
                raise NoSpark(f"Spark did not start: {_last_words(log) or error}") from None
    return _JVMS[0]


def _last_words(log: IO[bytes]) -> str:
    """Of a JVM that died: the first line that says what was wrong."""
    log.seek(0)
    lines = log.read(_LOG_TAIL).decode("utf-8", "replace").splitlines()
    telling = [line.strip() for line in lines if re.search(r"(?i)error|exception|fail|not", line)]
    return (telling or lines or [""])[0]
