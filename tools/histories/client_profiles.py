"""Client libraries as a broker sees them: default client ids, join reasons and commit behaviour.

The reasons are those the clients send under KIP-800. librdkafka uses an older version of the
protocol, which has none.
"""

from enum import StrEnum
from typing import Final

from kohort.types import InstanceId, Topic, value


class Reason(StrEnum):
    """Why a member joins or leaves, as the Java consumer and Kohort's consumer write it."""

    FIRST = ""
    SUBSCRIBED = "the consumer has subscribed"
    GIVEN_ID = "need to re-join with the given member-id: {member_id}"
    REBALANCING = "group is already rebalancing"
    REVOKING = "need to revoke partitions and re-join"
    TOPICS_CHANGED = "cached metadata has changed"
    SUBSCRIPTION_CHANGED = "subscription has changed"
    ENFORCED = "rebalance enforced by user"
    SYNC_FAILED = "rebalance failed due to RebalanceInProgressException"
    NOT_STORED = "rebalance failed due to CoordinatorNotAvailableException"
    UNKNOWN = "encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"
    GAVE_UP = "consumer pro-actively leaving the group"
    CLOSED = "the consumer is being closed"
    POLL_EXPIRED = "consumer poll timeout has expired."


@value
class ClientProfile:
    name: str
    default_client_id: str
    """The client id of a program that does not set one."""
    first_reason: Reason
    sends_reasons: bool
    commits_all: bool
    """Whether a commit has every assigned partition, also those without progress."""
    leader_epoch: int
    session_ms: int
    commit_ms: int

    def reason_text(self, reason: Reason, member_id: str = "") -> str | None:
        return reason.format(member_id=member_id) if self.sends_reasons else None


JAVA: Final = ClientProfile(
    name="java",
    default_client_id="consumer-{group}-1",
    first_reason=Reason.FIRST,
    sends_reasons=True,
    commits_all=True,
    leader_epoch=3,
    session_ms=45_000,
    commit_ms=5_000,
)

LIBRDKAFKA: Final = ClientProfile(
    name="librdkafka",
    default_client_id="rdkafka",
    first_reason=Reason.FIRST,
    sends_reasons=False,
    commits_all=False,
    leader_epoch=-1,
    session_ms=45_000,
    commit_ms=5_000,
)

KOHORT: Final = ClientProfile(
    name="kohort",
    default_client_id="kohort",
    first_reason=Reason.SUBSCRIBED,
    sends_reasons=True,
    commits_all=True,
    leader_epoch=0,
    session_ms=45_000,
    commit_ms=5_000,
)

CLIENT_PROFILES: Final = (JAVA, LIBRDKAFKA, KOHORT)


@value
class MemberConfig:
    client: ClientProfile
    client_id: str
    host: str
    instance_id: InstanceId | None = None
    topics: frozenset[Topic]
    assignors: tuple[str, ...]
    """In order of preference."""
    session_ms: int
    rebalance_ms: int = 300_000
    """max.poll.interval.ms, which is also the rebalance timeout."""
    heartbeat_ms: int = 3_000
    commit_ms: int | None
    """None for a program that never commits."""
    poll_ms: int = 400
    """The longest time between two polls."""
    assign_ms: int = 8
    """How long its assignor takes when it is the leader."""
    keeps_revoked: bool = False
    """It goes on processing and committing partitions that were revoked."""
    metadata: str = ""
    """The metadata of its committed offsets."""
