"""Events of a group member: calls of the application, responses of brokers, and the deadline.

Plain data; the time is passed beside each event. A response carries the id of its request, and the
result of an application's call carries the id of the call.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NewType

from kohort.types import Offset, Topic, TopicPartition, value

RequestId = NewType("RequestId", int)
"""Chosen by the member for each request."""

CallId = NewType("CallId", int)
"""Chosen by the application for each call that has a result."""


@value
class OffsetAndMetadata:
    """An offset to commit, or a committed one: the offset of the next record to read."""

    offset: Offset
    metadata: str = ""
    leader_epoch: int = -1
    """Of the last record read; -1 if unknown."""


# From the application


@value
class Subscribed:
    """Replaces the subscribed topics: named ones, or those that match the pattern."""

    topics: frozenset[Topic]


@value
class Unsubscribed:
    """The member leaves the group."""


@value
class Polled:
    """The application is in poll: it is alive and has processed all records it was given."""


@value
class PositionsReported:
    """Positions that are processed and not yet committed; replies to RequestPositions."""

    positions: Mapping[TopicPartition, OffsetAndMetadata]


@value
class CallbackReturned:
    """The listener has returned. If it raised an error, the application gets it elsewhere."""


@value
class CommitRequested:
    call_id: CallId
    positions: Mapping[TopicPartition, OffsetAndMetadata]


@value
class CommittedRequested:
    """Fetch the group's committed offsets."""

    call_id: CallId
    partitions: frozenset[TopicPartition]


@value
class CallCancelled:
    """The application no longer waits for the result."""

    call_id: CallId


@value
class RejoinRequested:
    reason: str


@value
class CloseRequested:
    """Commit processed positions if auto-commit is enabled, then leave the group.

    A static member stays in the group until its session times out, so that it can come back.
    """


# From brokers


class RequestFailure(StrEnum):
    """Why a request has no response."""

    UNREACHABLE = "unreachable"
    DISCONNECTED = "disconnected"
    TIMED_OUT = "timed-out"


@value
class ResponseReceived:
    request_id: RequestId
    body: object
    """The response message of the request's type."""


@value
class RequestFailed:
    request_id: RequestId
    failure: RequestFailure


@value
class TopicsUpdated:
    """The partition counts of all watched topics that exist.

    Those sent after a WatchTopics are about the topics it names.
    """

    partitions: Mapping[Topic, int]


# From the clock


@value
class DeadlineReached:
    """The deadline has passed. Sending it early is harmless."""


MemberEvent = (
    Subscribed
    | Unsubscribed
    | Polled
    | PositionsReported
    | CallbackReturned
    | CommitRequested
    | CommittedRequested
    | CallCancelled
    | RejoinRequested
    | CloseRequested
    | ResponseReceived
    | RequestFailed
    | TopicsUpdated
    | DeadlineReached
)
