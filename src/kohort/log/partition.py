"""The log of one partition: append, read, retention and compaction.

A PartitionLog is used from one thread and never waits for an fsync: `take_pending_syncs` returns
the files to sync, and the caller syncs them. Callers pass the current time.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kohort.log.appended_batch import Appended, TrustedBatch, place_batch
from kohort.log.batch_validator import check_size, validate_batch, validate_in_steps
from kohort.log.checkpoint import Checkpoints
from kohort.log.compaction import Compaction, CompactionPlan, SegmentReplacement
from kohort.log.disk import Disk
from kohort.log.errors import OutOfResources, RequestRejected, StorageError
from kohort.log.index import AbortedTxn
from kohort.log.limits import READ_BYTES, Limits
from kohort.log.log_cleaner import (
    CleanResult,
    LogCleaner,
    count_removable_segments,
    plan_compaction,
)
from kohort.log.log_segments import LogSegments, TimestampAndOffset
from kohort.log.recovery import LoadedLog
from kohort.log.repair import OnRepair, ignore_repair
from kohort.log.segment import Segment
from kohort.log.segment_swap import complete_swap, remove_segment, replace_segments
from kohort.log.sync_queue import PendingSync, SyncQueue
from kohort.log.topic_config import TopicSettings
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic
from kohort.wire.batch import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
    peek,
)


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
        loaded: LoadedLog,
        written: "dict[PartitionLog, None]",
        create_directory: Callable[[], object] | None = None,
        on_repair: OnRepair = ignore_repair,
        refusal: StorageError | None = None,
    ) -> None:
        """The log adds itself to `written` when it gets something to sync. A log without files
        calls `create_directory` before its first append. With a `refusal` every use of the log
        raises it."""
        self.topic = topic
        self.partition = partition
        self._disk = disk
        self._directory = directory
        self._settings = settings
        self._limits = limits
        self._checkpoints = checkpoints
        self._on_repair = on_repair
        self._segments = LogSegments(loaded.segments, on_repair)
        self._producers = loaded.producers
        self._snapshots = loaded.snapshots
        self._segment_list = loaded.segment_list
        self._start = loaded.start_offset
        self._end = loaded.end_offset
        self._written = written
        self._sync_queue = SyncQueue(disk, directory, loaded.recovery_point)
        self._checkpointed_end = self._loaded_end = loaded.end_offset
        self._log_cleaner = LogCleaner(self._replace_segments)
        self._failure = refusal
        self.is_refused = refusal is not None
        """The log could not be opened, so its files are not touched."""
        self._create_directory = create_directory
        self._synced_segment = loaded.segments[-1] if loaded.is_synced else None
        """The active segment, if all files were synced when the log was opened."""
        self._segments.active.set_index_interval(settings.index_interval_bytes)

    def __repr__(self) -> str:
        return f"PartitionLog({self._directory} {self._start}..{self._end})"

    @property
    def start_offset(self) -> Offset:
        """The log start offset: the first offset that can be read."""
        return self._start

    @property
    def end_offset(self) -> Offset:
        """The log end offset: the offset of the next record. It is also the high watermark,
        because there are no replicas."""
        return self._end

    @property
    def last_stable_offset(self) -> Offset:
        """The first offset of the earliest open transaction; the log end offset if none is open.
        A read_committed consumer reads up to here."""
        return self._producers.last_stable_offset(self._end)

    @property
    def has_files(self) -> bool:
        """False for a log that was never written."""
        return self._create_directory is None

    @property
    def is_deleted(self) -> bool:
        return self._sync_queue.is_cancelled

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def settings(self) -> TopicSettings:
        return self._settings

    def apply_settings(self, settings: TopicSettings) -> None:
        """The next append and the next cleaning use the new settings."""
        self._settings = settings
        self._segments.active.set_index_interval(settings.index_interval_bytes)

    # Append

    def append(self, batch: bytes, now: Millis) -> Appended:
        """Validate and append one batch from a client.

        Raises RequestRejected for an invalid batch and StorageError if the disk failed.
        """
        return self.append_validated(batch, validate_batch(batch, self._settings, now), now)

    def validate(self, batch: bytes, now: Millis) -> Generator[None, Any, BatchHeader]:
        """Validate one batch from a client in steps. Raises RequestRejected."""
        return validate_in_steps(batch, self._settings, now, self._limits)

    def append_validated(self, batch: bytes, header: BatchHeader, now: Millis) -> Appended:
        """Append a batch that `validate` has accepted. The log may have changed since then."""
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

    def append_trusted(self, batch: bytes, now: Millis) -> Appended:
        """Append one batch that this node has built. Only its size is checked."""
        header = peek(batch)
        check_size(header, self._settings)
        return self._write(batch, header, now)

    def append_trusted_batches(
        self, batches: Sequence[TrustedBatch], now: Millis
    ) -> Sequence[RequestRejected | StorageError | None]:
        """Append batches that this node has built, with one write if possible.

        Their offsets are already assigned, starting at `end_offset`, and they have no producer id.
        Returns for each batch the error that prevented its append, or None.
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
            or active.should_roll(settings, size, *placed[-1][1:], now, batches=len(placed))
        ):
            return [self._try_append_trusted(each.data, now) for each in batches]
        try:
            self.check_usable()
            if self._create_directory is not None:
                self._create_files(now)
            active.append_all(placed)
        except StorageError as error:
            return [error] * len(batches)
        self._end = next_offset
        if self._sync_queue.add(active):
            self._written[self] = None
        return [None] * len(batches)

    def _try_append_trusted(
        self, batch: bytes, now: Millis
    ) -> RequestRejected | StorageError | None:
        try:
            self.append_trusted(batch, now)
        except (RequestRejected, StorageError) as error:
            return error
        return None

    def _create_files(self, now: Millis) -> None:
        """Create the files of a log that has none. If it fails, the next append tries again."""
        assert self._create_directory is not None
        self._create_directory()
        self._segments.active.create_files(now)
        self._create_directory = None
        self._sync_queue.add_directory()

    def _write(self, batch: bytes, header: BatchHeader, now: Millis) -> Appended:
        self.check_usable()
        if self._create_directory is not None:
            self._create_files(now)
        base_offset = self._end
        last_offset = Offset(base_offset + header.last_offset_delta)
        timestamp_type = self._settings.message_timestamp_type
        data, header = place_batch(batch, header, base_offset, timestamp_type, now)
        timestamp = header.max_timestamp
        active = self._segments.active
        if active.should_roll(self._settings, len(data), last_offset, timestamp, now):
            active = self._roll(now)
        active.append(data, last_offset, timestamp)
        self._end = Offset(last_offset + 1)
        if header.producer_id != NO_PRODUCER_ID:
            aborted = self._producers.update(data, 0, header, base_offset, now)
            if aborted is not None:
                active.add_aborted(aborted)
        if self._sync_queue.add(active):
            self._written[self] = None
        return Appended(
            base_offset=base_offset,
            last_offset=last_offset,
            append_ms=now if timestamp_type is TimestampType.LOG_APPEND_TIME else NO_TIMESTAMP,
            start_offset=self._start,
            is_duplicate=False,
        )

    def _roll(self, now: Millis) -> Segment:
        """Roll: start a new active segment. Its log file is created last, so that a failure before
        that changes nothing."""
        old = self._segments.active
        old.index_latest_timestamp()
        old.flush_indexes()
        self._snapshots.take(self._producers, self._end)
        recovery_points = self._checkpoints.recovery_points
        if recovery_points.find(self.topic, self.partition) is None:
            # Only with an entry recovery knows that unsynced segments have no gaps between them.
            recovery_points.put(self.topic, self.partition, self._sync_queue.synced_offset)
            recovery_points.flush()
        new = Segment.create(self._disk, self._directory, self._end, now)
        old.unload_indexes()
        new.set_index_interval(self._settings.index_interval_bytes)
        self._segments.add(new)
        self._sync_queue.add_sealed(old)
        return new

    # Sync

    def take_pending_syncs(self) -> tuple[PendingSync, ...]:
        """The files written since the last call. The caller syncs them, on any thread."""
        return self._sync_queue.take(self._end)

    # Read

    def read(
        self, offset: Offset, max_bytes: int, *, at_least_one: bool, before: Offset | None = None
    ) -> bytes:
        """Encoded batches, starting with the one that contains `offset`. Nothing is decoded.

        The last batch may be truncated, the first never: if it is larger than `max_bytes`, the
        result is that whole batch with `at_least_one`, and empty without. Batches that contain
        offsets from `before` on are not included. Raises CorruptFile for an offset whose batch is
        damaged, unless only its checksum shows that: consumers verify it.
        """
        self.check_usable()
        end = self._end
        if not self._start <= offset <= end:
            reason = f"offset {offset} is not between {self._start} and {end}"
            raise RequestRejected(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        limit = end if before is None else min(before, end)
        if offset >= limit:
            return b""
        return self._segments.read(
            offset, max_bytes, at_least_one=at_least_one, before=limit if limit < end else None
        )

    def batches(self, from_offset: Offset, chunk_bytes: int = READ_BYTES) -> Iterator[bytes]:
        """Chunks of whole and valid batches up to the log end. The log may change between two
        chunks. Damaged batches are reported and skipped."""
        self.check_usable()
        offset = from_offset
        while True:
            offset = max(offset, self._start)
            chunk = self._segments.find_valid_chunk(offset, chunk_bytes)
            if chunk is None:
                return
            yield chunk[1]
            offset = chunk[2]

    def find_by_timestamp(self, timestamp: Millis) -> TimestampAndOffset | None:
        """The first record whose timestamp is at least `timestamp`, or None."""
        self.check_usable()
        return self._segments.find_by_timestamp(timestamp, self._start)

    def find_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the maximum timestamp, or None if the log is empty."""
        self.check_usable()
        return self._segments.find_max_timestamp(self._start)

    def aborted_transactions(self, start: Offset, end: Offset) -> tuple[AbortedTxn, ...]:
        """The aborted transactions that a read_committed consumer must skip in this range."""
        return self._segments.find_aborted(start, end)

    # Retention and DeleteRecords

    def delete_before(self, offset: Offset) -> Offset:
        """Move the log start offset forward to `offset`; returns the new log start offset."""
        self.check_usable()
        if not 0 <= offset <= self._end:
            reason = f"offset {offset} is not between 0 and {self._end}"
            raise RequestRejected(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        if offset > self._start:
            self._checkpoints.start_offsets.put(self.topic, self.partition, offset)
            self._checkpoints.start_offsets.flush()
            self._start = offset
            self._remove_segments(sum(each.base_offset <= offset for each in self._segments) - 1)
        return self._start

    def clean(
        self, now: Millis, budget_bytes: int | None = None, *, may_compact: bool = True
    ) -> CleanResult:
        """Run retention and compaction if they are due, and write checkpoints.

        Compaction reads about `budget_bytes` per call and continues at the next call. Without a
        budget it runs to completion.
        """
        size_before = self.size_bytes
        count = self.expire_records(now)
        self._producers.expire(now)
        if count:
            # Stored before any segment is removed, so that a crash cannot leave a gap.
            self._checkpoints.start_offsets.flush()
            self._remove_segments(count)
        cleaned = CleanResult(
            segments_removed=count,
            bytes_removed=size_before - self.size_bytes,
            start_offset=self._start,
        )
        self.checkpoint()
        plan = self._plan_compaction(now) if self._log_cleaner.is_idle else None
        if not may_compact:
            return replace(cleaned, is_done=self._log_cleaner.is_idle and plan is None)
        if plan is not None:
            self._start_compaction(plan, now)
        return self._log_cleaner.run(cleaned, budget_bytes, self._store_cleaned_to)

    def expire_records(self, now: Millis) -> int:
        """Move the log start behind the segments that retention removes; return their number.

        `clean` stores the log start. If this is called for many partitions first, one write stores
        the log starts of all."""
        self.check_usable()
        count = count_removable_segments(self._segments, self._settings, self._start, now)
        if count == len(self._segments):
            self._roll(now)
        if count:
            self._start = max(self._start, [*self._segments][count].base_offset)
            self._checkpoints.start_offsets.put(self.topic, self.partition, self._start)
        return count

    def compact(self, budget_bytes: int) -> CleanResult:
        """Only continue the compaction round that `clean` has started."""
        self.check_usable()
        cleaned = CleanResult(start_offset=self._start)
        return self._log_cleaner.run(cleaned, budget_bytes, self._store_cleaned_to)

    def _remove_segments(self, count: int) -> None:
        if count:
            self._log_cleaner.cancel()
        for _ in range(count):
            segment = self._segments.remove_first()
            self._sync_queue.discard([segment])
            remove_segment(self._disk, self._directory, segment.base_offset)

    # Compaction

    def _plan_compaction(self, now: Millis) -> CompactionPlan | None:
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

    def _start_compaction(self, plan: CompactionPlan, now: Millis) -> None:
        # Recovery expects the offsets after the recovery point to have no gaps.
        self._checkpoints.recovery_points.flush()
        self._log_cleaner.start(
            Compaction(
                disk=self._disk,
                directory=self._directory,
                plan=plan,
                settings=self._settings,
                limits=self._limits,
                now=now,
                last_records=self._producers.last_records(),
                aborted=[each for segment in self._segments for each in segment.aborted],
            )
        )

    def _replace_segments(self, replacement: SegmentReplacement) -> None:
        kept = replacement.new.base_offset
        self._segment_list.discard({each.base_offset for each in replacement.old} - {kept})
        try:
            new = replace_segments(self._disk, self._directory, replacement.new, replacement.old)
        except StorageError as error:
            # It is unknown which files exist now. After a shortage the next use finds out;
            # otherwise the log is unusable until it is reopened.
            self._failure = error
            raise
        self._sync_queue.discard(replacement.old)
        self._segments.replace(replacement.old, new)

    def _store_cleaned_to(self, offset: Offset) -> None:
        self._checkpoints.cleaned_offsets.put(self.topic, self.partition, offset)

    # Checkpoint and close

    def checkpoint(self) -> None:
        """Flush the indexes, take a producer snapshot and move the recovery point, so that
        recovery after a crash reads little of the log."""
        if self._end != self._checkpointed_end:
            self._segments.active.flush_indexes()
            self._snapshots.take(self._producers, self._end)
            self._checkpointed_end = self._end
        self._sync_queue.sync_sealed()
        self._segment_list.add([each.base_offset for each in self._segments])
        synced_offset = max(self._sync_queue.synced_offset, self._segments.active.base_offset)
        recovery_points = self._checkpoints.recovery_points
        recovery_points.put(self.topic, self.partition, synced_offset)
        # Stored even if it is 0: at a start it shows whether the first segments are missing.
        self._checkpoints.start_offsets.put(self.topic, self.partition, self._start)

    def close(self, now: Millis) -> None:
        """Sync and checkpoint everything, so that the next start needs no recovery."""
        if self._end == self._loaded_end and self._segments.active is self._synced_segment:
            self._log_cleaner.cancel()
            self._segments.close()
            return
        try:
            self.check_usable()
            self._log_cleaner.cancel()
            self._producers.expire(now)
            active = self._segments.active
            active.index_latest_timestamp()
            self.checkpoint()
            active.flush_indexes()
            active.sync()
            self._disk.sync_directory(self._directory)
            self._checkpoints.recovery_points.put(self.topic, self.partition, self._end)
        finally:
            self._segments.close()

    def abandon(self) -> None:
        """Close the files of a deleted partition without writing anything."""
        self._sync_queue.cancel()
        self._log_cleaner.cancel()
        self._segments.close()

    def check_usable(self) -> None:
        """Raises the StorageError that makes this log unusable, if there is one."""
        if isinstance(self._failure, OutOfResources):
            self._complete_replacement()
        if self._failure is not None:
            # Otherwise each raise would add its frames to the traceback of the one before.
            raise self._failure.with_traceback(None)

    def _complete_replacement(self) -> None:
        """Complete or undo a replacement that was interrupted because descriptors or memory were
        short. As after a crash, the names of the files say how far it came."""
        self._log_cleaner.cancel()
        active, old = self._segments.active, self._segments.sealed
        sealed = complete_swap(self._disk, self._directory, active.base_offset)
        self._sync_queue.discard(old)
        for segment in old:
            segment.close()
        self._segments = LogSegments([*sealed, active], self._on_repair)
        self._failure = None
