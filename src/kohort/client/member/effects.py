"""What a member wants done, in the order it wants it: data for somebody else to carry out."""

from collections.abc import Mapping
from enum import StrEnum

from kohort.client.errors import ConsumerError
from kohort.client.member.events import Position, Question, RequestNumber
from kohort.client.rebalances import Rebalance
from kohort.client.topic_partition import TopicPartition
from kohort.types import BrokerId, Millis, Topic, value


@value
class Broker:
    """Where a request goes. Host and port tell how to reach it, as the cluster names it."""

    node_id: BrokerId
    host: str
    port: int


@value
class Send:
    """Carry this to a broker, any one where none is named, in the newest version both speak.

    Exactly one Answered or Unanswered comes back under its number. Requests to one broker arrive
    there in the order they were sent, but for joins and syncs, which wait long for other members
    and travel beside the rest.
    """

    number: RequestNumber
    broker: Broker | None
    body: object
    timeout_ms: Millis


class Change(StrEnum):
    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


@value
class Call:
    """Tell the listener, on the program's own thread, and come back with CallbackReturned.

    It is asked for while the program is in poll, in unsubscribe or in close; if the program has
    left poll meanwhile, the listener is called in the next one, before any record is handed out.
    At most one is under way. What is assigned is held before the listener hears of it, what is
    revoked or lost until it has heard. No record of a partition that is about to go is handed out
    once the call is known. The listener hears of an assignment also when it adds nothing, as in
    Kafka; of a revocation or loss only when something goes.
    """

    change: Change
    partitions: frozenset[TopicPartition]
    """What comes or goes; the rest stays as it is."""


@value
class AwaitPoll:
    """Say Polled as soon as the program is in poll: at once, if it is there now.

    So that a listener is called, and positions are told, while the program is at rest, and a
    program that waits in one long poll is not taken for one that is stuck.
    """


@value
class TellPositions:
    """Answer with PositionsTold, at once: what the program has done with and not yet committed."""

    leaving: frozenset[TopicPartition] = frozenset()
    """About to go: from now on no record of theirs is handed out, lest it be read twice."""


@value
class WatchTopics:
    """Keep an eye on these topics and tell what is seen with TopicsSeen, soon and on change.

    The program's own, and for a leader those of everyone in its group.
    """

    topics: frozenset[Topic]


@value
class Committed:
    """The answer to CommitAsked. Without an error, all of it is kept."""

    question: Question
    error: ConsumerError | None = None


@value
class CommittedTold:
    """The answer to CommittedAsked; partitions without a commit are missing."""

    question: Question
    positions: Mapping[TopicPartition, Position]
    error: ConsumerError | None = None


@value
class AutoCommitted:
    """What was told with PositionsTold is kept, or why it is not."""

    positions: Mapping[TopicPartition, Position]
    error: ConsumerError | None = None


@value
class Told:
    """A rebalance this member took part in has ended."""

    rebalance: Rebalance


@value
class Failed:
    """The member cannot go on; the program must hear of it at its next poll."""

    error: ConsumerError


@value
class Ended:
    """Closed, and all there was to say has been said, or nobody listened."""


Effect = (
    Send
    | Call
    | AwaitPoll
    | TellPositions
    | WatchTopics
    | Committed
    | CommittedTold
    | AutoCommitted
    | Told
    | Failed
    | Ended
)
