"""Events of `__kohort_events` as lines of text, for terminals and error messages."""

import json
from typing import Final

from kohort.events.schema import (
    AppendFailedEvent,
    CommitRefusedEvent,
    Event,
    EventDetails,
    EventMember,
    GroupDeletedEvent,
    InstanceReplacedEvent,
    MemberGoneEvent,
    MemberIdIssuedEvent,
    MemberJoinedEvent,
    OffsetsExpiredEvent,
    PendingExpiredEvent,
    RebalanceEndedEvent,
    RebalanceStartedEvent,
    StateChangedEvent,
)
from kohort.text.numbers import count
from kohort.text.rebalances import client_reason
from kohort.text.times import timestamp
from kohort.types import Millis

_SHOWN: Final = ("event", "at", "group_id", "group_ids")
"""Fields of the body that every line shows."""


def event_line(event: Event) -> str:
    """Format one line: time, group, event and details.

    Control characters are escaped. An event that this version does not know is shown as JSON.
    """
    groups = ",".join(event.group_ids)
    line = f"{timestamp(event.at)}  {groups}  {event.name}  {_describe(event)}".rstrip()
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def _describe(event: Event) -> str:
    match event.details:
        case RebalanceStartedEvent() as started:
            waits = f"; waiting for {len(started.waited_for)}" if started.waited_for else ""
            return f"{_cause_of(started)}{waits}"
        case RebalanceEndedEvent() as ended:
            return _describe_ended(ended, event.at)
        case StateChangedEvent(before=before, after=after):
            return f"{before} -> {after}"
        case MemberIdIssuedEvent(party=party):
            return _who(party)
        case MemberJoinedEvent(party=party, client_reason=reason):
            return f"{_who(party)}{_because(reason)}"
        case MemberGoneEvent(party=party, departure=departure, client_reason=reason):
            return f"{departure}: {_who(party)}{_because(reason)}"
        case InstanceReplacedEvent(party=party, is_quiet=is_quiet):
            how = "no rebalance" if is_quiet else "a rebalance follows"
            return f"{_who(party)} rejoined; {how}"
        case None:
            rest = {name: event.body[name] for name in event.body if name not in _SHOWN}
            return json.dumps(rest, separators=(",", ":")) if rest else ""
        case other:
            return _describe_offsets(other)


def _describe_offsets(details: EventDetails) -> str:
    """Describe events about offsets, deleted groups and expired member ids."""
    match details:
        case PendingExpiredEvent(member_id=member_id):
            return f"{member_id} was issued but never used"
        case CommitRefusedEvent() as refused:
            who = refused.instance_id or refused.member_id or "a client outside the group"
            return f"{refused.error} for {who} in generation {refused.generation}"
        case OffsetsExpiredEvent(partitions=partitions):
            by_topic: dict[str, list[str]] = {}
            for topic, number in partitions:
                by_topic.setdefault(topic, []).append(str(number))
            return "; ".join(f"{topic}-{','.join(each)}" for topic, each in by_topic.items())
        case GroupDeletedEvent(is_expired=is_expired):
            return "expired" if is_expired else "deleted by a client"
        case AppendFailedEvent(error=error):
            return error
        case _:
            return ""


def _describe_ended(ended: RebalanceEndedEvent, at: Millis) -> str:
    joins = ended.join_ended_ms
    phases = "" if joins is None else f" (joins {joins - ended.started_ms} ms)"
    out = f", {len(ended.removals)} removed" if ended.removals else ""
    return (
        f"{ended.ending}: generation {ended.generation_before} -> {ended.generation}, "
        f"{count(len(ended.participants), 'member')}{out}, "
        f"took {at - ended.started_ms} ms{phases}, {_cause_of(ended)}"
    )


def _cause_of(details: RebalanceStartedEvent | RebalanceEndedEvent) -> str:
    by = "" if details.initiator is None else f" by {_who(details.initiator)}"
    return f"{details.trigger}{by}{_because(details.client_reason)}"


def _who(party: EventMember) -> str:
    static = f" ({party.instance_id})" if party.instance_id else ""
    return f"{party.client_id}{static} at {party.client_host.lstrip('/')}"


def _because(reason: str | None) -> str:
    shown = client_reason(reason)
    return f", reason {shown!r}" if shown else ""
