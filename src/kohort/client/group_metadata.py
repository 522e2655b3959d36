"""How a consumer stands in its group."""

from kohort.client.member.machine import MemberState
from kohort.types import Generation, GroupId, InstanceId, MemberId, value


@value
class GroupMetadata:
    group_id: GroupId
    generation: Generation
    """-1 while it is in none."""
    member_id: MemberId
    """Empty until the coordinator has given it one."""
    instance_id: InstanceId | None
    state: MemberState

    @property
    def is_stable(self) -> bool:
        """Whether it knows what is its own, and no rebalance is under way that it has heard of."""
        return self.state is MemberState.STABLE
