"""One partition: batches go in at the end, come out by offset or time, and leave when due.

It works on one thread and never waits for a sync: what was written is handed out to whoever syncs
it. Time is an argument. What happened is a return value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from kohort.log import lookup
from kohort.log.admission import admit, check_size
from kohort.log.checkpoint import Checkpoints
from kohort.log.cleaning import Cleaned, find_removable, plan_compaction
from kohort.log.compaction import Compaction, Plan, Replacement
from kohort.log.compactor import Compactor
from kohort.log.disk import Disk
from kohort.log.errors import Refused, StorageError
from kohort.log.index import AbortedTransaction
from kohort.log.limits import LEADER_EPOCH, READ_BYTES, Limits
from kohort.log.lookup import Found
from kohort.log.recovery import Loaded
from kohort.log.segment import Segment
from kohort.log.segments import Segments
from kohort.log.settings import TopicSettings
from kohort.log.swap import remove_segment, swap_in
from kohort.log.unsynced import SyncQueue, Unsynced
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic, value
from kohort.wire.batch import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
    assign_offset,
    assign_timestamp,
    peek,
)


@value
class Appended:
    """Where a batch went, or for a duplicate, where it was already."""

    base_offset: Offset
    last_offset: Offset
    append_ms: Millis
    """The time its records got from the log; -1 where they keep their producer's."""
    start_offset: Offset
    is_duplicate: bool


class Made(NamedTuple):
    """A batch of this node's own, of one moment, for the place at which it will be."""

    data: bytes
    record_count: int
    timestamp: Millis


