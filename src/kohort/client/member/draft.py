"""A rebalance while it lasts: what will be told of it once it has ended."""

from dataclasses import dataclass

from kohort.client.rebalances import Ending, Rebalance
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, MemberId, Millis


@dataclass(slots=True)
class RebalanceDraft:
    began_at: Millis
    reason: str
    member_id: MemberId
    generation: Generation = Generation(-1)
    protocol: str | None = None
    is_leader: bool = False
    members: int | None = None
    join_ms: int = 0
    sync_ms: int = 0
    callback_ms: int = 0
    waited_ms: int = 0
    added: frozenset[TopicPartition] = frozenset()
    revoked: frozenset[TopicPartition] = frozenset()
    lost: frozenset[TopicPartition] = frozenset()

    def end(self, ending: Ending, held: frozenset[TopicPartition], now: Millis) -> Rebalance:
        return Rebalance(
            began_at=self.began_at,
            ended_at=now,
            reason=self.reason,
            ending=ending,
            generation=self.generation,
            member_id=self.member_id,
            protocol=self.protocol,
            is_leader=self.is_leader,
            members=self.members,
            join_ms=Millis(self.join_ms),
            sync_ms=Millis(self.sync_ms),
            callback_ms=Millis(self.callback_ms),
            waited_ms=Millis(self.waited_ms),
            assigned=held,
            added=self.added,
            revoked=self.revoked,
            lost=self.lost,
        )
