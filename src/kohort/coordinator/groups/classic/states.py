"""The five states of a classic group: its transitions, and the response in each state.

LEGAL has all transitions. ACTIONS has all responses that depend only on the state. No other code
decides these. docs/reference/group-states.md is generated from here.
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
    EMPTY: "no members; there may be committed offsets, which expire from this time on",
    PREPARING: "a rebalance began and waits for the members to join",
    COMPLETING: "the members have joined a new generation and wait for the leader's assignment",
    STABLE: "the leader's assignment is stored and every member can get its own",
    DEAD: "removed, or no longer coordinated here",
}

LEGAL: Final[Mapping[GroupState, Mapping[GroupState, str]]] = {
    EMPTY: {
        PREPARING: "a member joins",
        DEAD: "deleted, expired or no longer coordinated here",
    },
    PREPARING: {
        COMPLETING: "all members have joined, or the timeout expired",
        EMPTY: "the join phase ends and no member is left",
        DEAD: "no longer coordinated here",
    },
    COMPLETING: {
        STABLE: "the leader's assignment is stored",
        PREPARING: "a member joins, leaves, expires or changes, the assignment cannot be stored, "
        "or a rebalance is forced",
        DEAD: "no longer coordinated here",
    },
    STABLE: {
        PREPARING: "a member joins, leaves, expires or changes, the leader joins again, "
        "or a rebalance is forced",
        DEAD: "no longer coordinated here",
    },
    DEAD: {},
}
"""The legal next states of each state, with what causes the transition."""


class GroupRequest(StrEnum):
    """The requests whose response depends on the state.

    JoinGroup has three entries: new member, known member id, known instance id.
    """

    JOIN_NEW = "join of a new member"
    JOIN_KNOWN = "join with a known member id"
    JOIN_INSTANCE = "join of a known instance without a member id"
    SYNC = "sync"
    HEARTBEAT = "heartbeat"
    LEAVE = "leave"
    COMMIT = "commit by a member"
    COMMIT_TRANSACTION = "commit in a transaction"
    COMMIT_SIMPLE = "commit without a member (generation -1)"
    FETCH = "offset fetch"
    DELETE_OFFSETS = "delete offsets"
    DELETE_GROUP = "delete group"
    DESCRIBE = "describe"


class StateAction(Enum):
    """What the coordinator does if it does not refuse the request."""

    ACCEPT = "accepted"
    ACCEPT_AND_REARM = "accepted; the session timeout restarts"
    PARK = "parked until the phase ends"
    CURRENT = "answered at once from the current generation"
    REBALANCE = "begins a rebalance"
    REBALANCE_IF_CHANGED = "begins a rebalance if the member's protocols changed, else *current*"
    REBALANCE_IF_LEADER = "begins a rebalance if leader or changed, else *current*"
    REBALANCE_IF_PROTOCOL = "begins a rebalance if another protocol is chosen, else *current*"
    RECHECK = "member removed; the join phase may end with it"
    ACCEPT_UNSUBSCRIBED = (
        "accepted for topics that no member subscribes to; NON_EMPTY_GROUP if the protocol type is "
        "not consumer"
    )
    NOTHING = "answered as if the group did not exist"


_UNKNOWN, _GONE = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.COORDINATOR_NOT_AVAILABLE
_BUSY = ErrorCode.REBALANCE_IN_PROGRESS

Row: TypeAlias = Mapping[GroupState, StateAction | ErrorCode]

ACTIONS: Final[Mapping[GroupRequest, Row]] = {
    GroupRequest.JOIN_NEW: {
        EMPTY: StateAction.REBALANCE,
        PREPARING: StateAction.PARK,
        COMPLETING: StateAction.REBALANCE,
        STABLE: StateAction.REBALANCE,
        DEAD: _GONE,
    },
    GroupRequest.JOIN_KNOWN: {
        EMPTY: _UNKNOWN,
        PREPARING: StateAction.PARK,
        COMPLETING: StateAction.REBALANCE_IF_CHANGED,
        # If its protocols are unchanged, only the leader's join starts a rebalance: the leader
        # rejoins when topics have changed.
        STABLE: StateAction.REBALANCE_IF_LEADER,
        DEAD: _GONE,
    },
    GroupRequest.JOIN_INSTANCE: {
        # An empty group has no static members, so this one is new.
        EMPTY: StateAction.REBALANCE,
        PREPARING: StateAction.PARK,
        # The leader may already be assigning to the old id, so the group rebalances again.
        COMPLETING: StateAction.REBALANCE,
        STABLE: StateAction.REBALANCE_IF_PROTOCOL,
        DEAD: _GONE,
    },
    GroupRequest.SYNC: {
        EMPTY: _UNKNOWN,
        PREPARING: _BUSY,
        COMPLETING: StateAction.PARK,
        STABLE: StateAction.CURRENT,
        DEAD: _GONE,
    },
    GroupRequest.HEARTBEAT: {
        EMPTY: _UNKNOWN,
        # The session restarts here too: the member is alive, it only has to rejoin.
        PREPARING: _BUSY,
        COMPLETING: StateAction.ACCEPT_AND_REARM,
        STABLE: StateAction.ACCEPT_AND_REARM,
        DEAD: _GONE,
    },
    GroupRequest.LEAVE: {
        EMPTY: _UNKNOWN,
        PREPARING: StateAction.RECHECK,
        COMPLETING: StateAction.REBALANCE,
        STABLE: StateAction.REBALANCE,
        DEAD: _GONE,
    },
    GroupRequest.COMMIT: {
        EMPTY: _UNKNOWN,
        # Members may still commit what they processed before they rejoin.
        PREPARING: StateAction.ACCEPT_AND_REARM,
        COMPLETING: _BUSY,
        STABLE: StateAction.ACCEPT_AND_REARM,
        DEAD: _GONE,
    },
    GroupRequest.COMMIT_TRANSACTION: {
        EMPTY: StateAction.ACCEPT,
        PREPARING: StateAction.ACCEPT,
        COMPLETING: StateAction.ACCEPT,
        STABLE: StateAction.ACCEPT,
        DEAD: _GONE,
    },
    GroupRequest.COMMIT_SIMPLE: {
        EMPTY: StateAction.ACCEPT,
        PREPARING: _UNKNOWN,
        COMPLETING: _UNKNOWN,
        STABLE: _UNKNOWN,
        DEAD: _GONE,
    },
    GroupRequest.FETCH: {
        EMPTY: StateAction.ACCEPT,
        PREPARING: StateAction.ACCEPT,
        COMPLETING: StateAction.ACCEPT,
        STABLE: StateAction.ACCEPT,
        DEAD: StateAction.NOTHING,
    },
    GroupRequest.DELETE_OFFSETS: {
        EMPTY: StateAction.ACCEPT,
        PREPARING: StateAction.ACCEPT_UNSUBSCRIBED,
        COMPLETING: StateAction.ACCEPT_UNSUBSCRIBED,
        STABLE: StateAction.ACCEPT_UNSUBSCRIBED,
        DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
    },
    GroupRequest.DELETE_GROUP: {
        EMPTY: StateAction.ACCEPT,
        PREPARING: ErrorCode.NON_EMPTY_GROUP,
        COMPLETING: ErrorCode.NON_EMPTY_GROUP,
        STABLE: ErrorCode.NON_EMPTY_GROUP,
        DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
    },
    GroupRequest.DESCRIBE: {
        EMPTY: StateAction.ACCEPT,
        PREPARING: StateAction.ACCEPT,
        COMPLETING: StateAction.ACCEPT,
        STABLE: StateAction.CURRENT,
        DEAD: StateAction.NOTHING,
    },
}
"""How each state answers each request: an action, or an error."""
