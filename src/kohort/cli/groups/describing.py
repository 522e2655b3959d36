"""kohort groups describe, members and offsets: how groups are doing, who is in them, how far."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from kohort.cli.clusters import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    check_chosen,
    choose_groups,
    talking_to,
)
from kohort.cli.groups.options import AllGroups, Groups, Verbose
from kohort.cli.tables import show_json, show_table
from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId

if TYPE_CHECKING:
    from kohort.admin.cluster import Cluster
    from kohort.admin.groups import Group, Member
    from kohort.admin.standings import Standing

_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def describe(
    groups: Groups = None,
    *,
    bootstrap: Bootstrap,
    all_groups: AllGroups = False,
    verbose: Verbose = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Show groups at a glance; with --verbose their members and offsets too.

    \b
      kohort groups describe billing
      kohort groups describe --all-groups --verbose
    """
    check_chosen(groups, is_all=all_groups)
    with talking_to(bootstrap, command_config, timeout) as cluster:
        found = _describe(cluster, groups, is_all=all_groups)
        standings = _stand(cluster, found)
    if as_json:
        show_json([_group_json(group, standings[group.group_id]) for group in found.values()])
        return
    heads = ("GROUP", "TYPE", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE")
    more = ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH") if verbose else ()
    show_table(
        (*heads, *more, "#MEMBERS", "LAG"),
        [
            (
                group.group_id,
                group.group_type,
                _coordinator(group),
                group.assignor,
                group.state,
                *((group.epoch, group.target_epoch) if verbose else ()),
                len(group.members),
                _total(standings[group.group_id]),
            )
            for group in found.values()
        ],
    )
    if verbose:
        typer.echo()
        _show_members(found.values(), is_verbose=True)
        typer.echo()
        _show_offsets(standings, is_verbose=True)


def members(
    groups: Groups = None,
    *,
    bootstrap: Bootstrap,
    all_groups: AllGroups = False,
    verbose: Verbose = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Show who is in groups; with --verbose what each member has.

    \b
      kohort groups members billing --verbose
    """
    check_chosen(groups, is_all=all_groups)
    with talking_to(bootstrap, command_config, timeout) as cluster:
        found = _describe(cluster, groups, is_all=all_groups)
    if as_json:
        show_json(
            [
                {
                    "group": group.group_id,
                    "members": [_member_json(each) for each in _sorted(group)],
                }
                for group in found.values()
            ]
        )
        return
    _show_members(found.values(), is_verbose=verbose)
    _remark(found.values())


def offsets(
    groups: Groups = None,
    *,
    bootstrap: Bootstrap,
    all_groups: AllGroups = False,
    verbose: Verbose = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Show how far groups have come in every partition, and who has it.

    \b
      kohort groups offsets billing
      kohort groups offsets --all-groups --json
    """
    check_chosen(groups, is_all=all_groups)
    with talking_to(bootstrap, command_config, timeout) as cluster:
        found = _describe(cluster, groups, is_all=all_groups)
        standings = _stand(cluster, found)
    if as_json:
        show_json(
            [
                {"group": group_id, "partitions": [_standing_json(each) for each in rows]}
                for group_id, rows in standings.items()
            ]
        )
        return
    _show_offsets(standings, is_verbose=verbose)
    _remark(found.values())


def _describe(
    cluster: "Cluster", given: list[str] | None, *, is_all: bool
) -> "dict[GroupId, Group]":
    from kohort.admin.groups import describe_groups, get_groups  # noqa: PLC0415  # as elsewhere

    chosen = choose_groups(cluster, given, is_all=is_all)
    # One that was listed a moment ago may be gone; one that somebody named must be there.
    return describe_groups(cluster, chosen) if is_all else get_groups(cluster, chosen)


def _stand(
    cluster: "Cluster", found: "Mapping[GroupId, Group]"
) -> "dict[GroupId, tuple[Standing, ...]]":
    from kohort.admin.standings import standings  # noqa: PLC0415  # as elsewhere

    return standings(cluster, found)


def _remark(found: "Iterable[Group]") -> None:
    for group in found:
        if group.state == "Empty":
            typer.echo(f"group {group.group_id!r} has no members", err=True)
        elif group.state in _REBALANCING:
            typer.echo(f"group {group.group_id!r} is rebalancing: {group.state}", err=True)


# Tables


def _show_members(found: "Iterable[Group]", *, is_verbose: bool) -> None:
    heads = ("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS")
    more = ("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED")
    show_table(
        (*heads, *(more if is_verbose else ())),
        [
            (
                group.group_id,
                each.member_id,
                each.instance_id,
                each.host,
                each.client_id,
                len(each.partitions),
                *(_more_of(group, each) if is_verbose else ()),
            )
            for group in found
            for each in _sorted(group)
        ],
    )


def _more_of(group: "Group", member: "Member") -> tuple[object, ...]:
    return (
        member.epoch,
        _spell(member.partitions),
        group.target_epoch,
        _spell(member.target or ()),
        None if member.is_classic is None else str(not member.is_classic).lower(),
    )


def _show_offsets(standings: "Mapping[GroupId, tuple[Standing, ...]]", *, is_verbose: bool) -> None:
    show_table(
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
                *_owner(each.owner),
            )
            for group_id, rows in standings.items()
            for each in rows
        ],
    )


def _owner(owner: "Member | None") -> tuple[str | None, str | None, str | None]:
    return (None, None, None) if owner is None else (owner.member_id, owner.host, owner.client_id)


def _coordinator(group: "Group") -> str:
    broker = group.coordinator
    return f"{broker.host}:{broker.port} ({broker.broker_id})"


def _total(rows: "tuple[Standing, ...]") -> int | None:
    known = [each.lag.lag for each in rows if each.lag.lag is not None]
    return sum(known) if known else None


def _sorted(group: "Group") -> "list[Member]":
    return sorted(group.members, key=lambda each: (each.client_id, each.member_id))


def _spell(partitions: Iterable[TopicPartition]) -> str:
    """As Kafka's own tools do: orders:0,1;refunds:2."""
    by_topic: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(str(number))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items())


# JSON


def _group_json(group: "Group", rows: "tuple[Standing, ...]") -> dict[str, Any]:
    broker = group.coordinator
    return {
        "group": group.group_id,
        "type": group.group_type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor or None,
        "coordinator": {"id": broker.broker_id, "host": broker.host, "port": broker.port},
        "epoch": group.epoch,
        "target_epoch": group.target_epoch,
        "lag": _total(rows),
        "members": [_member_json(each) for each in _sorted(group)],
        "partitions": [_standing_json(each) for each in rows],
    }


def _member_json(member: "Member") -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "topics": list(member.topics),
        "partitions": _places_json(member.partitions),
        "epoch": member.epoch,
        "target": None if member.target is None else _places_json(member.target),
    }


def _places_json(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": number} for topic, number in partitions]


def _standing_json(each: "Standing") -> dict[str, Any]:
    member_id, host, client_id = _owner(each.owner)
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
