"""Converts the rebalance events of a Kohort node into `ObservedRebalance`. Pure."""

from kohort.admin.group_monitor.views import DepartedMember, ObservedRebalance
from kohort.events.schema import RebalanceEndedEvent, RebalanceStartedEvent
from kohort.types import Millis


def started_rebalance(at: Millis, started: RebalanceStartedEvent) -> ObservedRebalance:
    return ObservedRebalance(
        key=str(at),
        is_exact=True,
        generation_before=started.generation,
        generation=started.generation,
        started_ms=at,
        joined_ms=None,
        ended_ms=None,
        trigger=started.trigger,
        initiator=started.initiator,
        client_reason=started.client_reason,
        state_before=started.state_before,
        join_ended_by=None,
        ending=None,
        protocol=None,
        leader=None,
        waited_for=started.waited_for,
        participants=(),
        removals=(),
    )


def ended_rebalance(at: Millis, ended: RebalanceEndedEvent) -> ObservedRebalance:
    return ObservedRebalance(
        key=str(ended.started_ms),
        is_exact=True,
        generation_before=ended.generation_before,
        generation=ended.generation,
        started_ms=ended.started_ms,
        joined_ms=ended.join_ended_ms,
        ended_ms=at,
        trigger=ended.trigger,
        initiator=ended.initiator,
        client_reason=ended.client_reason,
        state_before=ended.state_before,
        join_ended_by=ended.join_ended_by,
        ending=ended.ending,
        protocol=ended.protocol,
        leader=ended.leader,
        waited_for=(),
        participants=ended.participants,
        removals=tuple(
            DepartedMember(party=each.party, departure=each.departure) for each in ended.removals
        ),
    )
