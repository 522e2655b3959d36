"""What happens in groups, as data that users can query: rebalances, members, refused commits.

The coordinator does not log; it returns these values. The enums are closed: a new trigger or
departure fails the type check until it is handled everywhere.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias

from kohort.coordinator.groups.classic.states import GroupState
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
    FORCED = "forced"


TRIGGERS: Final[Mapping[Trigger, str]] = {
    Trigger.MEMBER_JOINED: "a member joined that was not in the group",
    Trigger.SUBSCRIPTION_CHANGED: "a member joined again with other protocols or metadata",
    Trigger.LEADER_REJOINED: "the leader saw a change of topics, or enforced a rebalance",
    Trigger.INSTANCE_RESTARTED: "a static member restarted while a rebalance was being completed",
    Trigger.PROTOCOL_CHANGED: "a static member restarted and changed the chosen protocol",
    Trigger.MEMBER_LEFT: "a member left",
    Trigger.MEMBER_REMOVED: "an administrator removed a static member by its instance id",
    Trigger.SESSION_EXPIRED: "a member sent no heartbeat within its session timeout",
    Trigger.JOIN_EXPIRED: "a new member's first join was parked for too long",
    Trigger.SYNC_EXPIRED: "a member joined but sent no sync in time",
    Trigger.ASSIGNMENT_NOT_STORED: "the leader's assignment could not be stored",
    Trigger.OVER_CAPACITY: "after loading, the group has more members than allowed",
    Trigger.FORCED: "a control operation forced a rebalance, in a test",
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
    Departure.LEFT: "it left",
    Departure.REMOVED: "an administrator removed it by its instance id",
    Departure.SESSION_EXPIRED: "it sent no heartbeat within its session timeout",
    Departure.JOIN_EXPIRED: "it was new, and its first join was parked for too long",
    Departure.SYNC_EXPIRED: "it joined but sent no sync in time",
    Departure.NOT_REJOINED: "it is a dynamic member and did not rejoin in time",
    Departure.GROUP_FULL: "it rejoined when the group was already full",
}


class JoinEnd(StrEnum):
    """What ended a join phase."""

    ALL_JOINED = "all-joined"
    TIMEOUT = "timeout"
    INITIAL_DELAY = "initial-delay"


JOIN_ENDS: Final[Mapping[JoinEnd, str]] = {
    JoinEnd.ALL_JOINED: "all members had joined",
    JoinEnd.TIMEOUT: "the longest rebalance timeout of the members expired",
    JoinEnd.INITIAL_DELAY: "the initial delay of a new group expired",
}


class RebalanceResult(StrEnum):
    """How a rebalance ends."""

    STABLE = "stable"
    EMPTY = "empty"
    INTERRUPTED = "interrupted"
    ABANDONED = "abandoned"


REBALANCE_RESULTS: Final[Mapping[RebalanceResult, str]] = {
    RebalanceResult.STABLE: "the leader's assignment was stored",
    RebalanceResult.EMPTY: "no member was left",
    RebalanceResult.INTERRUPTED: "another rebalance began before the assignment was stored",
    RebalanceResult.ABANDONED: "the coordinator shut down during the rebalance",
}


@value
class MemberInfo:
    """Identifies a member: enough to find the process behind a member id."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str


@value(kw_only=False)
class RebalanceParticipant:
    """One member in a rebalance: how long it took, its assignments before and after."""

    party: MemberInfo
    join_took_ms: Millis | None
    """From the start of the rebalance to its join; None if it did not join."""
    sync_took_ms: Millis | None
    """From the end of the join phase to its sync; None if it had not synced by the end."""
    had: bytes
    got: bytes


@value
class MemberRemoval:
    party: MemberInfo
    departure: Departure


@value
class RebalanceStarted:
    at: Millis
    group_id: GroupId
    generation: Generation
    trigger: Trigger
    initiator: MemberInfo | None
    client_reason: str | None
    state_before: GroupState
    waited_for: tuple[MemberId, ...]


@value
class RebalanceEnded:
    """A rebalance ended; the event describes all of it."""

    at: Millis
    group_id: GroupId
    ending: RebalanceResult
    trigger: Trigger
    initiator: MemberInfo | None
    client_reason: str | None
    state_before: GroupState
    generation_before: Generation
    generation: Generation
    """The generation that was formed, or the last one if none was."""
    started_ms: Millis
    join_ended_ms: Millis | None
    join_ended_by: JoinEnd | None
    protocol_type: str | None
    protocol: str | None
    leader: MemberId | None
    participants: tuple[RebalanceParticipant, ...]
    removals: tuple[MemberRemoval, ...]


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
    party: MemberInfo


@value
class MemberJoined:
    at: Millis
    group_id: GroupId
    party: MemberInfo
    client_reason: str | None


@value
class MemberGone:
    at: Millis
    group_id: GroupId
    party: MemberInfo
    departure: Departure
    client_reason: str | None = None


@value
class InstanceReplaced:
    """A static member got a new member id; `is_quiet` if that needed no rebalance."""

    at: Millis
    group_id: GroupId
    old_member_id: MemberId
    party: MemberInfo
    is_quiet: bool


@value
class PendingExpired:
    at: Millis
    group_id: GroupId
    member_id: MemberId


@value
class CommitRefused:
    """A commit was refused; often its sender is no longer a member and does not know it."""

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
class AppendFailed:
    """Records could not be stored, so what they would have changed did not happen."""

    at: Millis
    group_ids: tuple[GroupId, ...]
    error: ErrorCode


@value
class JoinPhaseExtended:
    """Only static members are left and none of them rejoined: the join phase is extended."""

    at: Millis
    group_id: GroupId


GroupEvent: TypeAlias = (
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
    | AppendFailed
    | JoinPhaseExtended
)
