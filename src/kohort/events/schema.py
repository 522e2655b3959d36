"""The events of `__kohort_events` as typed values: one class per event, one attribute per field.

The attribute types decide how the parser reads the JSON of a field. The names are a public
contract: fields may be added, but no field is renamed or changes its meaning. Triggers, states and
errors are plain text here, because a newer node may write values that this version does not know.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    TopicPartition,
    value,
)


@value
class EventMember:
    """The identity of a member: enough to find the process behind a member id."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str


@value
class EventParticipant:
    """One member in a rebalance: how long it took, its partitions before and after."""

    party: EventMember
    join_took_ms: Millis | None
    sync_took_ms: Millis | None
    had: tuple[TopicPartition, ...] | None
    got: tuple[TopicPartition, ...] | None


@value
class RemovedMember:
    """A member that was removed during a rebalance."""

    party: EventMember
    departure: str


@value
class RebalanceStartedEvent:
    generation: Generation
    trigger: str
    initiator: EventMember | None
    client_reason: str | None
    state_before: str
    waited_for: tuple[MemberId, ...]


@value
class RebalanceEndedEvent:
    ending: str
    trigger: str
    initiator: EventMember | None
    client_reason: str | None
    state_before: str
    generation_before: Generation
    generation: Generation
    started_ms: Millis
    join_ended_ms: Millis | None
    join_ended_by: str | None
    protocol_type: str | None
    protocol: str | None
    leader: MemberId | None
    participants: tuple[EventParticipant, ...]
    removals: tuple[RemovedMember, ...]


@value
class StateChangedEvent:
    before: str
    after: str


@value
class MemberIdIssuedEvent:
    party: EventMember


@value
class MemberJoinedEvent:
    party: EventMember
    client_reason: str | None


@value
class MemberGoneEvent:
    party: EventMember
    departure: str
    client_reason: str | None


@value
class InstanceReplacedEvent:
    old_member_id: MemberId
    party: EventMember
    is_quiet: bool


@value
class PendingExpiredEvent:
    member_id: MemberId


@value
class JoinPhaseExtendedEvent:
    pass


@value
class CommitRefusedEvent:
    member_id: MemberId
    instance_id: InstanceId | None
    generation: Generation
    error: str


@value
class OffsetsExpiredEvent:
    partitions: tuple[TopicPartition, ...]


@value
class GroupDeletedEvent:
    is_expired: bool


@value
class AppendFailedEvent:
    """Records could not be appended; the changes of these groups were not stored."""

    group_ids: tuple[GroupId, ...]
    error: str


EventDetails: TypeAlias = (
    RebalanceStartedEvent
    | RebalanceEndedEvent
    | StateChangedEvent
    | MemberIdIssuedEvent
    | MemberJoinedEvent
    | MemberGoneEvent
    | InstanceReplacedEvent
    | PendingExpiredEvent
    | JoinPhaseExtendedEvent
    | CommitRefusedEvent
    | OffsetsExpiredEvent
    | GroupDeletedEvent
    | AppendFailedEvent
)

EVENTS: Final[Mapping[str, type[EventDetails]]] = {
    "rebalance-started": RebalanceStartedEvent,
    "rebalance-ended": RebalanceEndedEvent,
    "state-changed": StateChangedEvent,
    "member-id-issued": MemberIdIssuedEvent,
    "member-joined": MemberJoinedEvent,
    "member-gone": MemberGoneEvent,
    "instance-replaced": InstanceReplacedEvent,
    "pending-expired": PendingExpiredEvent,
    "join-phase-extended": JoinPhaseExtendedEvent,
    "commit-refused": CommitRefusedEvent,
    "offsets-expired": OffsetsExpiredEvent,
    "group-deleted": GroupDeletedEvent,
    "not-kept": AppendFailedEvent,
}
"""All events, by the name in their field `event`."""


@value
class Event:
    """One event: the fields that all events have, and those of its own kind."""

    name: str
    at: Millis
    group_ids: tuple[GroupId, ...]
    """One group, except in not-kept events."""
    details: EventDetails | None
    """None if this version does not know the event."""
    body: dict[str, Any]
    """The JSON object, with the fields that this version does not know."""

    @property
    def group_id(self) -> GroupId:
        return self.group_ids[0]
