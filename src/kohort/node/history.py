"""`__consumer_offsets` read back when a node starts, quickly where it says the same over and over.

A group commits the same partitions again and again, so that of a long log all but the last words
are forgotten as soon as they are read. A batch that differs from an earlier one in nothing but its
numbers is therefore only put in that one's place, and its records are made once, at the end.

What comes out leads to the same state as every record in its turn: offsets of a group that wait
here are told before anything else of that group could depend on them. Nothing is decided here.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

from kohort.coordinator.recordcodec import Skipped, decode_record
from kohort.coordinator.records import (
    GenerationFormed,
    OffsetCommitted,
    OneRecord,
    TransactionEnded,
)
from kohort.types import GroupId, maker
from kohort.wire.batch import BatchHeader, Codec, iter_records, split
from kohort.wire.batch_header import HEADER_BYTES, LENGTH_END, peek_whole
from kohort.wire.control import MarkerType, find_marker
from kohort.wire.varint import read_uvarint, read_varint, read_varlong

_GLANCE: Final = Struct(">8xi4xb4xhi30xi")
"""Of a batch's header: length, magic, attributes, last offset delta, record count."""

_VERSION: Final = Struct(">h")
_OFFSET: Final = Struct(">qi")
_TIME: Final = Struct(">q")

_WITH_EPOCH: Final = (3, 4)
"""The versions of a stored offset that are an offset, a leader epoch, metadata and a time."""

_KNOWN_RECORDS_MAX: Final = 200_000
"""Of all batches that are known; protects memory while a node starts: some 400 bytes for each."""

_SEEN_MAX: Final = 100_000
"""Batches of which one was seen; a second one like it is worth to be known."""

_make_offset: Final = maker(OffsetCommitted)

Glance = tuple[Any, ...]


def read_back(chunk: bytes) -> Iterator[OneRecord | Skipped]:
    """The records in a run of batches, written by us or by Apache Kafka, one after the other."""
    for position, header in split(chunk):
        yield from _read_batch(chunk, position, header)


def _read_batch(chunk: bytes, position: int, header: BatchHeader) -> Iterator[OneRecord | Skipped]:
    records = iter_records(chunk, position, check_crc=False)
    if header.is_control:
        for record in records:
            marker = find_marker(record)
            if marker is not None:
                yield TransactionEnded(
                    producer_id=header.producer_id,
                    is_commit=marker.type is MarkerType.COMMIT,
                )
        return
    producer_id = header.producer_id if header.is_transactional else None
    epoch = header.producer_epoch if header.is_transactional else None
    for record in records:
        yield decode_record(record.key, record.value, producer_id, epoch)


