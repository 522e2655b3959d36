"""Log cleaning of one partition: selects segments for retention, plans and runs compaction."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from kohort.log.compaction import (
    Compaction,
    CompactionPlan,
    CompactionStats,
    SegmentReplacement,
    Step,
)
from kohort.log.errors import StorageError, without_frames
from kohort.log.log_segments import LogSegments
from kohort.log.segment import Segment
from kohort.log.topic_config import TopicSettings
from kohort.types import Millis, Offset, value

_NEVER: Final = 2**63 - 1


@value
class CleanResult:
    """The result of cleaning."""

    segments_removed: int = 0
    bytes_removed: int = 0
    start_offset: Offset
    bytes_compacted: int = 0
    """Bytes that compaction has read, whether or not the round is finished."""
    compacted: CompactionStats | None = None
    is_done: bool = True
    """False while a compaction round waits to start or to continue."""
    failure: StorageError | None = None
    """Why a compaction round was cancelled."""

    @property
    def has_changes(self) -> bool:
        return bool(self.segments_removed or self.compacted or self.failure)


# Retention


@value
class RetentionCandidate:
    """The properties of a segment that retention uses."""

    base_offset: Offset
    size: int
    latest_ms: Millis
    """The latest timestamp of the records."""


def count_removable(
    segments: Sequence[RetentionCandidate],
    settings: TopicSettings,
    start_offset: Offset,
    now: Millis,
) -> int:
    """How many of the oldest segments retention removes.

    All of them, including the active one, may be removed. An empty active segment is kept.
    """
    count = 0
    while count + 1 < len(segments) and segments[count + 1].base_offset <= start_offset:
        count += 1
    if not settings.has_retention:
        return count
    removable = len(segments) if segments[-1].size else len(segments) - 1
    if settings.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - settings.retention_bytes
        while count < removable and segments[count].size <= excess:
            excess -= segments[count].size
            count += 1
    if settings.retention_ms >= 0:
        while count < removable and now - segments[count].latest_ms > settings.retention_ms:
            count += 1
    return count


def count_removable_segments(
    segments: LogSegments, settings: TopicSettings, start_offset: Offset, now: Millis
) -> int:
    """How many of the oldest segments retention removes now."""
    candidates: list[RetentionCandidate] = []
    latest_ms = segments.active.created_ms
    for segment in reversed([*segments]):
        # DEVIATION: for a segment without timestamps Kafka uses the file's modification time.
        # Here it gets the latest timestamp of the next segment.
        latest_ms = segment.latest[0] if segment.latest[0] >= 0 else latest_ms
        candidates.append(
            RetentionCandidate(
                base_offset=segment.base_offset, size=segment.size, latest_ms=latest_ms
            )
        )
    return count_removable(candidates[::-1], settings, start_offset, now)


# Compaction


def plan_compaction(
    segments: LogSegments,
    settings: TopicSettings,
    *,
    dirty_from: Offset,
    last_stable_offset: Offset,
    now: Millis,
) -> CompactionPlan | None:
    """The next compaction round, or None if none is due."""
    if not settings.is_compacted:
        return None
    dirty = _find_dirty(segments, dirty_from)
    dirty_to = min(
        segments.active.base_offset,
        _find_base(segments, last_stable_offset),
        _find_first_uncleanable(dirty, settings, now),
    )
    dirty = [segment for segment in dirty if segment.base_offset < dirty_to]
    cleanable = [segment for segment in segments.sealed if segment.base_offset < dirty_to]
    dirty_bytes = sum(segment.size for segment in dirty)
    total_bytes = sum(segment.size for segment in cleanable)
    if not dirty_bytes:
        return None
    ratio = dirty_bytes / total_bytes
    if ratio <= settings.min_cleanable_dirty_ratio and not _is_overdue(dirty, settings, now):
        return None
    return CompactionPlan(segments=tuple(cleanable), dirty_from=dirty_from, dirty_to=dirty_to)


def _find_dirty(segments: LogSegments, dirty_from: Offset) -> list[Segment]:
    """The sealed segments that have offsets from `dirty_from` on."""
    sealed = segments.sealed
    ends = [segment.base_offset for segment in [*segments][1:]]
    return [segment for segment, end in zip(sealed, ends, strict=True) if end > dirty_from]


def _find_base(segments: LogSegments, offset: Offset) -> Offset:
    """The base offset of the segment that contains an offset."""
    return max(each.base_offset for each in segments if each.base_offset <= offset)


def _find_first_uncleanable(dirty: list[Segment], settings: TopicSettings, now: Millis) -> Offset:
    """The base offset of the first segment that is too recent for compaction."""
    if settings.min_compaction_lag_ms > 0:
        for segment in dirty:
            if segment.latest[0] > now - settings.min_compaction_lag_ms:
                return segment.base_offset
    return Offset(_NEVER)


def _is_overdue(dirty: list[Segment], settings: TopicSettings, now: Millis) -> bool:
    if settings.max_compaction_lag_ms == _NEVER:
        return False
    first = min((each.first_timestamp for each in dirty if each.first_timestamp > 0), default=now)
    return first < now - settings.max_compaction_lag_ms


class LogCleaner:
    """Runs compaction rounds in steps.

    The log may be written and read between two steps. Call `cancel` before removing segments.
    """

    def __init__(self, replace_segments: Callable[[SegmentReplacement], None]) -> None:
        self._replace_segments = replace_segments
        self._round: Compaction | None = None
        self._steps: Iterator[Step] = iter(())

    @property
    def is_idle(self) -> bool:
        return self._round is None

    def start(self, compaction: Compaction) -> None:
        self._round = compaction
        self._steps = compaction.run()

    def run(
        self, cleaned: CleanResult, budget_bytes: int | None, finish: Callable[[Offset], None]
    ) -> CleanResult:
        """Run the round until the budget is spent. At the end of the round, calls `finish` with
        the offset up to which the log is compacted."""
        if self._round is None:
            return cleaned
        spent = 0
        try:
            for step in self._steps:
                if isinstance(step, SegmentReplacement):
                    self._replace_segments(step)
                else:
                    spent += step.bytes_read
                if budget_bytes is not None and spent >= budget_bytes:
                    return replace(cleaned, bytes_compacted=spent, is_done=False)
        except StorageError as error:
            self.cancel()
            return replace(cleaned, bytes_compacted=spent, failure=without_frames(error))
        compacted = self._round.report()
        self._round = None
        finish(compacted.cleaned_to)
        return replace(cleaned, bytes_compacted=spent, compacted=compacted)

    def cancel(self) -> None:
        """Remove the unfinished segment. Finished replacements stay."""
        if self._round is not None:
            with contextlib.suppress(StorageError):
                self._round.abandon()
            self._round = None
