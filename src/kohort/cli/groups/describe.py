"""kohort groups describe."""

from typing import Any

import typer

from kohort.admin.group_offsets import PartitionAssignmentState, describe_offsets
from kohort.admin.groups import ConsumerGroupDescription
from kohort.cli.cluster_options import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    connect,
    require_groups,
)
from kohort.cli.groups.group_tables import (
    describe_selected,
    member_json,
    offset_json,
    print_members,
    print_offsets,
    sorted_members,
    total_lag,
)
from kohort.cli.groups.options import AllGroups, Groups, Verbose
from kohort.cli.tables import print_json, print_table


def run(
    groups: Groups = None,
    *,
    bootstrap: Bootstrap,
    all_groups: AllGroups = False,
    verbose: Verbose = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Show state, coordinator, member count and lag; with --verbose members and offsets.

    \b
      kohort groups describe billing
      kohort groups describe --all-groups --verbose
    """
    require_groups(groups, is_all=all_groups)
    with connect(bootstrap, command_config, timeout) as cluster:
        found = describe_selected(cluster, groups, is_all=all_groups)
        offsets = describe_offsets(cluster, found)
    if as_json:
        print_json([_group_json(group, offsets[group.group_id]) for group in found.values()])
        return
    heads = ("GROUP", "TYPE", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE")
    epochs = ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH") if verbose else ()
    print_table(
        (*heads, *epochs, "#MEMBERS", "LAG"),
        [
            (
                group.group_id,
                group.group_type,
                _coordinator(group),
                group.assignor,
                group.state,
                *((group.epoch, group.target_epoch) if verbose else ()),
                len(group.members),
                total_lag(offsets[group.group_id]),
            )
            for group in found.values()
        ],
    )
    if verbose:
        typer.echo()
        print_members(found.values(), is_verbose=True)
        typer.echo()
        print_offsets(offsets, is_verbose=True)


def _coordinator(group: ConsumerGroupDescription) -> str:
    broker = group.coordinator
    return f"{broker.host}:{broker.port} ({broker.broker_id})"


def _group_json(
    group: ConsumerGroupDescription, partitions: tuple[PartitionAssignmentState, ...]
) -> dict[str, Any]:
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
        "lag": total_lag(partitions),
        "members": [member_json(each) for each in sorted_members(group)],
        "partitions": [offset_json(each) for each in partitions],
    }
