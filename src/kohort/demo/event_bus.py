"""Collects the events of all parts in one queue, with their time, and counts them."""

import threading
import time
from collections import Counter
from queue import SimpleQueue

from kohort.demo.demo_events import (
    DemoEvent,
    GroupRebalanced,
    PartFailed,
    ReportFinding,
    ReportWritten,
    StaticMemberReturned,
    TimedEvent,
)
from kohort.types import GroupId, Millis


class EventCounts:
    """Counts that the summary shows."""

    def __init__(self) -> None:
        self._triggers: dict[str, Counter[GroupId]] = {}
        self.returned = 0
        self.findings: tuple[ReportFinding, ...] = ()
        """Findings of the last report."""
        self.failures: tuple[PartFailed, ...] = ()

    def add(self, event: DemoEvent) -> None:
        match event:
            case GroupRebalanced():
                self._triggers.setdefault(event.trigger, Counter())[event.group_id] += 1
            case StaticMemberReturned():
                self.returned += 1
            case ReportWritten():
                self.findings = event.findings
            case PartFailed():
                self.failures += (event,)
            case _:
                pass

    @property
    def triggers(self) -> dict[str, dict[GroupId, int]]:
        """Number of rebalances by trigger and group, most frequent trigger first."""
        ranked = sorted(self._triggers.items(), key=lambda item: (-item[1].total(), item[0]))
        return {trigger: dict(sorted(counts.items())) for trigger, counts in ranked}


class EventBus:
    """Any thread publishes; the runner reads the queue."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[TimedEvent | None] = SimpleQueue()
        """None marks the end."""
        self.counts = EventCounts()
        self._lock = threading.Lock()
        self._started_at = time.monotonic()

    def restart_clock(self) -> None:
        self._started_at = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._started_at

    def publish(self, event: DemoEvent) -> None:
        with self._lock:
            self.counts.add(event)
            self.queue.put(TimedEvent(at_ms=Millis(int(self.elapsed_s * 1_000)), event=event))

    def publish_failure(self, part: str, why: str) -> None:
        self.publish(PartFailed(part=part, why=why))

    def close(self) -> None:
        self.queue.put(None)
