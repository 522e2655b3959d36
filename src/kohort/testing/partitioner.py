"""Kafka's default partitioner: records with a key by its hash, others to the partitions in turn."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from kohort.types import Topic, TopicPartition

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_INT32: Final = 0xFFFFFFFF


class Partitioner:
    """Records without a key go to one partition after the other, from the first one on.

    DEVIATION: Kafka's producer fills a whole batch before it changes the partition (KIP-794). In a
    test of a few records all of them would be in one partition.
    """

    def __init__(self) -> None:
        self._next: defaultdict[Topic, int] = defaultdict(int)

    def choose(self, partitions: Sequence[TopicPartition], key: bytes | None) -> TopicPartition:
        """One of the partitions of a topic."""
        if key is not None:
            return partitions[(murmur2(key) & 0x7FFFFFFF) % len(partitions)]
        topic = partitions[0].topic
        number = self._next[topic]
        self._next[topic] = number + 1
        return partitions[number % len(partitions)]

    def forget(self, topic: Topic) -> None:
        """Begin with the first partition again, because the topic is deleted."""
        self._next.pop(topic, None)


def murmur2(data: bytes) -> int:
    """The 32-bit hash of Kafka's producers, unsigned."""
    hash_ = _SEED ^ len(data)
    whole = len(data) & ~3
    for pos in range(0, whole, 4):
        word = int.from_bytes(data[pos : pos + 4], "little") * _FACTOR & _INT32
        word = (word ^ word >> 24) * _FACTOR & _INT32
        hash_ = (hash_ * _FACTOR & _INT32) ^ word
    if rest := data[whole:]:
        hash_ = (hash_ ^ int.from_bytes(rest, "little")) * _FACTOR & _INT32
    hash_ = (hash_ ^ hash_ >> 13) * _FACTOR & _INT32
    return hash_ ^ hash_ >> 15
