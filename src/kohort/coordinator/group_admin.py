"""DescribeGroups, ListGroups and DeleteGroups, for groups of every type."""

from collections.abc import Mapping
from typing import Final

from kohort.coordinator import offsets
from kohort.coordinator.commands import DeleteGroups, DescribeGroups, ListGroups
from kohort.coordinator.groups.group import Group
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.replies import (
    DeleteGroupsAnswered,
    GroupDescription,
    GroupOverview,
    GroupResult,
    GroupsDescribed,
    GroupsListed,
)
from kohort.types import ErrorCode, GroupId

_DEAD: Final = "Dead"
"""The state in which Kafka describes a group that does not exist."""


def describe(
    builder: OutcomeBuilder, groups: Mapping[GroupId, Group], command: DescribeGroups
) -> None:
    described = tuple(
        _describe_one(groups.get(group_id), group_id, command) for group_id in command.group_ids
    )
    builder.reply(GroupsDescribed(ticket=command.ticket, groups=described))


def _describe_one(
    group: Group | None, group_id: GroupId, command: DescribeGroups
) -> GroupDescription:
    described = None if group is None else group.describe()
    if described is not None:
        return described
    error = ErrorCode.GROUP_ID_NOT_FOUND if command.knows_missing_group else ErrorCode.NONE
    return GroupDescription(group_id=group_id, error=error, state=_DEAD)


def list_all(builder: OutcomeBuilder, groups: Mapping[GroupId, Group], command: ListGroups) -> None:
    """List the groups. Filters ignore case, and an unknown filter matches no group."""
    states = {state.lower().strip() for state in command.states}
    types = {type_.lower() for type_ in command.types}
    listed = tuple(
        GroupOverview(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            state=group.state,
            type=group.type,
        )
        for group in groups.values()
        if (not states or group.state.lower() in states) and (not types or group.type in types)
    )
    builder.reply(GroupsListed(ticket=command.ticket, groups=listed))


def delete(builder: OutcomeBuilder, groups: Mapping[GroupId, Group], command: DeleteGroups) -> None:
    results = tuple(
        GroupResult(group_id=group_id, error=_delete_one(builder, groups.get(group_id), command))
        for group_id in dict.fromkeys(command.group_ids)
    )
    builder.reply(DeleteGroupsAnswered(ticket=command.ticket, results=results))


def _delete_one(builder: OutcomeBuilder, group: Group | None, command: DeleteGroups) -> ErrorCode:
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    error = group.find_delete_error()
    if error is not None and not command.removes_members:
        return error
    offsets.remove_all(builder, group)
    offsets.remove_group(builder, group, is_expired=False)
    return ErrorCode.NONE
