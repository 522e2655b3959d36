"""What is due in a log: which segments may go, and whether compaction is worth a round."""

from typing import Final

from kohort.log.compaction import Compacted, Plan
from kohort.log.retention import Candidate, count_removable
from kohort.log.segment import Segment
from kohort.log.segments import Segments
from kohort.log.settings import TopicSettings
from kohort.types import Millis, Offset, value

_NEVER: Final = 2**63 - 1


@value
class Cleaned:
    """What cleaning did."""

    segments_removed: int = 0
    bytes_removed: int = 0
    start_offset: Offset
    bytes_compacted: int = 0
    """Read by compaction, whether or not it got done."""
    compacted: Compacted | None = None
    is_done: bool = True
    """False while a round of compaction waits to begin or to go on."""
    failure: str | None = None
    """Why a round of compaction was given up; the log is as it was."""

    @property
    def has_news(self) -> bool:
        return bool(self.segments_removed or self.compacted or self.failure)


def find_removable(
    segments: Segments, settings: TopicSettings, start_offset: Offset, now: Millis
) -> int:
    """How many segments may go, counted from the first."""
    candidates: list[Candidate] = []
    latest_ms = segments.active.created_ms
    for segment in reversed([*segments]):
        # DEVIATION: without any timestamp Kafka asks when the file was changed. Here such a
        # segment counts as no older than its successor.
        latest_ms = segment.latest[0] if segment.latest[0] >= 0 else latest_ms
        candidates.append(
            Candidate(base_offset=segment.base_offset, size=segment.size, latest_ms=latest_ms)
        )
    return count_removable(candidates[::-1], settings, start_offset, now)


def plan_compaction(
    segments: Segments,
    settings: TopicSettings,
    *,
    dirty_from: Offset,
    last_stable_offset: Offset,
    now: Millis,
) -> Plan | None:
    """What a round would be about, or None if none is due."""
    if not settings.is_compacted:
        return None
    dirty = _find_dirty(segments, dirty_from)
    dirty_to = min(
        segments.active.base_offset,
        _find_base(segments, last_stable_offset),
        _find_young(dirty, settings, now),
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
    return Plan(segments=tuple(cleanable), dirty_from=dirty_from, dirty_to=dirty_to)


def _find_dirty(segments: Segments, dirty_from: Offset) -> list[Segment]:
    """The sealed segments that reach past an offset."""
    sealed = segments.sealed
    ends = [segment.base_offset for segment in [*segments][1:]]
    return [segment for segment, end in zip(sealed, ends, strict=True) if end > dirty_from]


def _find_base(segments: Segments, offset: Offset) -> Offset:
    """Where the segment that holds an offset begins."""
    return max(each.base_offset for each in segments if each.base_offset <= offset)


def _find_young(dirty: list[Segment], settings: TopicSettings, now: Millis) -> Offset:
    """Where the first segment begins that is too young for compaction."""
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
