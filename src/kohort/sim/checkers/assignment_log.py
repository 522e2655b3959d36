"""The last generation that assigned each partition to each member, from SyncGroup responses.

It has no rule of its own; other checkers use it to find the later claim to a partition.
"""

from kohort.types import TopicPartition
from kohort.wire.consumer_protocol import decode_assignment

_Key = tuple[str, str, TopicPartition]


class AssignmentLog:
    def __init__(self) -> None:
        self._assigned_in: dict[_Key, int] = {}

    def reported(self, group: str, member_id: str, generation: int, assignment: bytes) -> None:
        for topic in decode_assignment(assignment).assigned_partitions if assignment else ():
            for index in topic.partitions:
                self._assigned_in[group, member_id, TopicPartition(topic.topic, index)] = generation

    def find(self, group: str, member_id: str, partition: TopicPartition) -> int:
        """-1 if there is none."""
        return self._assigned_in.get((group, member_id, partition), -1)

    def forgotten(self) -> None:
        """Generations were lost, so a higher number is not always a later one."""
        self._assigned_in.clear()
