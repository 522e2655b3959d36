"""A fast path for logs with many similar batches, which avoids decoding them.

A group commits the same partitions repeatedly, so most batches of `__consumer_offsets` differ from
an earlier batch only in some fixed-size fields, the gaps. For such a batch, one comparison finds
the stored result of the earlier one. Other batches take the slow path. The tests of the two users,
`node.group_loader` and `log.key_offset_map`, compare both paths.
"""

from collections.abc import Hashable, Iterable
from struct import Struct
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_SEEN_MAX: Final = 100_000
"""The maximum number of remembered names, see `is_repeated`; limits memory."""

_RECORDS_MAX: Final = 200_000
"""The maximum number of records in all templates; limits memory, about 400 bytes per record."""


class RepeatedBatches(Generic[T]):
    """Repeated uncompressed batches, each with the value that its reader stored."""

    __slots__ = ("_record_count", "_seen", "_templates")

    def __init__(self) -> None:
        self._templates: dict[Hashable, tuple[Struct, dict[tuple[bytes, ...], T]]] = {}
        """For each shape: a Struct that extracts the bytes between the gaps, and the stored value
        for each tuple of these bytes."""
        self._seen: set[Hashable] = set()
        self._record_count = 0

    def find(self, shape: Hashable, body: bytes) -> T | None:
        """The value stored for a batch that differs only in its gaps.

        `shape` contains the header fields that the reader depends on, including the body size.
        """
        found = self._templates.get(shape)
        return None if found is None else found[1].get(found[0].unpack(body))

    def is_repeated(self, name: Hashable) -> bool:
        """Whether a batch of this name was seen before. The name identifies similar batches.

        Only repeated batches are stored, because storing one costs as much as decoding several.
        """
        if name in self._seen:
            return True
        if len(self._seen) < _SEEN_MAX:
            self._seen.add(name)
        return False

    def store(
        self,
        shape: Hashable,
        body: bytes,
        record_count: int,
        gaps: Iterable[tuple[int, int]],
        stored: T,
    ) -> bool:
        """Store a batch as a template. The first batch of a shape determines the gap positions.

        Returns False if this one has other gap positions, or if there are too many templates.
        """
        layout, position = ">", 0
        for start, stop in gaps:
            layout += f"{start - position}s{stop - start}x"
            position = stop
        between = Struct(f"{layout}{len(body) - position}s")
        shape_between, known = self._templates.setdefault(shape, (between, {}))
        if (
            shape_between.format != between.format
            or self._record_count + record_count > _RECORDS_MAX
        ):
            return False
        known[between.unpack(body)] = stored
        self._record_count += record_count
        return True
