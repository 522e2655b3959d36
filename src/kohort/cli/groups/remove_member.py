"""kohort groups remove-member."""

from typing import Annotated

import typer

from kohort.admin.cluster_connection import Cluster
from kohort.admin.groups import get_groups, remove_members
from kohort.cli.cluster_options import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    connect,
    usage_error,
)
from kohort.cli.groups.options import Group
from kohort.cli.messages import fail_if_any, print_stderr
from kohort.cli.tables import print_json
from kohort.types import GroupId, InstanceId, MemberId

_Instances = Annotated[
    list[str] | None,
    typer.Option("--instance-id", metavar="ID", help="Remove this static member. May be repeated."),
]
_Members = Annotated[
    list[str] | None,
    typer.Option("--member-id", metavar="ID", help="Remove this member. May be repeated."),
]
_AllMembers = Annotated[bool, typer.Option("--all-members", help="Remove all members.")]
_Reason = Annotated[
    str, typer.Option(metavar="TEXT", help="Reason that is recorded by the coordinator.")
]


def run(
    group: Group,
    *,
    bootstrap: Bootstrap,
    instance_id: _Instances = None,
    member_id: _Members = None,
    all_members: _AllMembers = False,
    reason: _Reason = "removed by an administrator",
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Remove members from a group, which then rebalances without them.

    A member that is still running joins again, so stop it first.

    \b
      kohort groups remove-member billing --instance-id rack-2
    """
    if all_members == bool(instance_id or member_id):
        usage_error("name members with --instance-id or --member-id, or use --all-members")
    with connect(bootstrap, command_config, timeout) as cluster:
        members, instances = _select(cluster, GroupId(group), member_id, instance_id)
        results = remove_members(
            cluster, GroupId(group), member_ids=members, instance_ids=instances, reason=reason
        )
    if as_json:
        print_json(
            [
                {
                    "member": name,
                    "removed": error is None,
                    "error": None if error is None else str(error),
                }
                for name, error in results.items()
            ]
        )
    for name, error in results.items():
        if error is not None:
            print_stderr(error)
        elif not as_json:
            typer.echo(f"{name!r} removed from group {group!r}")
    fail_if_any(results.values())


def _select(
    cluster: Cluster,
    group_id: GroupId,
    member_ids: list[str] | None,
    instance_ids: list[str] | None,
) -> tuple[list[MemberId], list[InstanceId]]:
    """Return the given members, or all members of the group."""
    found = get_groups(cluster, [group_id])[group_id]
    if member_ids or instance_ids:
        members = [MemberId(each) for each in member_ids or ()]
        return members, [InstanceId(each) for each in instance_ids or ()]
    dynamic = [each.member_id for each in found.members if each.instance_id is None]
    return dynamic, [each.instance_id for each in found.members if each.instance_id is not None]
