"""Folds records and events into a ClusterState, in the form in which a cluster writes them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kohort.admin.group_monitor.cluster_state import ClusterState, PolledGroup
from kohort.admin.group_monitor.events_fold import ended_rebalance
from kohort.admin.group_monitor.views import ObservedRebalance
from kohort.events.parser import parse_event
from kohort.events.schema import RebalanceEndedEvent
from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    TopicPartition,
)
from kohort.wire import consumer_offsets as records
from kohort.wire.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)

NOW = Millis(1_800_000_000_000)
BILLING = GroupId("billing")


def at(number: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(Topic(topic), Partition(number))


def fold_commit(
    state: ClusterState,
    number: int,
    offset: int | None,
    *,
    group: GroupId = BILLING,
    ms: int = NOW,
    topic: str = "orders",
) -> None:
    key = records.OffsetCommitKey(group=group, topic=Topic(topic), partition=Partition(number))
    data = None
    if offset is not None:
        value = records.OffsetCommitValue(
            offset=Offset(offset), metadata="", commit_timestamp=Millis(ms)
        )
        data = records.encode_value(value, 3)
    state.fold_record(records.encode_key(key), data, Millis(ms))


def fold_generation(
    state: ClusterState,
    generation: int,
    members: Mapping[str, Sequence[int]],
    *,
    ms: int = NOW,
    group: GroupId = BILLING,
    instances: Mapping[str, str] | None = None,
    protocol_type: str = "consumer",
) -> None:
    """A GroupMetadata record: each member with its partitions of `orders`."""
    value = records.GroupMetadataValue(
        protocol_type=protocol_type,
        generation=Generation(generation),
        protocol="range" if members else None,
        leader=MemberId(next(iter(members))) if members else None,
        current_state_timestamp=Millis(ms),
        members=tuple(
            _member(name, assigned, (instances or {}).get(name))
            for name, assigned in members.items()
        ),
    )
    key = records.encode_key(records.GroupMetadataKey(group=group))
    state.fold_record(key, records.encode_value(value, 3), Millis(ms))


def _member(name: str, assigned: Sequence[int], instance: str | None) -> records.MemberMetadata:
    orders = TopicPartitions(
        topic=Topic("orders"), partitions=tuple(Partition(each) for each in assigned)
    )
    assignment = Assignment(assigned_partitions=(orders,) if assigned else ())
    return records.MemberMetadata(
        member_id=MemberId(name),
        group_instance_id=None if instance is None else InstanceId(instance),
        client_id=f"client-{name}",
        client_host="/10.0.0.1",
        rebalance_timeout=Millis(300_000),
        session_timeout=Millis(45_000),
        subscription=encode_subscription(Subscription(topics=(Topic("orders"),))),
        assignment=encode_assignment(assignment),
    )


def fold_event(state: ClusterState, event: Mapping[str, Any]) -> None:
    state.fold_event(json.dumps(event).encode())


def party(name: str) -> dict[str, Any]:
    return {
        "member_id": name,
        "instance_id": None,
        "client_id": f"client-{name}",
        "client_host": "/10.0.0.1",
    }


def rebalance_started(
    generation: int, initiator: str, *, ms: int = NOW, trigger: str = "member-joined"
) -> dict[str, Any]:
    return {
        "event": "rebalance-started",
        "at": ms,
        "group_id": BILLING,
        "generation": generation,
        "trigger": trigger,
        "initiator": party(initiator),
        "client_reason": None,
        "state_before": "Stable",
        "waited_for": ["a"],
    }


def rebalance_of(event: dict[str, Any]) -> ObservedRebalance:
    """The rebalance of a rebalance-ended event."""
    parsed = parse_event([json.dumps(event).encode()])
    assert isinstance(parsed.details, RebalanceEndedEvent)
    return ended_rebalance(parsed.at, parsed.details)


def rebalance_ended(
    generation: int,
    shares: Mapping[str, tuple[Sequence[int], Sequence[int]]],
    *,
    ms: int = NOW,
    took_ms: int = 500,
    ending: str = "stable",
    trigger: str = "member-joined",
) -> dict[str, Any]:
    """`shares`: the partitions of each member before and after."""
    return {
        "event": "rebalance-ended",
        "at": ms,
        "group_id": BILLING,
        "ending": ending,
        "trigger": trigger,
        "initiator": party("a"),
        "client_reason": "scaled up",
        "state_before": "Stable",
        "generation_before": generation - 1,
        "generation": generation,
        "started_ms": ms - took_ms,
        "join_ended_ms": ms - 20,
        "join_ended_by": "all-joined",
        "protocol_type": "consumer",
        "protocol": "range",
        "leader": next(iter(shares), None),
        "participants": [
            {
                "party": party(name),
                "join_took_ms": 100,
                "sync_took_ms": 5,
                "had": {"orders": list(had)} if had else {},
                "got": {"orders": list(got)} if got else {},
            }
            for name, (had, got) in shares.items()
        ],
        "removals": [],
    }


def state_changed(after: str, *, ms: int = NOW, before: str = "Stable") -> dict[str, Any]:
    return {
        "event": "state-changed",
        "at": ms,
        "group_id": BILLING,
        "before": before,
        "after": after,
    }


def polled_group(state: str, group: GroupId = BILLING) -> PolledGroup:
    return PolledGroup(group_id=group, state=state, kind="classic", protocol_type="consumer")
