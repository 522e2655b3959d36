"""What the events of `__kohort_events` are called, and what each of their fields means.

These names are a promise to whoever queries the topic: fields may be added, and none is renamed
or changes its meaning. `docs/events.md` is written from here.
"""

from collections.abc import Mapping
from typing import Final

from kohort.coordinator.notes import (
    CommitRefused,
    GroupDeleted,
    InstanceReplaced,
    MemberGone,
    MemberIdIssued,
    MemberJoined,
    NobodyRejoined,
    Note,
    NotKept,
    OffsetsExpired,
    Participant,
    Party,
    PendingExpired,
    RebalanceEnded,
    RebalanceStarted,
    Removal,
    StateChanged,
)

KINDS: Final[Mapping[type[Note], str]] = {
    RebalanceStarted: "rebalance-started",
    RebalanceEnded: "rebalance-ended",
    StateChanged: "state-changed",
    MemberIdIssued: "member-id-issued",
    MemberJoined: "member-joined",
    MemberGone: "member-gone",
    InstanceReplaced: "instance-replaced",
    PendingExpired: "pending-expired",
    NobodyRejoined: "nobody-rejoined",
    CommitRefused: "commit-refused",
    OffsetsExpired: "offsets-expired",
    GroupDeleted: "group-deleted",
    NotKept: "not-kept",
}

MEANINGS: Final[Mapping[type, str]] = {
    RebalanceStarted: "A rebalance began.",
    RebalanceEnded: "The whole story of one rebalance, told once it is over.",
    StateChanged: "A group went from one state to another.",
    MemberIdIssued: "A new member was given its id and told to join again with it.",
    MemberJoined: "A member came that was not in the group.",
    MemberGone: "A member is out.",
    InstanceReplaced: "A static member came back under a new member id.",
    PendingExpired: "An id was given out and nobody came back with it.",
    NobodyRejoined: "The time to rejoin was over, only static members are left and none of them "
    "had rejoined: they are waited for once more.",
    CommitRefused: "Somebody tried to move the group's offsets and was not allowed to: often a "
    "member that is out and does not know it yet.",
    OffsetsExpired: "Offsets were let go of, since nobody had needed them for the retention time.",
    GroupDeleted: "A group was removed.",
    NotKept: "The log did not take the coordinator's records; what they would have changed did "
    "not happen.",
    Party: "Who: enough to find the process behind a member id.",
    Participant: "One member's part in a rebalance.",
    Removal: "A member that is out because of a rebalance, or in the course of it.",
}

ALWAYS: Final[Mapping[str, tuple[str, str]]] = {
    "event": ("text", "which event this is: one of the headings below"),
    "at": ("number", "when the coordinator noticed, in ms since 1970; also the record's timestamp"),
    "group_id": ("text", "the group; also the record's key"),
    "part": (
        "number",
        "only in an event that was too large for one record: which part of it this is, from 1",
    ),
    "parts": ("number", "only there: how many parts the event has"),
}
"""Fields of every event, with their kinds; the last two are no field of a note."""

_CULPRIT: Final = "who made it begin; null where nobody did, or it is not known any more"
_CLIENT_REASON: Final = "what the client itself gave as its reason, if it did (KIP-800)"

FIELDS: Final[Mapping[type, Mapping[str, str]]] = {
    RebalanceStarted: {
        "generation": "the generation the group was in",
        "trigger": "what made it begin, from the list of triggers",
        "culprit": _CULPRIT,
        "client_reason": _CLIENT_REASON,
        "state_before": "the state of the group before",
        "waited_for": "the members, by id, that must join again",
    },
    RebalanceEnded: {
        "ending": "how it ended, from the list of endings",
        "trigger": "what made it begin, from the list of triggers",
        "culprit": _CULPRIT,
        "client_reason": _CLIENT_REASON,
        "state_before": "the state of the group before it began",
        "generation_before": "the generation before it began",
        "generation": "the generation it formed, or the last one reached if it formed none",
        "started_ms": "when it began; it took `at` less this",
        "join_ended_ms": "when the last join that was waited for came, or the time for it was "
        "over; null if it did not get that far",
        "join_ended_by": "what ended the wait for joins, from the list below; null likewise",
        "protocol_type": "`consumer` for consumers; null where the group had none yet",
        "protocol": "the assignment protocol the members agreed on; null where nobody is left",
        "leader": "the member id of whoever assigns; null where nobody is left",
        "participants": "everyone in the new generation, or in the group if none was formed, in "
        "the order of their joining",
        "removals": "everyone who is out because of it, and why",
    },
    StateChanged: {"before": "the state before", "after": "the state since"},
    MemberIdIssued: {"party": "who was given it"},
    MemberJoined: {"party": "who joined", "client_reason": _CLIENT_REASON},
    MemberGone: {
        "party": "who is out",
        "departure": "how the membership ended, from the list of departures",
        "client_reason": _CLIENT_REASON,
    },
    InstanceReplaced: {
        "old_member_id": "the member id it had before; whoever still uses it is fenced",
        "party": "who it is now",
        "is_quiet": "whether the generation simply went on; else a rebalance follows",
    },
    PendingExpired: {"member_id": "the id that nobody came back with"},
    NobodyRejoined: {},
    CommitRefused: {
        "member_id": "who tried, as it named itself; empty where it named nobody",
        "instance_id": "its `group.instance.id`, if it has one",
        "generation": "the generation it believes in; -1 where it is no member",
        "error": "the name of the error it was told",
    },
    OffsetsExpired: {"partitions": "whose offsets: the partitions of each topic"},
    GroupDeleted: {
        "is_expired": "whether it went by itself, since nobody needed it; else it was asked for",
    },
    NotKept: {
        "group_ids": "the groups the records were of; the record's key if it is one, else the key "
        "is null",
        "error": "the name of the error the log gave",
    },
    Party: {
        "member_id": "the member id",
        "instance_id": "its `group.instance.id`; null for a dynamic member",
        "client_id": "its `client.id`",
        "client_host": "the address it came from, as Kafka writes it",
    },
    Participant: {
        "party": "which member",
        "join_took_ms": "from the beginning until its join came; null if it never came",
        "sync_took_ms": "from the end of the joins until it asked for its assignment; null if it "
        "had not by the end",
        "had": "the partitions of each topic it had before; null if it is no consumer's "
        "assignment, or not one that can be read",
        "got": "the partitions of each topic it has now; empty if the rebalance gave it none",
    },
    Removal: {"party": "who is out", "departure": "how, from the list of departures"},
}
"""Beside `at` and `group_id`, which every event has; not-kept has `group_ids` instead."""

SPELLED: Final[Mapping[tuple[type, str], str]] = {
    (Participant, "had"): "topics or null",
    (Participant, "got"): "topics or null",
    (OffsetsExpired, "partitions"): "topics",
}
"""Fields that are JSON of another kind than the note has: an object, topic to partitions."""