class PartitionLog:
    def __init__(
        self,
        *,
        disk: Disk,
        directory: str,
        topic: Topic,
        partition: Partition,
        settings: TopicSettings,
        limits: Limits,
        checkpoints: Checkpoints,
        loaded: Loaded,
        written: "dict[PartitionLog, None]",
    ) -> None:
        """written is told of this log whenever it has something to sync that it had not before."""
        self.topic = topic
        self.partition = partition
        self._disk = disk
        self._directory = directory
        self._settings = settings
        self._limits = limits
        self._checkpoints = checkpoints
        self._segments = Segments(loaded.segments, limits.open_segments_max)
        self._producers = loaded.producers
        self._snapshots = loaded.snapshots
        self._start = loaded.start_offset
        self._end = loaded.end_offset
        self._written = written
        self._sync_queue = SyncQueue(disk, directory, loaded.recovery_point)
        self._checkpointed_end = loaded.end_offset
        self._compactor = Compactor(self._put_in_place)
        self._failure: StorageError | None = None
        self._segments.active.index_every(settings.index_interval_bytes)

    def __repr__(self) -> str:
        return f"PartitionLog({self._directory} {self._start}..{self._end})"

    @property
    def start_offset(self) -> Offset:
        """The first offset that can be read."""
        return self._start

    @property
    def end_offset(self) -> Offset:
        """The offset the next record gets."""
        return self._end

    @property
    def last_stable_offset(self) -> Offset:
        """Readers of committed records stop here: a transaction that began here is open."""
        return self._producers.last_stable_offset(self._end)

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def settings(self) -> TopicSettings:
        return self._settings

    def apply_settings(self, settings: TopicSettings) -> None:
        """They hold from the next batch and the next cleaning on."""
        self._settings = settings
        self._segments.active.index_every(settings.index_interval_bytes)

    # Writing

    def append(self, batch: bytes, now: Millis) -> Appended:
        """Keeps one batch from a client, or raises Refused; StorageError if the disk failed."""
        header = admit(batch, self._settings, now)
        if header.producer_id != NO_PRODUCER_ID:
            duplicate = self._producers.find_duplicate(header)
            if duplicate is not None:
                return Appended(
                    base_offset=duplicate.first_offset,
                    last_offset=duplicate.last_offset,
                    append_ms=duplicate.timestamp,
                    start_offset=self._start,
                    is_duplicate=True,
                )
            self._producers.check(header)
        return self._write(batch, header, now)

    def append_own(self, batch: bytes, now: Millis) -> Appended:
        """Keeps one batch that this node has made: believed, but for its size."""
        header = peek(batch)
        check_size(header, self._settings)
        return self._write(batch, header, now)

    def append_made(
        self, batches: Sequence[Made], now: Millis
    ) -> Sequence[Refused | StorageError | None]:
        """Keeps batches that this node has made, in one write if possible; what kept each out.

        Each has its offsets already, the first those from `end_offset` on, and no producer.
        """
        settings, active = self._settings, self._segments.active
        placed: list[tuple[bytes, Offset, Millis]] = []
        next_offset, size, longest = self._end, 0, 0
        for data, record_count, timestamp in batches:
            next_offset = Offset(next_offset + record_count)
            placed.append((data, Offset(next_offset - 1), timestamp))
            size += len(data)
            longest = max(longest, len(data))
        if (
            longest > settings.max_message_bytes
            or size > settings.segment_bytes
            or settings.message_timestamp_type is TimestampType.LOG_APPEND_TIME
            or active.must_roll(settings, size, *placed[-1][1:], now, batches=len(placed))
        ):
            return [self._try_to_append(each.data, now) for each in batches]
        try:
            self._check_usable()
            active.append_all(placed)
        except StorageError as error:
            return [error] * len(batches)
        self._end = next_offset
        if self._sync_queue.add(active):
            self._written[self] = None
        return [None] * len(batches)

    def _try_to_append(self, batch: bytes, now: Millis) -> Refused | StorageError | None:
        try:
            self.append_own(batch, now)
        except (Refused, StorageError) as error:
            return error
        return None

    def _write(self, batch: bytes, header: BatchHeader, now: Millis) -> Appended:
        self._check_usable()
        base_offset = self._end
        last_offset = Offset(base_offset + header.last_offset_delta)
        append_ms = NO_TIMESTAMP
        timestamp = header.max_timestamp
        data = bytearray(batch)
        timestamp_type = self._settings.message_timestamp_type
        if timestamp_type is TimestampType.LOG_APPEND_TIME:
            append_ms = timestamp = now
        if timestamp_type is TimestampType.LOG_APPEND_TIME or (
            header.timestamp_type is TimestampType.LOG_APPEND_TIME
        ):
            assign_timestamp(data, timestamp_type=timestamp_type, max_timestamp=timestamp)
            header = peek(data)
        assign_offset(data, base_offset=base_offset, partition_leader_epoch=LEADER_EPOCH)
        active = self._segments.active
        if active.must_roll(self._settings, len(data), last_offset, timestamp, now):
            active = self._roll(now)
        active.append(data, last_offset, timestamp)
        self._end = Offset(last_offset + 1)
        if header.producer_id != NO_PRODUCER_ID:
            aborted = self._producers.note(data, 0, header, base_offset, now)
            if aborted is not None:
                active.note_aborted(aborted)
        if self._sync_queue.add(active):
            self._written[self] = None
        return Appended(
            base_offset=base_offset,
            last_offset=last_offset,
            append_ms=append_ms,
            start_offset=self._start,
            is_duplicate=False,
        )

    def _roll(self, now: Millis) -> Segment:
        """Begins the next segment. The new log file comes last: without it nothing has changed."""
        old = self._segments.active
        old.note_all()
        old.flush_indexes()
        self._snapshots.take(self._producers, self._end)
        new = Segment.create(self._disk, self._directory, self._end, now)
        old.let_go()
        new.index_every(self._settings.index_interval_bytes)
        self._segments.add(new)
        self._sync_queue.add_sealed(old)
        return new

    # Syncing

    def take_unsynced(self) -> tuple[Unsynced, ...]:
        """What was written since the last call, to be synced by whom it may concern."""
        return self._sync_queue.take(self._end)

    # Reading

    def read(
        self, offset: Offset, max_bytes: int, *, at_least_one: bool, before: Offset | None = None
    ) -> bytes:
        """Batches from the one that holds an offset on, as they were written, without decoding.

        The last one may be cut short, the first never: where it does not fit, it comes whole with
        at_least_one and nothing comes without. Batches that reach past `before` stay out.
        """
        self._check_usable()
        end = self._end
        if not self._start <= offset <= end:
            reason = f"offset {offset} is not between {self._start} and {end}"
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        limit = end if before is None else min(before, end)
        if offset >= limit:
            return b""
        for segment in self._segments.from_offset(offset):
            found = segment.find(offset)
            if found is None:
                continue
            position, size = found[0], found[1]
            stop = segment.size
            if limit < end and (first_beyond := segment.find(limit)) is not None:
                stop = first_beyond[0]
            wanted = min(max_bytes, stop - position)
            if wanted < size:
                wanted = size if at_least_one and position < stop else 0
            return segment.file.read(position, wanted) if wanted else b""
        return b""

    def batches(self, from_offset: Offset, chunk_bytes: int = READ_BYTES) -> Iterator[bytes]:
        """Runs of whole batches to the end of the log. Other work may go on between two of them."""
        offset = from_offset
        while True:
            offset = max(offset, self._start)
            chunk = lookup.find_chunk(self._segments, offset, chunk_bytes)
            if chunk is None:
                return
            yield chunk[1]
            offset = chunk[2]

    def find_by_time(self, timestamp: Millis) -> Found | None:
        """The first record that is not older, or None if all are."""
        return lookup.find_by_time(self._segments, timestamp, self._start)

    def find_latest_time(self) -> Found | None:
        """The first of the records with the latest timestamp, or None if there are none."""
        return lookup.find_latest_time(self._segments, self._start)

    def aborted_transactions(self, start: Offset, end: Offset) -> tuple[AbortedTransaction, ...]:
        """Those a reader of committed records must know of between two offsets."""
        return lookup.find_aborted(self._segments, start, end)

    # Removing

    def delete_before(self, offset: Offset) -> Offset:
        """Records before an offset are gone for readers; returns the first one left."""
        self._check_usable()
        if not 0 <= offset <= self._end:
            reason = f"offset {offset} is not between 0 and {self._end}"
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        if offset > self._start:
            self._move_start(offset)
            self._remove_segments(sum(each.base_offset <= offset for each in self._segments) - 1)
        return self._start

    def clean(
        self, now: Millis, budget_bytes: int | None = None, *, may_compact: bool = True
    ) -> Cleaned:
        """Retention and compaction, as far as they are due.

        Compaction reads about budget_bytes and goes on at the next call; without a budget it is
        done at once. What was synced meanwhile is noted as well, for a quick recovery.
        """
        self._check_usable()
        self._producers.expire(now)
        size_before = self.size_bytes
        count = find_removable(self._segments, self._settings, self._start, now)
        if count == len(self._segments):
            self._roll(now)
        if count:
            self._move_start(max(self._start, [*self._segments][count].base_offset))
            self._remove_segments(count)
        cleaned = Cleaned(
            segments_removed=count,
            bytes_removed=size_before - self.size_bytes,
            start_offset=self._start,
        )
        self.checkpoint()
        plan = self._plan_compaction(now) if self._compactor.is_idle else None
        if not may_compact:
            return replace(cleaned, is_done=self._compactor.is_idle and plan is None)
        if plan is not None:
            self._begin_compaction(plan, now)
        return self._compactor.go_on(cleaned, budget_bytes, self._note_cleaned)

    def compact(self, budget_bytes: int) -> Cleaned:
        """Goes on with the round of compaction that `clean` began, and does nothing else."""
        self._check_usable()
        cleaned = Cleaned(start_offset=self._start)
        return self._compactor.go_on(cleaned, budget_bytes, self._note_cleaned)

    def _move_start(self, offset: Offset) -> None:
        """Kept before anything is removed, so that a crash cannot leave a hole."""
        self._checkpoints.start_offsets.put(self.topic, self.partition, offset)
        self._checkpoints.start_offsets.flush()
        self._start = offset

    def _remove_segments(self, count: int) -> None:
        if count:
            self._compactor.give_up()
        for _ in range(count):
            segment = self._segments.remove_first()
            self._sync_queue.forget([segment])
            remove_segment(self._disk, self._directory, segment.base_offset)

    # Compaction

    def _plan_compaction(self, now: Millis) -> Plan | None:
        cleaned_to = self._checkpoints.cleaned_offsets.find(self.topic, self.partition)
        if cleaned_to is None or not self._start <= cleaned_to <= self._end:
            cleaned_to = self._start
        return plan_compaction(
            self._segments,
            self._settings,
            dirty_from=cleaned_to,
            last_stable_offset=self.last_stable_offset,
            now=now,
        )

    def _begin_compaction(self, plan: Plan, now: Millis) -> None:
        # Recovery takes what lies behind this point for whole and without gaps.
        self._checkpoints.recovery_points.flush()
        self._compactor.begin(
            Compaction(
                disk=self._disk,
                directory=self._directory,
                plan=plan,
                settings=self._settings,
                limits=self._limits,
                now=now,
                last_written=self._producers.last_written(),
                aborted=[each for segment in self._segments for each in segment.aborted],
            )
        )

    def _put_in_place(self, replacement: Replacement) -> None:
        try:
            new = swap_in(self._disk, self._directory, replacement.new, replacement.old)
        except StorageError as error:
            # Which files are there now, only opening the log again can tell.
            self._failure = error
            raise
        self._sync_queue.forget(replacement.old)
        self._segments.replace(replacement.old, new)

    def _note_cleaned(self, offset: Offset) -> None:
        self._checkpoints.cleaned_offsets.put(self.topic, self.partition, offset)

    # Keeping what is known

    def checkpoint(self) -> None:
        """Makes recovery quick: writes what could also be found by reading the log again."""
        if self._end != self._checkpointed_end:
            self._segments.active.flush_indexes()
            self._snapshots.take(self._producers, self._end)
            self._checkpointed_end = self._end
        self._sync_queue.sync_sealed()
        synced_offset = max(self._sync_queue.synced_offset, self._segments.active.base_offset)
        recovery_points = self._checkpoints.recovery_points
        recovery_points.put(self.topic, self.partition, synced_offset)

    def close(self, now: Millis) -> None:
        """Everything is synced and noted; the log can be opened again without a look at it."""
        try:
            self._check_usable()
            self._compactor.give_up()
            self._producers.expire(now)
            active = self._segments.active
            active.note_all()
            self.checkpoint()
            active.flush_indexes()
            active.sync()
            self._disk.sync_directory(self._directory)
            self._checkpoints.recovery_points.put(self.topic, self.partition, self._end)
        finally:
            self._segments.close()

    def abandon(self) -> None:
        """The partition is deleted: nothing of it matters any more."""
        self._sync_queue.give_up()
        self._compactor.give_up()
        self._segments.close()

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise self._failure
