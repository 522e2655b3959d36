"""What a member is told: by the program it works for, by brokers, by the clock.

Every event is plain data, and the time comes beside it. Requests are known by the number they were
sent under; questions of the program by a ticket that comes back with the answer.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NewType

from kohort.client.topic_partition import TopicPartition
from kohort.types import Offset, Topic, value

RequestNumber = NewType("RequestNumber", int)
"""Given by the member to each request; the answer comes back under it."""

Question = NewType("Question", int)
"""Given by the program to each question it asks; the answer goes back under it."""


@value
class Position:
    """How far a partition is read, as it is committed: the next record's offset."""

    offset: Offset
    metadata: str = ""
    leader_epoch: int = -1
    """Of the last record read; -1 when unknown."""


# From the program


@value
class Subscribed:
    """These topics, and no others, are wanted: the program said so, or its pattern found them."""

    topics: frozenset[Topic]


@value
class Unsubscribed:
    """Nothing is wanted any more: the group is left."""


@value
class Polled:
    """The program asks for records: it lives, and has done with all it was given before."""


@value
class PositionsTold:
    """What the program has done with, in answer to TellPositions; nothing where nothing moved."""

    positions: Mapping[TopicPartition, Position]


@value
class CallbackReturned:
    """The listener has heard of a change; its error, if it raised one, is the program's to see."""


@value
class CommitAsked:
    question: Question
    positions: Mapping[TopicPartition, Position]


@value
class CommittedAsked:
    """What has the group committed?"""

    question: Question
    partitions: frozenset[TopicPartition]


@value
class Withdrawn:
    """Nobody waits for the answer any more."""

    question: Question


@value
class RejoinAsked:
    reason: str


@value
class Closed:
    """The program ends. What it has done with is committed if it commits by itself.

    A static member that closes stays in the group until its session ends, so that it can come back.
    """


# From brokers


class Loss(StrEnum):
    """Why a request has no answer."""

    UNREACHABLE = "unreachable"
    DISCONNECTED = "disconnected"
    TIMED_OUT = "timed-out"


@value
class Answered:
    number: RequestNumber
    body: object
    """The response as the wire has it, of the type that belongs to the request."""


@value
class Unanswered:
    number: RequestNumber
    loss: Loss


@value
class TopicsSeen:
    """How many partitions each topic has that the member asked for; those that exist, and all.

    What is told after WatchTopics is about the topics that were named there.
    """

    partitions: Mapping[Topic, int]


# From the clock


@value
class Woken:
    """The deadline has come; an early call does no harm."""


Event = (
    Subscribed
    | Unsubscribed
    | Polled
    | PositionsTold
    | CallbackReturned
    | CommitAsked
    | CommittedAsked
    | Withdrawn
    | RejoinAsked
    | Closed
    | Answered
    | Unanswered
    | TopicsSeen
    | Woken
)
