"""A stream's offset, as it stands in Spark's checkpoint. Pure.

    {"orders": {"0": 120, "1": 80}, "$begin": {"orders": {"1": 55}}}

It says which partitions the query held, and up to where it read each. Where a partition does not go
on from the offset before, because it came from another member, or is new, or had lost records,
`$begin` says where the batch begins in it. So two offsets of the checkpoint are all it takes to run
a batch again, whoever holds what by then. No topic can have a name with a dollar sign.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import BadCheckpoint
from kohort.pipeline.source.ranges import Range
from kohort.types import Offset, Partition, Topic, value

_BEGIN: Final = "$begin"

Nested = dict[str, dict[str, int]]


@value
class StreamOffset:
    positions: Mapping[TopicPartition, Offset]
    """The next offset to read, of every partition that the query held."""
    begins: Mapping[TopicPartition, Offset]
    """Where the batch that led here began, if not at the position before."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "StreamOffset":
        try:
            rest = {name: each for name, each in given.items() if name != _BEGIN}
            return cls(positions=unnest(rest), begins=unnest(given.get(_BEGIN, {})))
        except (AttributeError, TypeError, ValueError) as error:
            shown = json.dumps(dict(given))[:200]
            raise BadCheckpoint(
                f"the checkpoint has an offset that this source has not written: {shown}; "
                "each query needs a checkpointLocation of its own"
            ) from error

    def write(self) -> dict[str, Any]:
        """What `read` takes."""
        begins = {_BEGIN: nest(self.begins)} if self.begins else {}
        return {**nest(self.positions), **begins}

    def ranges_since(self, start: "StreamOffset") -> list[Range]:
        """What the batch between two offsets reads, in the order of its partitions."""
        ranges = []
        for partition, stop in sorted(self.positions.items()):
            first = self.begins.get(partition, start.positions.get(partition))
            if first is None or first > stop:
                topic, number = partition
                raise BadCheckpoint(
                    f"the checkpoint does not say where the batch begins in {topic}-{number}"
                )
            ranges.append(Range(partition=partition, first=first, stop=stop))
        return ranges


NOWHERE: Final = StreamOffset(positions={}, begins={})
"""Before the first batch of all."""


def nest(offsets: Mapping[TopicPartition, int]) -> Nested:
    nested: Nested = {}
    for (topic, number), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(number)] = int(offset)
    return nested


def unnest(nested: Mapping[str, Any]) -> dict[TopicPartition, Offset]:
    """ValueError, TypeError or AttributeError where it is none."""
    offsets: dict[TopicPartition, Offset] = {}
    for topic, numbers in nested.items():
        for number, offset in numbers.items():
            if isinstance(offset, bool) or not isinstance(offset, int):
                raise TypeError(f"{offset!r} is no offset")
            offsets[TopicPartition(Topic(topic), Partition(int(number)))] = Offset(offset)
    return offsets
