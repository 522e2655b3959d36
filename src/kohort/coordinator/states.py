"""The five states of a classic group: how each is entered and how each answers.

Rules of this file: every legal transition stands in LEGAL, and every answer that depends on the
state alone stands in ANSWERS; the machine looks both up and decides nothing about them elsewhere.
docs/group-states.md is generated from here.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Final, TypeAlias

from kohort.types import ErrorCode


class GroupState(StrEnum):
    """The names are the ones the protocol uses on the wire."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

MEANING: Final[Mapping[GroupState, str]] = {
    EMPTY: "no members; there may be committed offsets, which expire from here",
    PREPARING: "a rebalance has begun and waits for the members to join",
    COMPLETING: "the members have joined a new generation and wait for the leader's assignment",
    STABLE: "the leader's assignment is kept and every member can learn its share",
    DEAD: "removed, or no longer coordinated here",
}

LEGAL: Final[Mapping[GroupState, Mapping[GroupState, str]]] = {
    EMPTY: {
        PREPARING: "a member joins",
        DEAD: "deleted, expired or given up",
    },
    PREPARING: {
        COMPLETING: "all members have joined, or the time for it is over",
        EMPTY: "the phase ends and nobody is left",
        DEAD: "given up",
    },
    COMPLETING: {
        STABLE: "the leader's assignment is kept",
        PREPARING: "a member comes, goes, dies or changes, or the assignment cannot be kept",
        DEAD: "given up",
    },
    STABLE: {
        PREPARING: "a member comes, goes, dies or changes, or the leader joins again",
        DEAD: "given up",
    },
    DEAD: {},
}
"""From a state to each state it may be left for, and what leads there."""


class Question(StrEnum):
    """What the state is asked. A join is three questions, by what the coordinator knows of it."""

    JOIN_NEW = "join of a new member"
    JOIN_KNOWN = "join with a known member id"
    JOIN_INSTANCE = "join of a known instance under no id"
    SYNC = "sync"
    HEARTBEAT = "heartbeat"
    LEAVE = "leave"
    COMMIT = "commit by a member"
    COMMIT_TRANSACTION = "commit in a transaction"
    COMMIT_SIMPLE = "commit by nobody (generation -1)"
    FETCH = "offset fetch"
    DELETE_OFFSETS = "delete offsets"
    DELETE_GROUP = "delete group"
    DESCRIBE = "describe"


class Answer(Enum):
    """What the machine does where it does not refuse."""

    ACCEPT = "accepted"
    ACCEPT_AND_REARM = "accepted; the session starts anew"
    PARK = "parked until the phase ends"
    CURRENT = "answered at once from the present generation"
    REBALANCE = "begins a rebalance"
    REBALANCE_IF_CHANGED = "begins a rebalance if the member's protocols changed, else *current*"
    REBALANCE_IF_LEADER = "begins a rebalance if leader or changed, else *current*"
    REBALANCE_IF_PROTOCOL = "begins a rebalance if another protocol is chosen, else *current*"
    RECHECK = "member removed; the join phase may end with it"
    ACCEPT_UNSUBSCRIBED = "accepted for topics its consumers do not read; others: NON_EMPTY_GROUP"
    NOTHING = "answered as if there were nothing"


_UNKNOWN, _GONE = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.COORDINATOR_NOT_AVAILABLE
_BUSY = ErrorCode.REBALANCE_IN_PROGRESS

Row: TypeAlias = Mapping[GroupState, Answer | ErrorCode]

ANSWERS: Final[Mapping[Question, Row]] = {
    Question.JOIN_NEW: {
        EMPTY: Answer.REBALANCE,
        PREPARING: Answer.PARK,
        COMPLETING: Answer.REBALANCE,
        STABLE: Answer.REBALANCE,
        DEAD: _GONE,
    },
    Question.JOIN_KNOWN: {
        EMPTY: _UNKNOWN,
        PREPARING: Answer.PARK,
        COMPLETING: Answer.REBALANCE_IF_CHANGED,
        # The leader alone may rebalance a stable group without a change of its own: it has seen
        # one in the topics.
        STABLE: Answer.REBALANCE_IF_LEADER,
        DEAD: _GONE,
    },
    Question.JOIN_INSTANCE: {
        # An empty group knows no instance, so this one is new to it.
        EMPTY: Answer.REBALANCE,
        PREPARING: Answer.PARK,
        # The leader may already be assigning to the old id, so this generation is lost.
        COMPLETING: Answer.REBALANCE,
        STABLE: Answer.REBALANCE_IF_PROTOCOL,
        DEAD: _GONE,
    },
    Question.SYNC: {
        EMPTY: _UNKNOWN,
        PREPARING: _BUSY,
        COMPLETING: Answer.PARK,
        STABLE: Answer.CURRENT,
        DEAD: _GONE,
    },
    Question.HEARTBEAT: {
        EMPTY: _UNKNOWN,
        # The session starts anew here too: the member lives, it only has yet to rejoin.
        PREPARING: _BUSY,
        COMPLETING: Answer.ACCEPT_AND_REARM,
        STABLE: Answer.ACCEPT_AND_REARM,
        DEAD: _GONE,
    },
    Question.LEAVE: {
        EMPTY: _UNKNOWN,
        PREPARING: Answer.RECHECK,
        COMPLETING: Answer.REBALANCE,
        STABLE: Answer.REBALANCE,
        DEAD: _GONE,
    },
    Question.COMMIT: {
        EMPTY: _UNKNOWN,
        # The members' grace: what they finished before rejoining may still be committed.
        PREPARING: Answer.ACCEPT_AND_REARM,
        COMPLETING: _BUSY,
        STABLE: Answer.ACCEPT_AND_REARM,
        DEAD: _GONE,
    },
    Question.COMMIT_TRANSACTION: {
        EMPTY: Answer.ACCEPT,
        PREPARING: Answer.ACCEPT,
        COMPLETING: Answer.ACCEPT,
        STABLE: Answer.ACCEPT,
        DEAD: _GONE,
    },
    Question.COMMIT_SIMPLE: {
        EMPTY: Answer.ACCEPT,
        PREPARING: _UNKNOWN,
        COMPLETING: _UNKNOWN,
        STABLE: _UNKNOWN,
        DEAD: _GONE,
    },
    Question.FETCH: {
        EMPTY: Answer.ACCEPT,
        PREPARING: Answer.ACCEPT,
        COMPLETING: Answer.ACCEPT,
        STABLE: Answer.ACCEPT,
        DEAD: Answer.NOTHING,
    },
    Question.DELETE_OFFSETS: {
        EMPTY: Answer.ACCEPT,
        PREPARING: Answer.ACCEPT_UNSUBSCRIBED,
        COMPLETING: Answer.ACCEPT_UNSUBSCRIBED,
        STABLE: Answer.ACCEPT_UNSUBSCRIBED,
        DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
    },
    Question.DELETE_GROUP: {
        EMPTY: Answer.ACCEPT,
        PREPARING: ErrorCode.NON_EMPTY_GROUP,
        COMPLETING: ErrorCode.NON_EMPTY_GROUP,
        STABLE: ErrorCode.NON_EMPTY_GROUP,
        DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
    },
    Question.DESCRIBE: {
        EMPTY: Answer.ACCEPT,
        PREPARING: Answer.ACCEPT,
        COMPLETING: Answer.ACCEPT,
        STABLE: Answer.CURRENT,
        DEAD: Answer.NOTHING,
    },
}
"""How each state answers each question: something to do, or an error to refuse with."""
