"""Looking at groups, and doing away with them."""

from collections.abc import Mapping
from typing import Final

from kohort.coordinator import offsets
from kohort.coordinator.commands import DeleteGroups, DescribeGroups, ListGroups
from kohort.coordinator.group import Group, Member
from kohort.coordinator.replies import (
    DeleteGroupsAnswered,
    DescribedGroup,
    DescribedMember,
    GroupResult,
    GroupsDescribed,
    GroupsListed,
    ListedGroup,
)
from kohort.coordinator.states import ANSWERS, Answer, GroupState, Question
from kohort.coordinator.turn import Turn
from kohort.types import ErrorCode, GroupId

GROUP_TYPE: Final = "classic"


def describe(turn: Turn, groups: Mapping[GroupId, Group], command: DescribeGroups) -> None:
    described = tuple(
        _describe_one(groups.get(group_id), group_id, command) for group_id in command.group_ids
    )
    turn.reply(GroupsDescribed(ticket=command.ticket, groups=described))


def _describe_one(
    group: Group | None, group_id: GroupId, command: DescribeGroups
) -> DescribedGroup:
    answer = Answer.NOTHING if group is None else ANSWERS[Question.DESCRIBE][group.roster.state]
    if group is None or answer is Answer.NOTHING:
        error = ErrorCode.GROUP_ID_NOT_FOUND if command.knows_missing_group else ErrorCode.NONE
        return DescribedGroup(group_id=group_id, error=error, state=GroupState.DEAD)
    roster = group.roster
    # Only a stable group's metadata is settled enough to be shown. Assignments are what members
    # go on with until there are others.
    protocol = roster.protocol if answer is Answer.CURRENT else None
    return DescribedGroup(
        group_id=group_id,
        state=roster.state,
        protocol_type=roster.protocol_type or "",
        protocol=protocol or "",
        members=tuple(_describe_member(m, protocol) for m in roster.members.values()),
    )


def _describe_member(member: Member, protocol: str | None) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        metadata=member.metadata(protocol) if protocol is not None else b"",
        assignment=member.assignment,
    )


def list_all(turn: Turn, groups: Mapping[GroupId, Group], command: ListGroups) -> None:
    """Filters ignore case, and a filter nobody knows matches nothing."""
    states = {state.lower().strip() for state in command.states}
    types = {type_.lower() for type_ in command.types}
    listed = tuple(
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.roster.protocol_type or "",
            state=group.roster.state,
            type=GROUP_TYPE,
        )
        for group in groups.values()
        if (not states or group.roster.state.lower() in states)
        and (not types or GROUP_TYPE in types)
    )
    turn.reply(GroupsListed(ticket=command.ticket, groups=listed))


def delete(turn: Turn, groups: Mapping[GroupId, Group], command: DeleteGroups) -> None:
    results = tuple(
        GroupResult(group_id=group_id, error=_delete_one(turn, groups.get(group_id)))
        for group_id in dict.fromkeys(command.group_ids)
    )
    turn.reply(DeleteGroupsAnswered(ticket=command.ticket, results=results))


def _delete_one(turn: Turn, group: Group | None) -> ErrorCode:
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    answer = ANSWERS[Question.DELETE_GROUP][group.roster.state]
    if isinstance(answer, ErrorCode):
        return answer
    offsets.forget_all(turn, group)
    offsets.remove_group(turn, group, is_expired=False)
    return ErrorCode.NONE
