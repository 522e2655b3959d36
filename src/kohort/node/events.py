"""`__kohort_events`: what the coordinator noticed, as JSON that users query.

One record per note, keyed by group; a note too large for one record becomes several. The fields
are those of the notes, and events_table says what each means. Losing an event never stops a group.

What is noted in one turn of the loop is written at its end, in one batch: after the answers that go
out at once, but before anybody who was told of it can ask, and before a sync that those who are to
be told wait for.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, get_origin

from kohort.coordinator.notes import (
    CommitRefused,
    Note,
    NotKept,
    OffsetsExpired,
    Participant,
    RebalanceEnded,
)
from kohort.log.errors import Refused, StorageError
from kohort.node import journal
from kohort.node.config import Settings
from kohort.node.events_table import FIELDS, KINDS
from kohort.node.fetches import OnAppend
from kohort.node.runtime import CallSoon
from kohort.node.topics import EVENTS, Topics
from kohort.types import Millis, Partition, Topic
from kohort.wire.batch import NewBatch, NewRecord, encode
from kohort.wire.batch_header import HEADER_BYTES
from kohort.wire.embedded import decode_assignment
from kohort.wire.errors import MalformedMessage

_CONSUMER: Final = "consumer"

_ASSIGNMENTS_REMEMBERED: Final = 1024

_SAMPLE_ITEMS: Final = 100

_NOTES_MAX: Final = 1_000
"""That wait for the end of a turn; protects memory where very much happens in one."""

_RECORD_BYTES: Final = 32
"""What a record needs at most beside its key and value."""

_NAMES: Final = {cls: tuple(each.name for each in dataclasses.fields(cls)) for cls in FIELDS}

_GETTERS: Final = {cls: (names, attrgetter(*names)) for cls, names in _NAMES.items()}
"""How to get at all fields of a note, or of a part of it, at once."""

_LISTS: Final = {
    cls: tuple(each.name for each in dataclasses.fields(cls) if get_origin(each.type) is tuple)
    for cls in KINDS
}
"""The fields that may grow with a group: an event is split along them."""


class EventsTopic:
    """Writes notes where anyone can read them; `on_loss` is told of records that are not."""

    def __init__(
        self,
        topics: Topics,
        settings: Settings,
        on_append: OnAppend,
        on_loss: Callable[[int], None],
        call_soon: CallSoon | None = None,
    ) -> None:
        """`call_soon` has something done at the end of this turn; without it, all is at once."""
        self._topics = topics
        self._on_append = on_append
        self._on_loss = on_loss
        self._call_soon = call_soon
        self._is_enabled: bool = settings["kohort.events.enable"]
        self._noted: list[Note] = []
        self._is_called = False

    def note(self, notes: list[Note]) -> None:
        """To be written with whatever else is noted in this turn."""
        self._noted += notes
        if self._call_soon is None or len(self._noted) >= _NOTES_MAX:
            self.write_noted()
        elif not self._is_called:
            self._is_called = True
            self._call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._is_called = False
        self.write_noted()

    def write_noted(self) -> None:
        notes, self._noted = self._noted, []
        if notes:
            self.write(notes)

    def write(self, notes: list[Note]) -> None:
        if not self._is_enabled:
            return
        now = Millis(max(note.at for note in notes))
        try:
            log = self._topics.events_partition(now)
        except (Refused, StorageError) as error:
            self._lose(len(notes), error)
            return
        bytes_max = min(log.settings.max_message_bytes, log.settings.segment_bytes)
        records: list[NewRecord] = []
        for note in notes:
            parts = records_of(note, bytes_max)
            if not parts:
                self._lose(1, f"{KINDS[type(note)]} does not fit into max.message.bytes")
            records += parts
        for batch in batches(records, bytes_max):
            encoded = encode(NewBatch(records=tuple(batch)))
            try:
                log.append_own(encoded, now)
            except (Refused, StorageError) as error:
                self._lose(len(batch), error)
            else:
                self._on_append(EVENTS, Partition(0), len(encoded))

    def _lose(self, count: int, reason: object) -> None:
        journal.warn("events-lost", count=count, reason=reason)
        self._on_loss(count)


# From notes to records


def records_of(note: Note, bytes_max: int) -> list[NewRecord]:
    """One record, or the parts of it that fit into batches of this size; none if none would."""
    room = bytes_max - HEADER_BYTES
    if not _LISTS[type(note)]:
        whole = _record(note, {})
        return [whole] if _size(whole) <= room else []
    longest = max((len(getattr(note, name)) for name in _LISTS[type(note)]), default=0)
    count = _guess_count(note, longest, room)
    while True:
        parts = [_record(part, place) for place, part in _split(note, count)]
        if all(_size(part) <= room for part in parts):
            return parts
        if count >= longest:
            return []
        count = min(2 * count, longest)


def _guess_count(note: Note, longest: int, room: int) -> int:
    """How many parts it takes, judged by a sample: to write thousands of items once is enough."""
    samples = longest // _SAMPLE_ITEMS
    if samples < 2:
        return 1
    place, sample = next(_split(note, samples))
    return min(_size(_record(sample, place)) * samples * 9 // 8 // max(room, 1) + 1, longest)


def batches(records: Iterable[NewRecord], bytes_max: int) -> Iterator[list[NewRecord]]:
    """In their order, as many together as may be."""
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


def _record(note: Note, place: dict[str, int]) -> NewRecord:
    return NewRecord(key=_key(note), value=json_of(note, place), timestamp=note.at)


def _key(note: Note) -> bytes | None:
    group_ids = note.group_ids if isinstance(note, NotKept) else (note.group_id,)
    return group_ids[0].encode() if len(group_ids) == 1 else None


def _size(record: NewRecord) -> int:
    return len(record.key or b"") + len(record.value or b"") + _RECORD_BYTES


def _split(note: Note, count: int) -> Iterator[tuple[dict[str, int], Note]]:
    """The same note with a share of its lists, so many times, and which share it is."""
    if count == 1:
        yield {}, note
        return
    lists = {name: getattr(note, name) for name in _LISTS[type(note)]}
    for index in range(count):
        shares = {
            name: items[index * len(items) // count : (index + 1) * len(items) // count]
            for name, items in lists.items()
        }
        yield {"part": index + 1, "parts": count}, dataclasses.replace(note, **shares)


# From values to JSON


def json_of(note: Note, place: dict[str, int] | None = None) -> bytes:
    """Its kind under `event`, then its fields under their own names."""
    event = {"event": KINDS[type(note)], **(place or {}), **_fields(note)}
    if isinstance(note, OffsetsExpired):
        event["partitions"] = _by_topic(note.partitions)
    elif isinstance(note, CommitRefused | NotKept):
        event["error"] = note.error.name
    is_readable = isinstance(note, RebalanceEnded) and note.protocol_type == _CONSUMER
    return (_write_readable if is_readable else _write)(event).encode()


def _fields(thing: object) -> dict[str, Any]:
    names, get = _GETTERS[type(thing)]
    return dict(zip(names, get(thing), strict=True))


def _spell(thing: object) -> Any:
    """An assignment that is not a consumer's is for its own kind to read."""
    if isinstance(thing, bytes):
        return None if thing else {}
    return _fields(thing)


def _spell_readable(thing: object) -> Any:
    """A consumer's assignment is spelled out."""
    if isinstance(thing, bytes):
        return _topics(thing)
    return _participant(thing) if isinstance(thing, Participant) else _fields(thing)


def _participant(each: Participant) -> dict[str, Any]:
    """As its fields say, without asking them: a large rebalance has thousands."""
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


# Notes are trees, so nobody need look for circles.
_write: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=_spell).encode
_write_readable: Final = json.JSONEncoder(
    separators=(",", ":"), check_circular=False, default=_spell_readable
).encode


@lru_cache(maxsize=_ASSIGNMENTS_REMEMBERED)
def _topics(data: bytes) -> dict[Topic, list[Partition]] | None:
    """What is assigned; None where it cannot be read. Most members get what they had before."""
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
