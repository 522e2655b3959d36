"""Which of the oldest segments may go: those before the log's start, the too many, the too old."""

from collections.abc import Sequence

from kohort.log.settings import TopicSettings
from kohort.types import Millis, Offset, value


@value
class Candidate:
    """A segment as retention sees it."""

    base_offset: Offset
    size: int
    latest_ms: Millis
    """When its latest record was written."""


def count_removable(
    segments: Sequence[Candidate], settings: TopicSettings, start_offset: Offset, now: Millis
) -> int:
    """How many segments may go, counted from the first.

    It may be all of them, the growing one included. One that is empty and the last stays.
    """
    count = 0
    while count + 1 < len(segments) and segments[count + 1].base_offset <= start_offset:
        count += 1
    if not settings.is_deleted:
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