class _Form:
    """Where the numbers of a batch's offsets lie. `pattern` is for struct: all else, in pieces."""

    __slots__ = ("numbers", "pattern", "rest")

    def __init__(self, pattern: list[int]) -> None:
        """From the sizes of what stands before, between and after the numbers."""
        self.pattern = pattern
        gaps = [_OFFSET.size, _TIME.size] * (len(pattern) // 2)
        letters = ["qi", "q"] * (len(pattern) // 2)
        rest = [f"{size}s{gap}x" for size, gap in zip(pattern, gaps, strict=False)]
        numbers = [f"{size}x{each}" for size, each in zip(pattern, letters, strict=False)]
        self.rest = Struct(f">{''.join(rest)}{pattern[-1]}s").unpack_from
        self.numbers = Struct(f">{''.join(numbers)}").unpack_from


class _Commit:
    """A batch of which all but the numbers is known, and where the last one like it waits."""

    __slots__ = ("form", "models", "waiting")

    def __init__(
        self, form: _Form, models: list[OffsetCommitted], waiting: "dict[_Commit, bytes]"
    ) -> None:
        self.form = form
        self.models = models
        self.waiting = waiting

    def records(self, body: bytes) -> Iterator[OffsetCommitted]:
        numbers = iter(self.form.numbers(body))
        for model, offset, epoch, time in zip(self.models, numbers, numbers, numbers, strict=True):
            yield _make_offset(
                model.group_id,
                model.topic,
                model.partition,
                offset,
                epoch,
                model.metadata,
                time,
                None,
                model.topic_id,
                None,
                None,
            )


class History:
    """What the log of one partition tells: `read` its chunks in their order, then `finish`."""

    def __init__(self) -> None:
        self._forms: dict[Glance, _Form] = {}
        self._known: dict[tuple[bytes, ...], _Commit] = {}
        self._known_records = 0
        self._seen: set[object] = set()
        self._waiting: dict[GroupId, dict[_Commit, bytes]] = {}
        """By group, in the order in which each was last met: what both tell, the later one has."""

    def read(self, chunk: bytes) -> Iterator[OneRecord | Skipped]:
        position, end = 0, len(chunk)
        forms, known = self._forms, self._known
        while position < end:
            glance: Glance = (
                _GLANCE.unpack_from(chunk, position) if end - position >= HEADER_BYTES else ()
            )
            form = forms.get(glance)
            if form is not None and (stop := position + LENGTH_END + glance[0]) <= end:
                start = position + HEADER_BYTES
                commit = known.get(form.rest(chunk, start))
                if commit is not None:
                    waiting = commit.waiting
                    waiting.pop(commit, None)
                    waiting[commit] = chunk[start:stop]
                    position = stop
                    continue
            header = peek_whole(chunk, position)
            stop = position + header.size_in_bytes
            records = list(_read_batch(chunk, position, header))
            if not self._learn(glance, header, records, chunk[position + HEADER_BYTES : stop]):
                yield from self._in_turn(records)
            position = stop

    def finish(self) -> Iterator[OneRecord]:
        """What still waits."""
        for waiting in self._waiting.values():
            yield from _take(waiting)

    def _in_turn(self, records: list[OneRecord | Skipped]) -> Iterator[OneRecord | Skipped]:
        for record in records:
            # What a group has committed is no matter of who is in it, nor of a transaction's end:
            # a commit that came later than the transaction's counts, whenever either is told.
            if not isinstance(record, Skipped | GenerationFormed | TransactionEnded):
                yield from _take(self._waiting.get(record.group_id, {}))
            yield record

    def _learn(
        self,
        glance: Glance,
        header: BatchHeader,
        records: list[OneRecord | Skipped],
        body: bytes,
    ) -> bool:
        """Whether a batch now waits here, since one like it came before and more may follow."""
        if header.codec is not Codec.NONE or header.is_transactional or header.is_control:
            return False
        models = _offsets_of_one_group(records)
        if not models or not self._is_second(glance, models[0]):
            return False
        if self._known_records + len(models) > _KNOWN_RECORDS_MAX:
            return False
        pattern = _find_pattern(body, len(models))
        if pattern is None:
            return False
        form = self._forms.get(glance)
        if form is None:
            form = self._forms[glance] = _Form(pattern)
        elif form.pattern != pattern:
            return False  # the first one of its size is read quickly, others as ever
        waiting = self._waiting.setdefault(models[0].group_id, {})
        commit = _Commit(form, models, waiting)
        self._known[form.rest(body)] = commit
        self._known_records += len(models)
        waiting[commit] = body
        return True

    def _is_second(self, glance: Glance, first: OffsetCommitted) -> bool:
        """To know a batch takes as long as to read several: most logs hold some that come once."""
        name = (glance, first.group_id, first.topic, first.partition, first.metadata)
        if name in self._seen:
            return True
        if len(self._seen) < _SEEN_MAX:
            self._seen.add(name)
        return False


def _take(waiting: dict[_Commit, bytes]) -> Iterator[OffsetCommitted]:
    for commit, body in waiting.items():
        yield from commit.records(body)
    waiting.clear()


def _offsets_of_one_group(records: list[OneRecord | Skipped]) -> list[OffsetCommitted]:
    """The same if they are nothing else, else nothing."""
    offsets = [each for each in records if isinstance(each, OffsetCommitted)]
    is_one = len(offsets) == len(records) and len({each.group_id for each in offsets}) == 1
    return offsets if is_one else []


def _find_pattern(body: bytes, count: int) -> list[int] | None:
    """The sizes of all that is not a number of an offset; None where a value has another form.

    The batch was read before, and is therefore what it should be.
    """
    pattern: list[int] = []
    position = known = 0
    for _ in range(count):
        length, position = read_varint(body, position)
        next_position = position + length
        _, position = read_varlong(body, position + 1)
        _, position = read_varint(body, position)
        length, position = read_varint(body, position)
        length, position = read_varint(body, position + length)
        (version,) = _VERSION.unpack_from(body, position)
        if version not in _WITH_EPOCH:
            return None
        numbers = position + _VERSION.size
        time = _find_time(body, numbers + _OFFSET.size, version)
        pattern += (numbers - known, time - numbers - _OFFSET.size)
        known = time + _TIME.size
        position = next_position
    return [*pattern, len(body) - known]


def _find_time(body: bytes, position: int, version: int) -> int:
    """Where the time of a commit lies: behind its metadata, which is a string of either kind."""
    if version == 4:
        length, position = read_uvarint(body, position)
        return position + length - 1
    (length,) = _VERSION.unpack_from(body, position)
    return position + _VERSION.size + int(length)
