"""Kinds of clients, told apart by what a broker sees of them: names, reasons, habits.

The reasons are those the clients send under KIP-800; librdkafka speaks an older version of the
protocol, which has none.
"""

from enum import StrEnum
from typing import Final

from kohort.types import value


class Reason(StrEnum):
    """Why a member joins or leaves, in the words that Java's and our own consumer send."""

    FIRST = ""
    SUBSCRIBED = "the consumer has subscribed"
    GIVEN_ID = "need to re-join with the given member-id: {member_id}"
    REBALANCING = "group is already rebalancing"
    REVOKING = "need to revoke partitions and re-join"
    TOPICS_CHANGED = "cached metadata has changed"
    SUBSCRIPTION_CHANGED = "subscription has changed"
    ENFORCED = "rebalance enforced by user"
    SYNC_FAILED = "rebalance failed due to RebalanceInProgressException"
    NOT_KEPT = "rebalance failed due to CoordinatorNotAvailableException"
    UNKNOWN = "encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"
    GAVE_UP = "consumer pro-actively leaving the group"
    CLOSED = "the consumer is being closed"
    POLL_EXPIRED = "consumer poll timeout has expired."


@value
class Make:
    name: str
    default_client_id: str
    """What a program is called that gives itself no name."""
    first_reason: Reason
    tells_reasons: bool
    commits_all: bool
    """Whether a commit names every partition it holds, also those where nothing was read."""
    leader_epoch: int
    session_ms: int
    commit_ms: int

    def say(self, reason: Reason, member_id: str = "") -> str | None:
        return reason.format(member_id=member_id) if self.tells_reasons else None


JAVA: Final = Make(
    name="java",
    default_client_id="consumer-{group}-1",
    first_reason=Reason.FIRST,
    tells_reasons=True,
    commits_all=True,
    leader_epoch=3,
    session_ms=45_000,
    commit_ms=5_000,
)

LIBRDKAFKA: Final = Make(
    name="librdkafka",
    default_client_id="rdkafka",
    first_reason=Reason.FIRST,
    tells_reasons=False,
    commits_all=False,
    leader_epoch=-1,
    session_ms=45_000,
    commit_ms=5_000,
)

KOHORT: Final = Make(
    name="kohort",
    default_client_id="kohort",
    first_reason=Reason.SUBSCRIBED,
    tells_reasons=True,
    commits_all=True,
    leader_epoch=0,
    session_ms=45_000,
    commit_ms=5_000,
)

MAKES: Final = (JAVA, LIBRDKAFKA, KOHORT)
