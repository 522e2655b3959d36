"""The names of internal topics, and the partition of `__consumer_offsets` for a group."""

from functools import lru_cache
from typing import Final

from kohort.types import GroupId, Partition, Topic, TopicPartition

CONSUMER_OFFSETS: Final = Topic("__consumer_offsets")
"""Committed offsets and group metadata, in Kafka's own record formats."""

KOHORT_EVENTS: Final = Topic("__kohort_events")
"""What a Kohort node reports about its groups. A stock Kafka has no such topic."""

EVENTS_PARTITION: Final = TopicPartition(KOHORT_EVENTS, Partition(0))
"""Its only partition, so all events are in order."""

TRANSACTION_STATE: Final = Topic("__transaction_state")
SHARE_GROUP_STATE: Final = Topic("__share_group_state")
CLUSTER_METADATA: Final = Topic("__cluster_metadata")

_CACHED_GROUPS_MAX: Final = 16_384
"""Every commit needs the partition, and the hash is slow."""


@lru_cache(maxsize=_CACHED_GROUPS_MAX)
def partition_of(group_id: GroupId, partition_count: int) -> Partition:
    """The partition of `__consumer_offsets` that stores a group, as in Kafka.

    It is the absolute value of Java's string hash modulo the partition count; 0 for the minimum
    int, which has no absolute value.
    """
    units = group_id.encode("utf-16-be", "surrogatepass")
    hash_ = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        hash_ = (31 * hash_ + (high << 8 | low)) & 0xFFFFFFFF
    signed = hash_ - 2**32 if hash_ >= 2**31 else hash_
    return Partition((0 if signed == -(2**31) else abs(signed)) % partition_count)
