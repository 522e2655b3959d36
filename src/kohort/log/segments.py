"""The segments of one partition in order of their offsets, and which of them are open."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from kohort.log.segment import Segment
from kohort.types import Offset


class Segments:
    """At least one: the last, which grows, is always open. Few of the others are."""

    def __init__(self, segments: Sequence[Segment], open_max: int) -> None:
        assert segments
        self._segments = list(segments)
        self._open_max = open_max
        self._open: list[Segment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(tuple(self._segments))

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def sealed(self) -> list[Segment]:
        return self._segments[:-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def from_offset(self, offset: int) -> Iterator[Segment]:
        """The segment that could hold an offset, and those after it, opened one by one."""
        at = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset)
        for segment in self._segments[max(0, at - 1) :]:
            self._use(segment)
            yield segment

    def next_base(self, segment: Segment, end_offset: Offset) -> Offset:
        """Where the offsets of a segment end."""
        at = self._segments.index(segment) + 1
        return self._segments[at].base_offset if at < len(self._segments) else end_offset

    def add(self, segment: Segment) -> None:
        assert segment.base_offset > self.active.base_offset
        self._remember(self.active)
        self._segments.append(segment)

    def remove_first(self) -> Segment:
        assert len(self._segments) > 1
        segment = self._segments.pop(0)
        self._close(segment)
        return segment

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        at = self._segments.index(old[0])
        assert self._segments[at : at + len(old)] == list(old)
        for segment in old:
            self._close(segment)
        self._segments[at : at + len(old)] = [new]

    def close(self) -> None:
        for segment in self._segments:
            segment.close()
        self._open.clear()

    def _use(self, segment: Segment) -> None:
        if segment is not self._segments[-1]:
            self._remember(segment)

    def _remember(self, segment: Segment) -> None:
        if segment in self._open:
            self._open.remove(segment)
        self._open.append(segment)
        while len(self._open) > self._open_max:
            self._open.pop(0).close()

    def _close(self, segment: Segment) -> None:
        if segment in self._open:
            self._open.remove(segment)
        segment.close()
