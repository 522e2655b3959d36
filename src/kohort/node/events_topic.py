"""Writes the coordinator's events to the topic `__kohort_events` as JSON.

One record per event, keyed by group id. An event that is too large for one record is split into
parts. The fields are those of kohort.events.schema. A lost event never affects a group.

Events of one event-loop iteration are appended as one batch, after the responses that need no sync
are sent and before the next read.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, get_origin

from kohort.coordinator.events import (
    AppendFailed,
    CommitRefused,
    GroupDeleted,
    GroupEvent,
    InstanceReplaced,
    JoinPhaseExtended,
    MemberGone,
    MemberIdIssued,
    MemberInfo,
    MemberJoined,
    MemberRemoval,
    OffsetsExpired,
    PendingExpired,
    RebalanceEnded,
    RebalanceParticipant,
    RebalanceStarted,
    StateChanged,
)
from kohort.events.internal_topics import KOHORT_EVENTS
from kohort.log.errors import RequestRejected, StorageError
from kohort.node import log_events
from kohort.node.config import BrokerConfig
from kohort.node.fetch_purgatory import FetchPurgatory
from kohort.node.topics import Topics
from kohort.types import Millis, Partition, Topic
from kohort.wire.batch import NewBatch, NewRecord, encode
from kohort.wire.batch_header import HEADER_BYTES
from kohort.wire.consumer_protocol import decode_assignment
from kohort.wire.errors import MalformedMessage

EVENT_NAMES: Final[Mapping[type[GroupEvent], str]] = {
    RebalanceStarted: "rebalance-started",
    RebalanceEnded: "rebalance-ended",
    StateChanged: "state-changed",
    MemberIdIssued: "member-id-issued",
    MemberJoined: "member-joined",
    MemberGone: "member-gone",
    InstanceReplaced: "instance-replaced",
    PendingExpired: "pending-expired",
    JoinPhaseExtended: "join-phase-extended",
    CommitRefused: "commit-refused",
    OffsetsExpired: "offsets-expired",
    GroupDeleted: "group-deleted",
    AppendFailed: "not-kept",
}
"""The name of each event in the topic, as in kohort.events.schema; a test compares them."""

_CONSUMER: Final = "consumer"

_ASSIGNMENTS_CACHED: Final = 1024

_SAMPLE_ITEMS: Final = 100

_RECORD_BYTES: Final = 32
"""The maximum overhead of a record besides its key and value."""

_NAMES: Final[dict[type, tuple[str, ...]]] = {
    cls: tuple(each.name for each in dataclasses.fields(cls))
    for cls in (*EVENT_NAMES, MemberInfo, RebalanceParticipant, MemberRemoval)
}

_GETTERS: Final = {cls: (names, attrgetter(*names)) for cls, names in _NAMES.items()}
"""One attrgetter per class, which returns all its fields in one call."""

_LISTS: Final = {
    cls: tuple(each.name for each in dataclasses.fields(cls) if get_origin(each.type) is tuple)
    for cls in EVENT_NAMES
}
"""The fields whose size grows with the group; a large event is split along them."""


class EventWriter:
    """Appends events to the topic, and counts those that could not be appended as lost."""

    def __init__(self, topics: Topics, settings: BrokerConfig, purgatory: FetchPurgatory) -> None:
        self._topics = topics
        self._purgatory = purgatory
        self._is_enabled: bool = settings["kohort.events.enable"]
        self.lost_count = 0

    def write(self, events: list[GroupEvent]) -> None:
        if not self._is_enabled:
            return
        now = Millis(max(event.at for event in events))
        try:
            log = self._topics.events_partition()
        except (RequestRejected, StorageError) as error:
            self._lose(len(events), error)
            return
        bytes_max = min(log.settings.max_message_bytes, log.settings.segment_bytes)
        records: list[NewRecord] = []
        for event in events:
            parts = records_of(event, bytes_max)
            if not parts:
                self._lose(1, f"{EVENT_NAMES[type(event)]} does not fit into max.message.bytes")
            records += parts
        for batch in batches(records, bytes_max):
            encoded = encode(NewBatch(records=tuple(batch)))
            try:
                log.append_trusted(encoded, now)
            except (RequestRejected, StorageError) as error:
                self._lose(len(batch), error)
            else:
                self._purgatory.appended(KOHORT_EVENTS, Partition(0), len(encoded))

    def _lose(self, count: int, reason: object) -> None:
        log_events.warning("events-lost", count=count, reason=reason)
        self.lost_count += count


# Events to records


def records_of(event: GroupEvent, bytes_max: int) -> list[NewRecord]:
    """Return one record, or parts that fit into a batch of this size; none if no part fits."""
    room = bytes_max - HEADER_BYTES
    if not _LISTS[type(event)]:
        whole = _record(event, {})
        return [whole] if _size(whole) <= room else []
    longest = max((len(getattr(event, name)) for name in _LISTS[type(event)]), default=0)
    count = _guess_count(event, longest, room)
    while True:
        parts = [_record(part, part_number) for part_number, part in _split(event, count)]
        if all(_size(part) <= room for part in parts):
            return parts
        if count >= longest:
            return []
        count = min(2 * count, longest)


def _guess_count(event: GroupEvent, longest: int, room: int) -> int:
    """Estimate the number of parts from a sample, to avoid encoding thousands of items twice."""
    samples = longest // _SAMPLE_ITEMS
    if samples < 2:
        return 1
    part_number, sample = next(_split(event, samples))
    return min(_size(_record(sample, part_number)) * samples * 9 // 8 // max(room, 1) + 1, longest)


def batches(records: Iterable[NewRecord], bytes_max: int) -> Iterator[list[NewRecord]]:
    """Group the records, in order, into batches of at most `bytes_max`."""
    batch: list[NewRecord] = []
    room = bytes_max - HEADER_BYTES
    for record in records:
        size = _size(record)
        if batch and size > room:
            yield batch
            batch, room = [], bytes_max - HEADER_BYTES
        batch.append(record)
        room -= size
    if batch:
        yield batch


def _record(event: GroupEvent, part_number: dict[str, int]) -> NewRecord:
    return NewRecord(key=_key(event), value=json_of(event, part_number), timestamp=event.at)


def _key(event: GroupEvent) -> bytes | None:
    group_ids = event.group_ids if isinstance(event, AppendFailed) else (event.group_id,)
    return group_ids[0].encode() if len(group_ids) == 1 else None


def _size(record: NewRecord) -> int:
    return len(record.key or b"") + len(record.value or b"") + _RECORD_BYTES


def _split(event: GroupEvent, count: int) -> Iterator[tuple[dict[str, int], GroupEvent]]:
    """Split an event into `count` parts; each has a share of the lists, and its part number."""
    if count == 1:
        yield {}, event
        return
    lists = {name: getattr(event, name) for name in _LISTS[type(event)]}
    for index in range(count):
        shares = {
            name: items[index * len(items) // count : (index + 1) * len(items) // count]
            for name, items in lists.items()
        }
        yield {"part": index + 1, "parts": count}, dataclasses.replace(event, **shares)


# Events to JSON


def json_of(event: GroupEvent, part_number: dict[str, int] | None = None) -> bytes:
    """Encode an event: its name under `event`, then its fields under their own names."""
    fields = {"event": EVENT_NAMES[type(event)], **(part_number or {}), **_fields(event)}
    if isinstance(event, OffsetsExpired):
        fields["partitions"] = _by_topic(event.partitions)
    elif isinstance(event, CommitRefused | AppendFailed):
        fields["error"] = event.error.name
    is_consumer = isinstance(event, RebalanceEnded) and event.protocol_type == _CONSUMER
    return (_encode_consumer_event if is_consumer else _encode_event)(fields).encode()


def _fields(thing: object) -> dict[str, Any]:
    names, get = _GETTERS[type(thing)]
    return dict(zip(names, get(thing), strict=True))


def _encode_value(thing: object) -> Any:
    """Encode a value. The assignment of another protocol type is opaque, so it becomes null."""
    if isinstance(thing, bytes):
        return None if thing else {}
    return _fields(thing)


def _encode_consumer_value(thing: object) -> Any:
    """Encode a value, and decode assignments: the group is one of consumers."""
    if isinstance(thing, bytes):
        return _topics(thing)
    return _participant(thing) if isinstance(thing, RebalanceParticipant) else _fields(thing)


def _participant(each: RebalanceParticipant) -> dict[str, Any]:
    """Written out for speed: a large rebalance has thousands of participants."""
    party = each.party
    had = _topics(each.had)
    return {
        "party": {
            "member_id": party.member_id,
            "instance_id": party.instance_id,
            "client_id": party.client_id,
            "client_host": party.client_host,
        },
        "join_took_ms": each.join_took_ms,
        "sync_took_ms": each.sync_took_ms,
        "had": had,
        "got": had if each.got == each.had else _topics(each.got),
    }


# Events are trees, so the check for cycles is not needed.
_encode_event: Final = json.JSONEncoder(
    separators=(",", ":"), check_circular=False, default=_encode_value
).encode
_encode_consumer_event: Final = json.JSONEncoder(
    separators=(",", ":"), check_circular=False, default=_encode_consumer_value
).encode


@lru_cache(maxsize=_ASSIGNMENTS_CACHED)
def _topics(data: bytes) -> dict[Topic, list[Partition]] | None:
    """Decode an assignment; None if malformed. Cached: most members keep their assignment."""
    if not data:
        return {}
    try:
        assignment = decode_assignment(data)
    except MalformedMessage:
        return None
    topics = assignment.assigned_partitions
    return _by_topic((each.topic, partition) for each in topics for partition in each.partitions)


def _by_topic(partitions: Iterable[tuple[Topic, Partition]]) -> dict[Topic, list[Partition]]:
    topics: dict[Topic, list[Partition]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics
