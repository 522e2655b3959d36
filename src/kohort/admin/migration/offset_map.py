"""Maps source offsets to target offsets, as ranges of both logs. Pure.

If the source has a record at every offset, one range may cover millions. If offsets are missing,
because the log is compacted or has transactions, the range stores the offsets that exist.
"""

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from kohort.types import Offset, value


@value
class MappedRange:
    """Consecutive records of the source, which have consecutive offsets in the target."""

    source_first: Offset
    source_next: Offset
    """After the last record."""
    target: Offset
    """Of the first record."""
    count: int
    gaps: bytes | None = None
    """The source offsets, packed, if there are fewer records than offsets."""

    @property
    def is_dense(self) -> bool:
        return self.gaps is None

    @property
    def target_next(self) -> Offset:
        return Offset(self.target + self.count)


def map_range(offsets: Sequence[Offset], target: Offset) -> MappedRange:
    first, after = offsets[0], Offset(offsets[-1] + 1)
    return MappedRange(
        source_first=first,
        source_next=after,
        target=target,
        count=len(offsets),
        gaps=None if after - first == len(offsets) else _pack(offsets),
    )


def join(before: MappedRange, after: MappedRange) -> MappedRange | None:
    """One range for both, if they are adjacent in both logs."""
    is_one = (
        before.is_dense
        and after.is_dense
        and before.source_next == after.source_first
        and before.target_next == after.target
    )
    if not is_one:
        return None
    return MappedRange(
        source_first=before.source_first,
        source_next=after.source_next,
        target=before.target,
        count=before.count + after.count,
    )


def translate(before: MappedRange, offset: Offset) -> Offset:
    """The target offset at which a reader of source `offset` continues.

    `before` is the last range that starts before the offset. The reader skips no record and reads
    none twice.
    """
    assert before.source_first < offset
    if before.gaps is None:
        records_before = min(offset - before.source_first, before.count)
    else:
        records_before = bisect_left(_unpack(before), offset)
    return Offset(before.target + records_before)


def _pack(offsets: Sequence[Offset]) -> bytes:
    """As differences, which are small and compress well."""
    steps = array("Q", (after - before for before, after in pairwise(offsets)))
    return zlib.compress(steps.tobytes())


def _unpack(mapped: MappedRange) -> list[Offset]:
    assert mapped.gaps is not None
    steps = array("Q")
    steps.frombytes(zlib.decompress(mapped.gaps))
    offsets = [mapped.source_first]
    for step in steps:
        offsets.append(Offset(offsets[-1] + step))
    return offsets
