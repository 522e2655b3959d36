"""Derives a rebalance from two generations of a group. Pure."""

from kohort.admin.group_monitor.views import DepartedMember, MonitoredMember, ObservedRebalance
from kohort.events.schema import EventParticipant
from kohort.types import Generation, MemberId, Millis


def generation_diff(
    *,
    generation_before: Generation | None,
    before: tuple[MonitoredMember, ...] | None,
    generation: Generation,
    after: tuple[MonitoredMember, ...],
    at_ms: Millis,
    protocol: str,
    leader: MemberId | None,
) -> ObservedRebalance:
    """A rebalance derived from two generations. Its cause and duration are not known.

    Without a previous generation only the new one is known.
    """
    had = {} if before is None else {each.party.member_id: each.partitions for each in before}
    stayed = {each.party.member_id for each in after}
    return ObservedRebalance(
        key=str(at_ms),
        is_exact=False,
        generation_before=generation_before,
        generation=generation,
        started_ms=None,
        joined_ms=None,
        ended_ms=at_ms,
        trigger=None,
        initiator=None,
        client_reason=None,
        state_before=None,
        join_ended_by=None,
        ending="stable" if after else "empty",
        protocol=protocol or None,
        leader=leader,
        waited_for=(),
        participants=tuple(
            EventParticipant(
                party=each.party,
                join_took_ms=None,
                sync_took_ms=None,
                had=None if before is None else had.get(each.party.member_id, ()),
                got=each.partitions,
            )
            for each in after
        ),
        removals=tuple(
            DepartedMember(party=each.party, departure=None)
            for each in before or ()
            if each.party.member_id not in stayed
        ),
        newcomers=()
        if before is None
        else tuple(each.party.member_id for each in after if each.party.member_id not in had),
    )
