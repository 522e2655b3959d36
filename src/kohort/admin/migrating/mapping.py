"""Which offset of B a record of A has: stretches of both logs that belong together. Pure.

Where A has a record for every offset, one stretch may stand for millions. Where offsets are missing
in A, since its log was compacted or holds transactions, the stretch says which it has.
"""

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from kohort.types import Offset, value


@value
class Stretch:
    """Records that follow each other in A, and have one offset after the other in B."""

    source_first: Offset
    source_next: Offset
    """After the last one."""
    target: Offset
    """Of the first one."""
    count: int
    gaps: bytes | None = None
    """The offsets in A, packed, where there are fewer records than offsets."""

    @property
    def is_dense(self) -> bool:
        return self.gaps is None

    @property
    def target_next(self) -> Offset:
        return Offset(self.target + self.count)


def make_stretch(offsets: Sequence[Offset], target: Offset) -> Stretch:
    first, after = offsets[0], Offset(offsets[-1] + 1)
    return Stretch(
        source_first=first,
        source_next=after,
        target=target,
        count=len(offsets),
        gaps=None if after - first == len(offsets) else _pack(offsets),
    )


def join(before: Stretch, after: Stretch) -> Stretch | None:
    """Both as one, if nothing lies between them on either side."""
    is_one = (
        before.is_dense
        and after.is_dense
        and before.source_next == after.source_first
        and before.target_next == after.target
    )
    if not is_one:
        return None
    return Stretch(
        source_first=before.source_first,
        source_next=after.source_next,
        target=before.target,
        count=before.count + after.count,
    )


def translate(before: Stretch, offset: Offset) -> Offset:
    """What a reader at `offset` of A reads next in B.

    `before` is the last stretch that begins before the offset. All that it has read lies before
    the answer, and nothing that it has not: never ahead, and nothing twice.
    """
    assert before.source_first < offset
    if before.gaps is None:
        passed = min(offset - before.source_first, before.count)
    else:
        passed = bisect_left(_unpack(before), offset)
    return Offset(before.target + passed)


def _pack(offsets: Sequence[Offset]) -> bytes:
    """As distances, which are small and alike."""
    steps = array("Q", (after - before for before, after in pairwise(offsets)))
    return zlib.compress(steps.tobytes())


def _unpack(stretch: Stretch) -> list[Offset]:
    assert stretch.gaps is not None
    steps = array("Q")
    steps.frombytes(zlib.decompress(stretch.gaps))
    offsets = [stretch.source_first]
    for step in steps:
        offsets.append(Offset(offsets[-1] + step))
    return offsets
