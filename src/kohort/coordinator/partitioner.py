"""Which partition of `__consumer_offsets` a group lives in: the same one Kafka would choose."""

from functools import lru_cache
from typing import Final

from kohort.types import GroupId, Partition

_REMEMBERED: Final = 16_384
"""Groups: each is asked about again and again, and the hash takes a while."""


@lru_cache(maxsize=_REMEMBERED)
def partition_of(group_id: GroupId, partition_count: int) -> Partition:
    """The absolute Java hash of the id, modulo; the one hash that has no absolute counts as 0."""
    units = group_id.encode("utf-16-be", "surrogatepass")
    hash_ = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        hash_ = (31 * hash_ + (high << 8 | low)) & 0xFFFFFFFF
    signed = hash_ - 2**32 if hash_ >= 2**31 else hash_
    return Partition((0 if signed == -(2**31) else abs(signed)) % partition_count)
