"""The name of one partition of one topic: what is assigned, fetched and committed."""

from typing import NamedTuple

from kohort.types import Partition, Topic


class TopicPartition(NamedTuple):
    """Sorts by topic, then by number. A plain pair of the two is equal to it."""

    topic: Topic
    partition: Partition
