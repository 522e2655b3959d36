"""Effects of a group member: what the caller must do, in this order. Plain data."""

from collections.abc import Mapping
from enum import StrEnum

from kohort.client.errors import ConsumerError
from kohort.client.member.member_events import CallId, OffsetAndMetadata, RequestId
from kohort.client.rebalances import Rebalance
from kohort.types import BrokerId, Millis, Topic, TopicPartition, value


@value
class BrokerAddress:
    """Where a request goes. Host and port are those that the cluster advertises."""

    node_id: BrokerId
    host: str
    port: int


@value
class SendRequest:
    """Send this to a broker, or to any broker if None, in the newest version both support.

    Exactly one ResponseReceived or RequestFailed follows for its request_id. Requests to one broker
    arrive in order, except JoinGroup and SyncGroup: these wait long for other members, so they use
    their own connection.
    """

    request_id: RequestId
    broker: BrokerAddress | None
    body: object
    timeout_ms: Millis


class AssignmentChange(StrEnum):
    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


@value
class CallListener:
    """Call the listener on the application's thread, then send CallbackReturned.

    The member requests it while the application is in poll, unsubscribe or close. If the
    application has left poll meanwhile, call the listener in the next poll, before any record is
    returned. At most one call is in progress. Assigned partitions are owned before the call;
    revoked and lost partitions are owned until it returns, but no record of theirs is returned once
    the call is known. As in Kafka, an assignment calls the listener even if it adds nothing; a
    revocation or loss only if partitions go.
    """

    change: AssignmentChange
    partitions: frozenset[TopicPartition]
    """Only the partitions that change."""


@value
class AwaitPoll:
    """Send Polled as soon as the application is in poll, or now if it is.

    Listeners are called and positions are read only while the application waits in poll. It also
    keeps an application that waits in one long poll from exceeding max.poll.interval.ms.
    """


@value
class RequestPositions:
    """Reply at once with PositionsReported: positions that are processed and not yet committed."""

    revoking: frozenset[TopicPartition] = frozenset()
    """Return no more records of these: they would be read twice."""


@value
class WatchTopics:
    """Keep metadata of these topics; send TopicsUpdated soon, and after each change.

    They are the subscribed topics; for a leader, those of all members.
    """

    topics: frozenset[Topic]


@value
class CommitCompleted:
    """The result of CommitRequested. Without an error, all of it is committed."""

    call_id: CallId
    error: ConsumerError | None = None


@value
class CommittedFetched:
    """The result of CommittedRequested. Partitions without a committed offset are missing."""

    call_id: CallId
    positions: Mapping[TopicPartition, OffsetAndMetadata]
    error: ConsumerError | None = None


@value
class AutoCommitCompleted:
    """The result of committing the positions of PositionsReported."""

    positions: Mapping[TopicPartition, OffsetAndMetadata]
    error: ConsumerError | None = None


@value
class RebalanceCompleted:
    """A rebalance of this member has ended."""

    rebalance: Rebalance


@value
class MemberFailed:
    """The member cannot continue. The next poll must raise this error."""

    error: ConsumerError


@value
class MemberClosed:
    """The member is closed; it has left the group, or could not reach the coordinator."""


MemberEffect = (
    SendRequest
    | CallListener
    | AwaitPoll
    | RequestPositions
    | WatchTopics
    | CommitCompleted
    | CommittedFetched
    | AutoCommitCompleted
    | RebalanceCompleted
    | MemberFailed
    | MemberClosed
)
