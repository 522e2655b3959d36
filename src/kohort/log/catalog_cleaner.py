"""Cleans all partitions of a catalog: retention, compaction, and the removal of deleted topics.

With a budget, a call does a small part, so that requests do not wait long for it.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from kohort.log.catalog_file import CatalogChange
from kohort.log.catalog_journal import CatalogJournal
from kohort.log.errors import StorageError, without_frames
from kohort.log.log_cleaner import CleanResult
from kohort.log.partition import PartitionLog
from kohort.log.partition_directories import PartitionDirectories
from kohort.types import Millis, Partition, Topic, value

_FULL_PASS_INTERVAL_MS: Final = 1_000
"""The interval of passes over all partitions while one of them is being compacted."""

_PARTITIONS_PER_STEP: Final = 32
_REMOVED_PER_STEP: Final = 4
"""Partitions cleaned, and directories of deleted topics removed, by a call of `clean` with a
budget. They bound how long requests wait for it."""


@value
class PartitionCleanResult:
    topic: Topic
    partition: Partition
    cleaned: CleanResult


@value
class CatalogCleanResult:
    """The results of the partitions where cleaning changed something or failed."""

    partitions: tuple[PartitionCleanResult, ...]
    is_done: bool
    """False if the budget was not sufficient: call `clean` again soon."""
    failure: str | None
    """Why the checkpoints could not be written. The next call tries again."""


class CatalogCleaner:
    def __init__(
        self,
        logs: Callable[[], Sequence[PartitionLog]],
        flush_checkpoints: Callable[[], None],
        directories: PartitionDirectories,
        journal: CatalogJournal,
    ) -> None:
        self._files = logs
        self._flush_checkpoints = flush_checkpoints
        self._directories = directories
        self._journal = journal
        self._cleaning: deque[PartitionLog] = deque()
        """The partitions that the current pass has not reached yet."""
        self._is_pass_done = True
        self._compacting: PartitionLog | None = None
        self._last_full_pass_ms = Millis(0)

    def clean(self, now: Millis, budget_bytes: int | None = None) -> CatalogCleanResult:
        """Run retention in all partitions, compaction in one partition after the other, and remove
        the directories of deleted topics.

        With a budget, a call handles a limited number of partitions and directories, and
        compaction reads about `budget_bytes`. Compaction finishes one partition before the next, so
        that only one holds its keys in memory. During a compaction round most calls only continue
        it, because a pass over many partitions takes longer than a compaction step.
        """
        is_limited = budget_bytes is not None
        if self._compacting is not None and self._compacting.is_deleted:
            self._compacting = None
        removal_failure = self._remove_deleted(_REMOVED_PER_STEP if is_limited else None)
        if (
            self._compacting is not None
            and budget_bytes is not None
            and not self._cleaning
            # The clock may have been set back.
            and 0 <= now - self._last_full_pass_ms < _FULL_PASS_INTERVAL_MS
        ):
            return self._continue_compaction(self._compacting, budget_bytes)
        if not self._cleaning:
            self._cleaning.extend(self._files())
            self._is_pass_done = True
            self._last_full_pass_ms = now
        cleaned = self._clean_some(now, budget_bytes, _PARTITIONS_PER_STEP if is_limited else None)
        is_done, failure = self._end_pass()
        return CatalogCleanResult(
            partitions=tuple(cleaned),
            is_done=is_done and (not self._directories.has_deleted or removal_failure is not None),
            failure=failure or removal_failure,
        )

    def _end_pass(self) -> tuple[bool, str | None]:
        """If all partitions are cleaned, write the checkpoints. Returns whether there is nothing
        more to do, and why the checkpoints could not be written."""
        if self._cleaning:
            return False, None
        try:
            self._flush_checkpoints()
        except StorageError as error:
            return self._is_pass_done, str(error)
        return self._is_pass_done, None

    def _clean_some(
        self, now: Millis, budget_bytes: int | None, count: int | None
    ) -> list[PartitionCleanResult]:
        """Clean the next partitions of the pass."""
        cleaned: list[PartitionCleanResult] = []
        left = budget_bytes
        for log in self._take_next(now, count):
            may_compact = self._compacting in (None, log) and (left is None or left > 0)
            result = self._clean_partition(log, now, left, may_compact=may_compact)
            self._is_pass_done = self._is_pass_done and result.is_done
            if left is not None:
                left -= result.bytes_compacted
            if may_compact:
                self._compacting = None if result.is_done else log
            if result.has_changes:
                cleaned.append(
                    PartitionCleanResult(topic=log.topic, partition=log.partition, cleaned=result)
                )
        return cleaned

    def _take_next(self, now: Millis, count: int | None) -> list[PartitionLog]:
        """The next partitions of the pass. Their log starts are moved already, so that the first
        one that removes segments stores those of all."""
        count = len(self._cleaning) if count is None else min(count, len(self._cleaning))
        taken = [self._cleaning.popleft() for _ in range(count)]
        logs = [log for log in taken if not log.is_deleted]
        for log in logs:
            with contextlib.suppress(StorageError):  # cleaning the partition reports it
                log.expire_records(now)
        return logs

    def _remove_deleted(self, count: int | None) -> str | None:
        """Returns why it failed; the next call tries again."""
        if not self._directories.has_deleted:
            return None
        try:
            renamed = tuple(self._directories.remove_some(count))
            if renamed:
                self._journal.write(CatalogChange(removed=renamed))
                for topic_id in renamed:
                    self._directories.forget(topic_id)
        except StorageError as error:
            return str(error)
        return None

    def _continue_compaction(self, log: PartitionLog, budget_bytes: int) -> CatalogCleanResult:
        """Continue the current compaction round. After success `is_done` is False, because other
        rounds may be due. After a failure it is True, to avoid an immediate retry."""
        try:
            result = log.compact(budget_bytes)
        except StorageError as error:
            result = CleanResult(start_offset=log.start_offset, failure=without_frames(error))
        if result.is_done:
            self._compacting = None
        cleaned = PartitionCleanResult(topic=log.topic, partition=log.partition, cleaned=result)
        return CatalogCleanResult(
            partitions=(cleaned,) if result.has_changes else (),
            is_done=result.failure is not None,
            failure=None,
        )

    @staticmethod
    def _clean_partition(
        log: PartitionLog, now: Millis, budget_bytes: int | None, *, may_compact: bool
    ) -> CleanResult:
        try:
            return log.clean(now, budget_bytes, may_compact=may_compact)
        except StorageError as error:
            return CleanResult(start_offset=log.start_offset, failure=without_frames(error))
