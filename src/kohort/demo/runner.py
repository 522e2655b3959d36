"""Runs the demo: starts all parts, follows the schedule and shuts down, in one thread.

What happens is returned as events. If a part fails, the failure is reported and the other parts
continue to the end. Without the node the demo ends.
"""

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Final

from kohort.client.consumer import Consumer
from kohort.console.server import Console
from kohort.demo.console_port import FORENSICS
from kohort.demo.demo_events import (
    ActionTaken,
    DemoStarted,
    DemoStopping,
    DemoSummary,
    OutputPath,
    PartSkipped,
    TimedEvent,
)
from kohort.demo.event_bus import EventBus
from kohort.demo.schedule import choose_roles, generate_schedule
from kohort.demo.services import ORDERS, PARTITIONS, SERVICES
from kohort.demo.setup import DATA, LOGS, DemoOptions, DemoParts
from kohort.demo.threads import first_line
from kohort.types import GroupId, Millis, Partition, TopicPartition

if TYPE_CHECKING:
    from kohort.demo.spark_job import SparkJob

_API_TIMEOUT_MS: Final = 5_000
_WAIT_S: Final = 0.2
_CATCH_UP_S: Final = 5.0


class StopSignals:
    """How the caller stops a demo."""

    def __init__(self) -> None:
        self.cleanly = threading.Event()
        """All consumers leave, and the report is written."""
        self.immediately = threading.Event()


def run_demo(options: DemoOptions, console: Console, stop: StopSignals) -> Iterator[TimedEvent]:
    """Yield all events. A DemoSummary comes last, unless the demo is stopped immediately.

    The console must be bound and not started. It stops with the demo.
    """
    run = _DemoRun(options, console, stop)
    threading.Thread(target=run.run, name="demo", daemon=True).start()
    try:
        while not stop.immediately.is_set():
            with contextlib.suppress(Empty):
                event = run.bus.queue.get(timeout=_WAIT_S)
                if event is None:
                    return
                yield event
    finally:
        run.kill()


class _DemoRun:
    def __init__(self, options: DemoOptions, console: Console, stop: StopSignals) -> None:
        self.bus = EventBus()
        self._options = options
        self._console = console
        self._stop = stop
        self._parts: DemoParts | None = None
        self._lag: dict[GroupId, int] = {}

    def run(self) -> None:
        try:
            with contextlib.ExitStack() as stack:
                self._run_parts(stack)
        # By now the exit stack has stopped all parts.
        except Exception as error:
            self.bus.publish_failure("demo", first_line(error))
        finally:
            self.bus.publish(self._summarize())
            self.bus.close()

    def kill(self) -> None:
        """Kill the processes that would outlive this one. After a clean end there are none."""
        if self._parts is not None:
            self._parts.processes.kill()

    def _run_parts(self, stack: contextlib.ExitStack) -> None:
        parts = self._parts = DemoParts(self._options, self._console, self.bus, stack)
        self.bus.restart_clock()
        self.bus.publish(
            DemoStarted(
                console_url=self._console.url,
                token=self._console.token,
                bootstrap_servers=parts.node.bootstrap_servers,
                seed=self._options.seed,
                roles=choose_roles(self._options.seed),
            )
        )
        why = self._follow_schedule(parts)
        self.bus.publish(DemoStopping(why=why))
        self._shut_down(parts)

    def _follow_schedule(self, parts: DemoParts) -> str:
        """Execute all actions. Return why the demo ends."""
        for action in generate_schedule(self._options.seed, self._options.minutes):
            why = self._wait_until(action.at_ms, parts)
            if why is not None:
                return why
            parts.processes.execute(action)
            self.bus.publish(ActionTaken(action=action))
        assert self._options.minutes is not None, "a schedule without a length is endless"
        end_ms = Millis(int(self._options.minutes * 60_000))
        return self._wait_until(end_ms, parts) or "the time is over"

    def _wait_until(self, at_ms: Millis, parts: DemoParts) -> str | None:
        """Return None at that time, or earlier the reason to end."""
        while (left_s := at_ms / 1_000 - self.bus.elapsed_s) > 0:
            if self._stop.cleanly.wait(min(left_s, _WAIT_S)):
                return "stop requested"
            if parts.node.failure is not None:
                self.bus.publish_failure("node", first_line(parts.node.failure))
                return "the node failed"
        return None

    def _shut_down(self, parts: DemoParts) -> None:
        """Stop the parts that still need the node. The exit stack stops the node."""
        parts.producer.close()
        if parts.node.failure is None:
            groups = [service.group_id for service in SERVICES]
            self._lag = await_commits(parts.node.bootstrap_servers, groups, _CATCH_UP_S)
        parts.processes.close()
        if parts.reports is not None:
            parts.reports.close()
        if parts.spark_job is not None:
            self._finish_spark_job(parts, parts.spark_job)
        parts.event_reader.close()

    def _finish_spark_job(self, parts: DemoParts, spark_job: "SparkJob") -> None:
        if parts.node.failure is not None:
            self.bus.publish(PartSkipped(what="the final report", why="the node failed"))
            return
        spark_job.finish_ingest(parts.producer.delivered)
        spark_job.write_report()

    def _summarize(self) -> DemoSummary:
        parts, counts = self._parts, self.bus.counts
        spark_job = None if parts is None else parts.spark_job
        return DemoSummary(
            seconds=self.bus.elapsed_s,
            produced=0 if parts is None else parts.producer.delivered,
            consumed={} if parts is None else parts.processes.consumed(),
            lag=self._lag,
            ingested=None if spark_job is None else spark_job.progress.rows,
            bad=None if spark_job is None else spark_job.progress.bad,
            triggers=counts.triggers,
            returned=counts.returned,
            findings=counts.findings,
            paths=tuple(_existing_paths(self._options.directory)),
            failures=counts.failures,
        )


def _existing_paths(directory: Path) -> Iterator[OutputPath]:
    for what, name in (
        ("report", "report.html"),
        ("tables", FORENSICS),
        ("orders", "orders"),
        ("node's data", DATA),
        ("logs", LOGS),
    ):
        if (directory / name).exists():
            yield OutputPath(what=what, path=str(directory / name))


# Lag


def await_commits(
    bootstrap_servers: str, group_ids: Iterable[GroupId], timeout_s: float
) -> dict[GroupId, int]:
    """Return the lag of each group as soon as all are 0, or after the timeout."""
    deadline = time.monotonic() + timeout_s
    lags = {}
    for group_id in group_ids:
        with Consumer(
            bootstrap_servers=bootstrap_servers,
            group_id=group_id,
            client_id="lag-reader",
            default_api_timeout_ms=_API_TIMEOUT_MS,
        ) as consumer:
            lags[group_id] = _read_lag(consumer)
            while lags[group_id] and time.monotonic() < deadline:
                time.sleep(_WAIT_S)
                lags[group_id] = _read_lag(consumer)
    return lags


def _read_lag(consumer: Consumer) -> int:
    partitions = [TopicPartition(ORDERS, Partition(number)) for number in range(PARTITIONS)]
    ends, committed = consumer.end_offsets(partitions), consumer.committed(partitions)
    return sum(
        end - (position.offset if (position := committed[each]) is not None else 0)
        for each, end in ends.items()
    )
