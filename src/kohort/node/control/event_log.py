"""Reads the events of one group from the log of `__kohort_events`, inside the node."""

from collections import deque
from typing import Final

from kohort.events.internal_topics import EVENTS_PARTITION
from kohort.events.parser import EventReader
from kohort.events.schema import Event
from kohort.log.partition import PartitionLog
from kohort.node.topics import Topics
from kohort.types import GroupId, Offset
from kohort.wire.batch import iter_records, split

_CHUNK_BYTES: Final = 64 * 1024

_SCANNED_MAX: Final = 10_000
"""Records that one call looks back over; bounds how long other requests wait."""


class GroupEventLog:
    """The events of a group, each once: `read_new` returns those since the last call."""

    def __init__(self, topics: Topics, group_id: GroupId, *, is_past_included: bool) -> None:
        """With `is_past_included` it begins with the recent past, else with the next event."""
        self._topics = topics
        self._group_id = group_id
        self._reader = EventReader()
        log = self._find_log()
        self._next = Offset(0) if log is None else log.end_offset
        if is_past_included:
            self._next = Offset(max(0, self._next - _SCANNED_MAX))

    def read_new(self) -> list[Event]:
        log = self._find_log()
        if log is None or log.end_offset == self._next:
            return []
        # The topic may have been deleted and created again meanwhile.
        first = self._next if self._next < log.end_offset else log.start_offset
        self._next = log.end_offset
        return self._read(log, first)

    def _find_log(self) -> PartitionLog | None:
        return self._topics.catalog.partition(EVENTS_PARTITION.topic, EVENTS_PARTITION.partition)

    def _read(self, log: PartitionLog, first: Offset) -> list[Event]:
        key, events = self._group_id.encode(), list[Event]()
        for chunk in log.batches(first, _CHUNK_BYTES):
            for position, _ in split(chunk):
                for record in iter_records(chunk, position):
                    # An event of several groups has no key.
                    if record.offset < first or record.key not in (key, None):
                        continue
                    event = self._reader.read(record.value)
                    if event is not None and self._group_id in event.group_ids:
                        events.append(event)
        return events


def read_recent_events(topics: Topics, group_id: GroupId, count: int) -> list[Event]:
    """The last events of the group, the newest last."""
    log = GroupEventLog(topics, group_id, is_past_included=True)
    return list(deque(log.read_new(), maxlen=count))
