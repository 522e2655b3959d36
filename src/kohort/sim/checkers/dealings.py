"""Which generation gave a partition to a member last, as the node told that member.

No rule, but what rules ask about: whose claim to a partition is the later one.
"""

from kohort.client.topic_partition import TopicPartition
from kohort.wire.embedded import decode_assignment

_Key = tuple[str, str, TopicPartition]


class Dealings:
    def __init__(self) -> None:
        self._dealt: dict[_Key, int] = {}

    def told(self, group: str, member_id: str, generation: int, assignment: bytes) -> None:
        for topic in decode_assignment(assignment).assigned_partitions if assignment else ():
            for index in topic.partitions:
                self._dealt[group, member_id, TopicPartition(topic.topic, index)] = generation

    def find(self, group: str, member_id: str, partition: TopicPartition) -> int:
        """-1 where none did."""
        return self._dealt.get((group, member_id, partition), -1)

    def forgotten(self) -> None:
        """Generations were lost: a higher number need not be a later one any more."""
        self._dealt.clear()
