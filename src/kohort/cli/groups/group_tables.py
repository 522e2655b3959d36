"""Tables and JSON about groups, members and offsets, for describe, members and offsets."""

from collections.abc import Iterable, Mapping
from typing import Any

import typer

from kohort.admin.cluster_connection import Cluster
from kohort.admin.group_offsets import PartitionAssignmentState
from kohort.admin.groups import (
    ConsumerGroupDescription,
    GroupMemberDescription,
    describe_groups,
    get_groups,
)
from kohort.cli.cluster_options import select_groups
from kohort.cli.tables import print_table
from kohort.types import GroupId, TopicPartition

_REBALANCING_STATES = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def describe_selected(
    cluster: Cluster, given: list[str] | None, *, is_all: bool
) -> dict[GroupId, ConsumerGroupDescription]:
    selected = select_groups(cluster, given, is_all=is_all)
    # A listed group may be deleted meanwhile. A group that the user named must exist.
    return describe_groups(cluster, selected) if is_all else get_groups(cluster, selected)


def print_state_hints(groups: Iterable[ConsumerGroupDescription]) -> None:
    """Explain on stderr why a table may be empty."""
    for group in groups:
        if group.state == "Empty":
            typer.echo(f"group {group.group_id!r} has no members", err=True)
        elif group.state in _REBALANCING_STATES:
            typer.echo(f"group {group.group_id!r} is rebalancing: {group.state}", err=True)


def total_lag(partitions: Iterable[PartitionAssignmentState]) -> int | None:
    known = [each.lag.lag for each in partitions if each.lag.lag is not None]
    return sum(known) if known else None


def sorted_members(group: ConsumerGroupDescription) -> list[GroupMemberDescription]:
    return sorted(group.members, key=lambda each: (each.client_id, each.member_id))


# Tables


def print_members(groups: Iterable[ConsumerGroupDescription], *, is_verbose: bool) -> None:
    heads = ("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS")
    more = ("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED")
    print_table(
        (*heads, *(more if is_verbose else ())),
        [
            (
                group.group_id,
                each.member_id,
                each.instance_id,
                each.host,
                each.client_id,
                len(each.partitions),
                *(_assignment_cells(group, each) if is_verbose else ()),
            )
            for group in groups
            for each in sorted_members(group)
        ],
    )


def _assignment_cells(
    group: ConsumerGroupDescription, member: GroupMemberDescription
) -> tuple[object, ...]:
    return (
        member.epoch,
        _format_partitions(member.partitions),
        group.target_epoch,
        _format_partitions(member.target or ()),
        None if member.is_classic is None else str(not member.is_classic).lower(),
    )


def _format_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Use the format of Kafka's own tools: orders:0,1;refunds:2."""
    by_topic: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(str(number))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items())


def print_offsets(
    offsets: Mapping[GroupId, tuple[PartitionAssignmentState, ...]], *, is_verbose: bool
) -> None:
    print_table(
        (
            "GROUP",
            "TOPIC",
            "PARTITION",
            *(("LEADER-EPOCH",) if is_verbose else ()),
            "CURRENT-OFFSET",
            "LOG-END-OFFSET",
            "LAG",
            "CONSUMER-ID",
            "HOST",
            "CLIENT-ID",
        ),
        [
            (
                group_id,
                each.lag.partition.topic,
                each.lag.partition.partition,
                *((each.leader_epoch,) if is_verbose else ()),
                each.lag.committed,
                each.lag.end,
                each.lag.lag,
                *_owner_cells(each.owner),
            )
            for group_id, partitions in offsets.items()
            for each in partitions
        ],
    )


def _owner_cells(owner: GroupMemberDescription | None) -> tuple[str | None, str | None, str | None]:
    return (None, None, None) if owner is None else (owner.member_id, owner.host, owner.client_id)


# JSON


def member_json(member: GroupMemberDescription) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "topics": list(member.topics),
        "partitions": _partitions_json(member.partitions),
        "epoch": member.epoch,
        "target": None if member.target is None else _partitions_json(member.target),
    }


def _partitions_json(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": number} for topic, number in partitions]


def offset_json(each: PartitionAssignmentState) -> dict[str, Any]:
    member_id, host, client_id = _owner_cells(each.owner)
    return {
        "topic": each.lag.partition.topic,
        "partition": each.lag.partition.partition,
        "leader_epoch": each.leader_epoch,
        "current_offset": each.lag.committed,
        "log_end_offset": each.lag.end,
        "lag": each.lag.lag,
        "metadata": each.metadata,
        "member_id": member_id,
        "host": host,
        "client_id": client_id,
    }
