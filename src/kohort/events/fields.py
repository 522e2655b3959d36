"""The meaning of every event and of every field, as docs/reference/events.md shows it."""

from collections.abc import Mapping
from typing import Final

from kohort.events.schema import (
    AppendFailedEvent,
    CommitRefusedEvent,
    EventMember,
    EventParticipant,
    GroupDeletedEvent,
    InstanceReplacedEvent,
    JoinPhaseExtendedEvent,
    MemberGoneEvent,
    MemberIdIssuedEvent,
    MemberJoinedEvent,
    OffsetsExpiredEvent,
    PendingExpiredEvent,
    RebalanceEndedEvent,
    RebalanceStartedEvent,
    RemovedMember,
    StateChangedEvent,
)

OBJECTS: Final[Mapping[str, type]] = {
    "party": EventMember,
    "participant": EventParticipant,
    "removal": RemovedMember,
}
"""The objects inside events, by the name that the page gives them."""

MEANINGS: Final[Mapping[type, str]] = {
    RebalanceStartedEvent: "A rebalance began.",
    RebalanceEndedEvent: "A rebalance ended; the event describes all of it.",
    StateChangedEvent: "A group changed its state.",
    MemberIdIssuedEvent: "A new member got its member id and must join again with it.",
    MemberJoinedEvent: "A member joined that was not in the group.",
    MemberGoneEvent: "A member is no longer in the group.",
    InstanceReplacedEvent: "A static member returned with a new member id.",
    PendingExpiredEvent: "A member id was issued, and no member joined with it in time.",
    JoinPhaseExtendedEvent: "The rebalance timeout is over, only static members are left and none "
    "of them has rejoined: the coordinator waits for one more timeout.",
    CommitRefusedEvent: "The coordinator refused an offset commit: often one of a member that was "
    "removed and does not know it yet.",
    OffsetsExpiredEvent: "Committed offsets were removed, because they were unused for the "
    "retention time.",
    GroupDeletedEvent: "A group was removed.",
    AppendFailedEvent: "Records could not be appended to the log; the changes of these groups "
    "were not stored.",
    EventMember: "The identity of a member: enough to find the process behind a member id.",
    EventParticipant: "One member in a rebalance.",
    RemovedMember: "A member that was removed because of a rebalance, or during it.",
}

ALWAYS: Final[Mapping[str, tuple[str, str]]] = {
    "event": ("text", "which event this is: one of the headings below"),
    "at": ("number", "when the coordinator noticed, in ms since 1970; also the record's timestamp"),
    "group_id": ("text", "the group; also the record's key"),
    "part": (
        "number",
        "only in an event that was too large for one record: which part of it this is, from 1",
    ),
    "parts": ("number", "only in such an event: the number of its parts"),
}
"""Fields of every event, with their kinds. Only events in several parts have the last two."""

_INITIATOR: Final = "the member that started it; null if there is none, or if it is not known"
_CLIENT_REASON: Final = "the reason that the client sent, if it sent one (KIP-800)"

FIELDS: Final[Mapping[type, Mapping[str, str]]] = {
    RebalanceStartedEvent: {
        "generation": "the generation of the group before the rebalance",
        "trigger": "what started it, from the list of triggers",
        "initiator": _INITIATOR,
        "client_reason": _CLIENT_REASON,
        "state_before": "the state of the group before",
        "waited_for": "the member ids that must join again",
    },
    RebalanceEndedEvent: {
        "ending": "how it ended, from the list of endings",
        "trigger": "what started it, from the list of triggers",
        "initiator": _INITIATOR,
        "client_reason": _CLIENT_REASON,
        "state_before": "the state of the group before it began",
        "generation_before": "the generation before it began",
        "generation": "the generation it formed, or the last one reached if it formed none",
        "started_ms": "when it began; its duration is `at` minus this, unless the clock was set "
        "meanwhile",
        "join_ended_ms": "when the last awaited join arrived, or the time for it was over; null if "
        "it did not get that far",
        "join_ended_by": "what ended the wait for joins, from the list below; null likewise",
        "protocol_type": "`consumer` for consumers; null if the group had none yet",
        "protocol": "the assignment protocol the members agreed on; null if no member is left",
        "leader": "the member id of the leader; null if no member is left",
        "participants": "all members of the new generation, or of the group if none was formed, in "
        "the order of their joining",
        "removals": "all members that were removed because of it, and why",
    },
    StateChangedEvent: {"before": "the state before", "after": "the state after"},
    MemberIdIssuedEvent: {"party": "the member that got it"},
    MemberJoinedEvent: {"party": "the member that joined", "client_reason": _CLIENT_REASON},
    MemberGoneEvent: {
        "party": "the member that is gone",
        "departure": "how the membership ended, from the list of departures",
        "client_reason": _CLIENT_REASON,
    },
    InstanceReplacedEvent: {
        "old_member_id": "its previous member id; a process that still uses it is fenced",
        "party": "its identity now",
        "is_quiet": "whether the generation continues; if not, a rebalance follows",
    },
    PendingExpiredEvent: {"member_id": "the member id that was not used"},
    JoinPhaseExtendedEvent: {},
    CommitRefusedEvent: {
        "member_id": "the member id in the request; empty if it had none",
        "instance_id": "its `group.instance.id`, if it has one",
        "generation": "the generation in the request; -1 if the client is not a member",
        "error": "the name of the error in the response",
    },
    OffsetsExpiredEvent: {"partitions": "the partitions whose offsets were removed, by topic"},
    GroupDeletedEvent: {
        "is_expired": "whether it was removed because it was unused; if not, a client deleted it",
    },
    AppendFailedEvent: {
        "group_ids": "the groups of the records; the record's key if it is one, else the key is "
        "null",
        "error": "the name of the log's error",
    },
    EventMember: {
        "member_id": "the member id",
        "instance_id": "its `group.instance.id`; null for a dynamic member",
        "client_id": "its `client.id`",
        "client_host": "the address of its connection, as Kafka writes it",
    },
    EventParticipant: {
        "party": "which member",
        "join_took_ms": "from the beginning until its join arrived; null if it never arrived",
        "sync_took_ms": "from the end of the joins until its sync arrived; null if it had not "
        "arrived by the end",
        "had": "its partitions before, by topic; null if it is not the assignment of a consumer, "
        "or cannot be read",
        "got": "its partitions now, by topic; empty if the rebalance gave it none",
    },
    RemovedMember: {
        "party": "the member that is gone",
        "departure": "how the membership ended, from the list of departures",
    },
}
"""Besides `at` and `group_id`, which every event has; not-kept has `group_ids` instead."""
