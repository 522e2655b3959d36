"""kohort groups delete, delete-offsets and remove-member: what cannot be taken back."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from kohort.cli.clusters import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    check_chosen,
    choose_groups,
    refuse,
    say_error,
    talking_to,
)
from kohort.cli.groups.options import AllGroups, Group, Groups, Scope
from kohort.cli.tables import show_json, show_table
from kohort.types import GroupId, InstanceId, MemberId

if TYPE_CHECKING:
    from kohort.admin.cluster import Cluster

_Instances = Annotated[
    list[str] | None,
    typer.Option("--instance-id", metavar="ID", help="A static member; may be repeated."),
]
_Members = Annotated[
    list[str] | None,
    typer.Option("--member-id", metavar="ID", help="Any member; may be repeated."),
]
_AllMembers = Annotated[bool, typer.Option("--all-members", help="Everyone in the group.")]
_Reason = Annotated[
    str, typer.Option(metavar="TEXT", help="What the coordinator writes down as the reason.")
]


def delete(
    groups: Groups = None,
    *,
    bootstrap: Bootstrap,
    all_groups: AllGroups = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Delete groups, with all that they have committed. A group with members stays.

    \b
      kohort groups delete billing shipping
    """
    from kohort.admin.groups import delete_groups  # noqa: PLC0415  # other verbs need none of it

    check_chosen(groups, is_all=all_groups)
    with talking_to(bootstrap, command_config, timeout) as cluster:
        results = delete_groups(cluster, choose_groups(cluster, groups, is_all=all_groups))
    if as_json:
        show_json(
            [
                {"group": group_id, "deleted": error is None, "error": _said(error)}
                for group_id, error in results.items()
            ]
        )
    for group_id, error in results.items():
        if error is not None:
            say_error(error)
        elif not as_json:
            typer.echo(f"group {group_id!r} is deleted")
    _end(results.values())


def delete_offsets(
    group: Group,
    *,
    bootstrap: Bootstrap,
    topic: Scope = None,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Make a group forget what it committed for topics that none of its members reads.

    \b
      kohort groups delete-offsets billing --topic orders:0,1
    """
    from kohort.admin import offsets, topics  # noqa: PLC0415  # other verbs need none of it
    from kohort.admin.resetting import read_scope  # noqa: PLC0415

    if not topic:
        refuse("name at least one --topic")
    with talking_to(bootstrap, command_config, timeout) as cluster:
        scope = read_scope(topic or ())
        places = (*topics.partitions_of(cluster, scope.topics), *scope.partitions)
        results = offsets.delete_offsets(cluster, GroupId(group), places)
    if as_json:
        show_json(
            [
                {
                    "topic": place.topic,
                    "partition": place.partition,
                    "deleted": error is None,
                    "error": _said(error),
                }
                for place, error in results.items()
            ]
        )
    else:
        show_table(
            ("TOPIC", "PARTITION", "STATUS"),
            [
                (place.topic, place.partition, "deleted" if error is None else "kept")
                for place, error in results.items()
            ],
        )
    for error in results.values():
        if error is not None:
            say_error(error)
    _end(results.values())


def remove_member(
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
    """Put members out of a group, so that it rebalances without them at once.

    One that still lives notices, and joins again: stop it first.

    \b
      kohort groups remove-member billing --instance-id rack-2
    """
    from kohort.admin.groups import remove_members  # noqa: PLC0415  # other verbs need none of it

    if all_members == bool(instance_id or member_id):
        refuse("name members by --instance-id or --member-id, or say --all-members")
    with talking_to(bootstrap, command_config, timeout) as cluster:
        members, instances = _choose(cluster, GroupId(group), member_id, instance_id)
        results = remove_members(
            cluster, GroupId(group), member_ids=members, instance_ids=instances, reason=reason
        )
    if as_json:
        show_json(
            [
                {"member": name, "removed": error is None, "error": _said(error)}
                for name, error in results.items()
            ]
        )
    for name, error in results.items():
        if error is not None:
            say_error(error)
        elif not as_json:
            typer.echo(f"{name!r} is removed from group {group!r}")
    _end(results.values())


def _choose(
    cluster: "Cluster",
    group_id: GroupId,
    member_ids: list[str] | None,
    instance_ids: list[str] | None,
) -> tuple[list[MemberId], list[InstanceId]]:
    """Everyone there is, where nobody is named."""
    from kohort.admin.groups import get_groups  # noqa: PLC0415  # as above

    found = get_groups(cluster, [group_id])[group_id]
    if member_ids or instance_ids:
        members = [MemberId(each) for each in member_ids or ()]
        return members, [InstanceId(each) for each in instance_ids or ()]
    dynamic = [each.member_id for each in found.members if each.instance_id is None]
    return dynamic, [each.instance_id for each in found.members if each.instance_id is not None]


def _said(error: Exception | None) -> str | None:
    return None if error is None else str(error)


def _end(results: Iterable[Exception | None]) -> None:
    """Scripts trust the exit code: all of it was done, or it is 1."""
    if any(error is not None for error in results):
        raise typer.Exit(1)
