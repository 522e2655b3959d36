"""The trace of a run: one line per event with time, actor, event name and fields.

    12034.512 m1/2   response  #7 JoinGroup id=m1-2041 generation=4 leads

docs/explanation/simulation.md explains every event name.
"""

from collections.abc import Callable
from typing import Final

from kohort.virtual_time.scheduler import Scheduler

EVENTS: Final = {
    "acked": "a producer's batch was acknowledged: partition, base offset, values",
    "assigned": "the partitions a member claims, each with # and the generation that assigned it",
    "call": "a member's listener is called: assigned, revoked or lost partitions",
    "commit": "the application calls commit",
    "committed": "the result of a commit of the application: empty, or its error",
    "down": "the node's process has ended: kill, power, stop or failed",
    "end": "a member's process has ended, and why",
    "error": "poll raises an error in the application",
    "event": "a planned event takes effect: its number, kind, target and amount",
    "faults-end": "from here on no faults are injected",
    "gives-up": "the node stops itself, and why",
    "loaded": "the node has loaded its groups",
    "logs": "a log line of the node or of a consumer",
    "lost": "a request has no response, and why",
    "processed": "an application has processed records: partition, first and last offset",
    "recovered": "the node has truncated a log at start: position, bytes, reason",
    "request": "a member sends a request to the node",
    "response": "the node's response to a member: an error, or the important fields",
    "resumed": "the node's process runs again after a suspension: its duration in ms",
    "start": "a process starts, of a member or of the node",
    "violation": "a rule is broken; the run ends",
}
"""Every event name with its meaning."""


class Trace:
    def __init__(self, scheduler: Scheduler, write: Callable[[str], None] | None) -> None:
        self._scheduler = scheduler
        self._write = write

    @property
    def is_read(self) -> bool:
        return self._write is not None

    def log(self, who: str, event: str, *fields: object) -> None:
        if self._write is None:
            return
        assert event in EVENTS, f"{event} is not in EVENTS"
        at_us = self._scheduler.now
        text = " ".join(map(str, fields))
        line = f"{at_us // 1000:>6}.{at_us % 1000:03} {who:<6} {event:<10} {text}"
        self._write(line.rstrip())
