"""Members and rebalances as text: the words for triggers, endings and departures."""

from collections.abc import Mapping
from typing import Final

from kohort.events.schema import EventMember
from kohort.text.numbers import count, duration
from kohort.types import Generation, Millis

_CAUSES: Final[Mapping[str, tuple[str, str]]] = {
    "member-joined": ("a new member", "joined"),
    "subscription-changed": ("a member", "changed its subscription"),
    "leader-rejoined": ("the leader", "joined again"),
    "instance-restarted": ("a static member", "restarted during the assignment"),
    "protocol-changed": ("a static member", "came back with another assignor"),
    "member-left": ("a member", "left"),
    "member-removed": ("a member", "was removed by an administrator"),
    "session-expired": ("a member", "sent no heartbeat within its session timeout"),
    "join-expired": ("a new member", "waited too long to join"),
    "sync-expired": ("a member", "never asked for its assignment"),
}
"""By trigger: who started the rebalance if the member is not known, and what it did."""

_IMPERSONAL: Final[Mapping[str, str]] = {
    "assignment-not-stored": "an assignment could not be stored",
    "over-capacity": "the group had more members than allowed",
    "forced": "a control operation forced a rebalance",
}
"""Triggers that are not an act of one member."""


def cause(trigger: str, who: str | None = None) -> str:
    """A clause: "a member left", or "checkout-3 left" if it is known who."""
    if trigger not in _CAUSES:
        return _IMPERSONAL.get(trigger, trigger.replace("-", " "))
    anyone, deed = _CAUSES[trigger]
    return f"{who or anyone} {deed}"


TRIGGERS: Final[Mapping[str, str]] = {name: cause(name) for name in (*_CAUSES, *_IMPERSONAL)}

ENDINGS: Final[Mapping[str, str]] = {
    "stable": "done",
    "empty": "no member was left",
    "interrupted": "interrupted by another rebalance",
    "abandoned": "the broker stopped during it",
}

DEPARTURES: Final[Mapping[str, str]] = {
    "left": "left",
    "removed": "removed by an administrator",
    "session-expired": "session expired",
    "join-expired": "waited too long to join",
    "sync-expired": "never asked for its assignment",
    "not-rejoined": "did not rejoin in time",
    "group-full": "the group was full",
    "replaced": "restarted under the same name",
    "gone": "gone",
}

_MEMBER_ID_REASON: Final = "need to re-join with the given member-id"
"""What clients send by themselves after they got their member id: it explains nothing."""


def client_reason(reason: str | None) -> str:
    """The reason that a client gave, or nothing if it does not explain anything."""
    return "" if reason is None or reason.startswith(_MEMBER_ID_REASON) else reason


def ended_rebalance(
    *,
    trigger: str,
    initiator: str | None,
    reason: str | None,
    ending: str,
    generation: Generation,
    members: int,
    took_ms: Millis,
) -> str:
    """Why it began and how it ended: "a member left; generation 3 of 2 members, after 1.2 s"."""
    why = cause(trigger, initiator)
    if shown := client_reason(reason):
        why += f' ("{shown}")'
    result = ENDINGS.get(ending, ending)
    if ending == "stable":
        result = f"generation {generation} of {count(members, 'member')}"
    return f"{why}; {result}, after {duration(took_ms)}"


def member_name(party: EventMember) -> str:
    """The name people know: the instance id, else the client id."""
    return party.instance_id or party.client_id or party.member_id


def headline(*, groups: int, critical: int, warnings: int) -> str:
    """The number of groups by status: "8 groups: 2 critical, 3 warnings"."""
    if not groups:
        return "No groups"
    total = count(groups, "group")
    parts = [f"{critical:,} critical"] if critical else []
    if warnings:
        parts.append(count(warnings, "warning"))
    return f"{total}: {', '.join(parts) or ('healthy' if groups == 1 else 'all healthy')}"
