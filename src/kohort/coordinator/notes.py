"""What the coordinator noticed: the story of every rebalance, as data that users will query.

The machine never logs; these values say what a log line would, and more. The vocabulary is
closed: a new trigger or departure is a new member of an enum and breaks the build until handled.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias

from kohort.coordinator.states import GroupState
from kohort.types import (
    ErrorCode,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Partition,
    Topic,
    value,
)


class Trigger(StrEnum):
    """What can begin a rebalance."""

    MEMBER_JOINED = "member-joined"
    SUBSCRIPTION_CHANGED = "subscription-changed"
    LEADER_REJOINED = "leader-rejoined"
    INSTANCE_RESTARTED = "instance-restarted"
    PROTOCOL_CHANGED = "protocol-changed"
    MEMBER_LEFT = "member-left"
    MEMBER_REMOVED = "member-removed"
    SESSION_EXPIRED = "session-expired"
    JOIN_EXPIRED = "join-expired"
    SYNC_EXPIRED = "sync-expired"
    ASSIGNMENT_NOT_STORED = "assignment-not-stored"
    OVER_CAPACITY = "over-capacity"


TRIGGERS: Final[Mapping[Trigger, str]] = {
    Trigger.MEMBER_JOINED: "a member came that was not in the group",
    Trigger.SUBSCRIPTION_CHANGED: "a member joined again with other protocols or metadata",
    Trigger.LEADER_REJOINED: "the leader saw the topics change, or was told to enforce a rebalance",
    Trigger.INSTANCE_RESTARTED: "a static member came back while the generation was completed",
    Trigger.PROTOCOL_CHANGED: "a static member came back with protocols that turn the choice",
    Trigger.MEMBER_LEFT: "a member said that it leaves",
    Trigger.MEMBER_REMOVED: "an administrator removed a static member by its instance id",
    Trigger.SESSION_EXPIRED: "a member was not heard of within its session timeout",
    Trigger.JOIN_EXPIRED: "a new member's first join was parked for too long",
    Trigger.SYNC_EXPIRED: "a member joined but never asked for its assignment",
    Trigger.ASSIGNMENT_NOT_STORED: "the leader's assignment could not be kept",
    Trigger.OVER_CAPACITY: "loaded with more members than the group may have",
}


class Departure(StrEnum):
    """How a membership can end."""

    LEFT = "left"
    REMOVED = "removed"
    SESSION_EXPIRED = "session-expired"
    JOIN_EXPIRED = "join-expired"
    SYNC_EXPIRED = "sync-expired"
    NOT_REJOINED = "not-rejoined"
    GROUP_FULL = "group-full"


DEPARTURES: Final[Mapping[Departure, str]] = {
    Departure.LEFT: "it said that it leaves",
    Departure.REMOVED: "an administrator removed it by its instance id",
    Departure.SESSION_EXPIRED: "it was not heard of within its session timeout",
    Departure.JOIN_EXPIRED: "it was new, and its first join was parked for too long",
    Departure.SYNC_EXPIRED: "it joined but never asked for its assignment",
    Departure.NOT_REJOINED: "it is dynamic, and the time to rejoin was over",
    Departure.GROUP_FULL: "it rejoined after as many others as the group may have",
}


class JoinEnd(StrEnum):
    """What ended a join phase."""

    ALL_JOINED = "all-joined"
    TIMEOUT = "timeout"
    INITIAL_DELAY = "initial-delay"


JOIN_ENDS: Final[Mapping[JoinEnd, str]] = {
    JoinEnd.ALL_JOINED: "nobody else was waited for",
    JoinEnd.TIMEOUT: "the longest rebalance timeout among the members was over",
    JoinEnd.INITIAL_DELAY: "the wait for the rest of a starting fleet was over",
}


class Ending(StrEnum):
    """How a rebalance ends."""

    STABLE = "stable"
    EMPTY = "empty"
    INTERRUPTED = "interrupted"
    ABANDONED = "abandoned"


ENDINGS: Final[Mapping[Ending, str]] = {
    Ending.STABLE: "the leader's assignment was kept",
    Ending.EMPTY: "nobody was left",
    Ending.INTERRUPTED: "another rebalance began before this one's assignment was kept",
    Ending.ABANDONED: "the coordinator shut down in the middle",
}


@value
class Party:
    """Who: enough to find the process behind a member id."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str


@value
class Participant:
    """One member's part in a rebalance: how long it was waited for, what it had and got."""

    party: Party
    join_took_ms: Millis | None
    """From the rebalance's start until its join came; None if it never came."""
    sync_took_ms: Millis | None
    """From the join phase's end until its sync came; None if it had not come by the end."""
    had: bytes
    got: bytes


@value
class Removal:
    party: Party
    departure: Departure


@value
class RebalanceStarted:
    at: Millis
    group_id: GroupId
    generation: Generation
    trigger: Trigger
    culprit: Party | None
    client_reason: str | None
    state_before: GroupState
    waited_for: tuple[MemberId, ...]


@value
class RebalanceEnded:
    """The whole story of one rebalance, told once it is over."""

    at: Millis
    group_id: GroupId
    ending: Ending
    trigger: Trigger
    culprit: Party | None
    client_reason: str | None
    state_before: GroupState
    generation_before: Generation
    generation: Generation
    """The generation formed, or last reached where none was."""
    started_ms: Millis
    join_ended_ms: Millis | None
    join_ended_by: JoinEnd | None
    protocol_type: str | None
    protocol: str | None
    leader: MemberId | None
    participants: tuple[Participant, ...]
    removals: tuple[Removal, ...]


@value
class StateChanged:
    at: Millis
    group_id: GroupId
    before: GroupState
    after: GroupState


@value
class MemberIdIssued:
    at: Millis
    group_id: GroupId
    party: Party


@value
class MemberJoined:
    at: Millis
    group_id: GroupId
    party: Party
    client_reason: str | None


@value
class MemberGone:
    at: Millis
    group_id: GroupId
    party: Party
    departure: Departure
    client_reason: str | None = None


@value
class InstanceReplaced:
    """A static member came back under a new id; `is_quiet` where that needed no rebalance."""

    at: Millis
    group_id: GroupId
    old_member_id: MemberId
    party: Party
    is_quiet: bool


@value
class PendingExpired:
    at: Millis
    group_id: GroupId
    member_id: MemberId


@value
class CommitRefused:
    """Somebody tried to move the group's offsets and was not allowed to: often a zombie."""

    at: Millis
    group_id: GroupId
    member_id: MemberId
    instance_id: InstanceId | None
    generation: Generation
    error: ErrorCode


@value
class OffsetsExpired:
    at: Millis
    group_id: GroupId
    partitions: tuple[tuple[Topic, Partition], ...]


@value
class GroupDeleted:
    at: Millis
    group_id: GroupId
    is_expired: bool


@value
class NotKept:
    """Records could not be kept; what they promised did not happen."""

    at: Millis
    group_ids: tuple[GroupId, ...]
    error: ErrorCode


@value
class NobodyRejoined:
    """Only static members are left and none has rejoined: the join phase is extended."""

    at: Millis
    group_id: GroupId


Note: TypeAlias = (
    RebalanceStarted
    | RebalanceEnded
    | StateChanged
    | MemberIdIssued
    | MemberJoined
    | MemberGone
    | InstanceReplaced
    | PendingExpired
    | CommitRefused
    | OffsetsExpired
    | GroupDeleted
    | NotKept
    | NobodyRejoined
)
