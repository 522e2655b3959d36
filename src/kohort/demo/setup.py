"""Starts all parts of the demo. An exit stack stops them in reverse order."""

import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kohort.console.server import Console
from kohort.demo.event_bus import EventBus
from kohort.demo.event_reader import GroupEventReader
from kohort.demo.processes import ConsumerProcesses
from kohort.demo.producer import OrderProducer, create_orders_topic
from kohort.demo.schedule import report_times
from kohort.demo.threads import first_line, start_thread
from kohort.pipeline.forensics.options import FORENSICS_GROUP
from kohort.testing.node import Node
from kohort.types import value

if TYPE_CHECKING:
    from kohort.demo.spark_job import SparkJob

DATA: Final = "data"
LOGS: Final = "logs"

_CANCEL_S: Final = 0.2


@value
class DemoOptions:
    seed: int
    minutes: float | None
    """None: run until Ctrl-C."""
    directory: Path
    """Directory of all output."""
    has_spark: bool


class DemoParts:
    def __init__(
        self, options: DemoOptions, console: Console, bus: EventBus, stack: contextlib.ExitStack
    ) -> None:
        # The console has bound its port already, and must release it if another part fails.
        stack.callback(console.stop)
        logs = options.directory / LOGS
        stack.enter_context(_log_to(logs))
        self._bus = bus
        self.node = Node(data=options.directory / DATA, like_kafka=True).start()
        stack.callback(self._stop_node)
        servers = self.node.bootstrap_servers
        create_orders_topic(servers)
        console.bootstrap = servers
        console.start()
        # Once more, so that the console stops before the node.
        stack.callback(console.stop)
        self.processes = ConsumerProcesses(servers, logs, bus.publish_failure)
        stack.callback(self.processes.kill)
        self.spark_job: SparkJob | None = None
        if options.has_spark:
            self.spark_job = _start_spark_job(servers, options.directory, bus)
            stack.callback(self.spark_job.close)
        self.event_reader = GroupEventReader(
            servers,
            exclude=frozenset({FORENSICS_GROUP}),
            publish=bus.publish,
            on_failure=bus.publish_failure,
        )
        stack.callback(self.event_reader.close)
        self.producer = OrderProducer(servers, options.seed, bus.publish_failure)
        stack.callback(self.producer.close)
        self.reports: PeriodicReports | None = None
        if self.spark_job is not None:
            self.reports = PeriodicReports(options.minutes, self.spark_job, bus)
            stack.callback(self.reports.close)

    def _stop_node(self) -> None:
        is_reported = self.node.failure is not None
        try:
            self.node.stop()
        # `stop` raises the error that the node failed with.
        except Exception as error:
            if not is_reported:
                self._bus.publish_failure("node", first_line(error))


def _start_spark_job(bootstrap_servers: str, directory: Path, bus: EventBus) -> "SparkJob":
    # Spark's packages are an extra, which a demo without Spark does not need.
    from kohort.demo.spark_job import SparkJob  # noqa: PLC0415

    return SparkJob(
        bootstrap_servers, directory, publish=bus.publish, on_failure=bus.publish_failure
    )


class PeriodicReports:
    """Writes reports while the schedule runs."""

    def __init__(self, minutes: float | None, spark_job: "SparkJob", bus: EventBus) -> None:
        self._minutes = minutes
        self._spark_job = spark_job
        self._bus = bus
        self._closing = threading.Event()
        self._thread = start_thread("forensics", self._run, bus.publish_failure)

    def close(self) -> None:
        """Cancel a running report. The final report contains more."""
        self._closing.set()
        while self._thread.is_alive():
            self._spark_job.cancel_jobs()
            self._thread.join(_CANCEL_S)

    def _run(self) -> None:
        for at_ms in report_times(self._minutes):
            left_s = at_ms / 1_000 - self._bus.elapsed_s
            if self._closing.wait(max(0.0, left_s)):
                return
            try:
                self._spark_job.write_report(self._closing)
            except Exception:
                # Spark raises many kinds of errors for a cancelled job.
                if not self._closing.is_set():
                    raise


@contextlib.contextmanager
def _log_to(directory: Path) -> Iterator[None]:
    """Write the log of the node and of our clients to a file, not to the terminal."""
    directory.mkdir(parents=True, exist_ok=True)
    logger = logging.getLogger("kohort")
    handler = logging.FileHandler(directory / "kohort.txt", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
        handler.close()
