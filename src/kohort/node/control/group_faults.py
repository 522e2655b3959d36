"""The operations on groups: expire a session, fence or remove a member, force a rebalance.

Each goes through the coordinator as a command, so that records, events and responses are those of
the real thing.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kohort.coordinator.commands import (
    NO_MEMBER,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    RebalanceGroup,
    TimerFired,
)
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.outcome import SESSION, TimerKey
from kohort.coordinator.replies import Reply
from kohort.node.control.errors import ControlError
from kohort.node.control.parameters import Parameters
from kohort.types import GroupId, MemberId

if TYPE_CHECKING:
    from kohort.node.server import Server

Body = Mapping[str, Any]

_REMOVED_BY: Final = "member was removed by an admin"
"""The reason that Kafka's admin client gives."""

_LISTED_MAX: Final = 20
"""Groups or members in an error message."""


async def expire_session(server: "Server", body: Body) -> Body:
    """Let the session of a member time out now."""
    group, member = _read_member(server, body)
    if member.is_session_suspended:
        raise ControlError(
            f"the session of {_describe(member)} cannot expire now: its JoinGroup or SyncGroup"
            " request is waiting for the other members, and as in Kafka no session expires"
            " meanwhile. Try again when the rebalance has ended"
        )
    server.submit(TimerFired(key=TimerKey(SESSION, group.group_id, member.member_id)))
    return _answer(group, member)


async def fence_member(server: "Server", body: Body) -> Body:
    """A static member is fenced by another process of its instance; a dynamic one is removed.

    The other process joins once and does nothing else. Its member id is in the answer. It keeps the
    place of the instance until its session times out, or until the instance joins again.
    """
    group, member = _read_member(server, body)
    if member.instance_id is None:
        _remove(server, group, member)
        return _answer(group, member)
    broker = server.broker
    fresh_id = MemberId(f"{member.instance_id}-{broker.fresh_uuid()}")
    server.submit(
        JoinGroup(
            ticket=broker.groups.open(_IgnoredReply()),
            group_id=group.group_id,
            fresh_member_id=fresh_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            protocol_type=group.protocol_type or "",
            protocols=member.protocols,
        )
    )
    return {**_answer(group, member), "new_member_id": fresh_id}


async def remove_member(server: "Server", body: Body) -> Body:
    """Remove a member as an administrator does."""
    group, member = _read_member(server, body)
    _remove(server, group, member)
    return _answer(group, member)


async def rebalance_group(server: "Server", body: Body) -> Body:
    """Begin a rebalance; return the generation before it."""
    parameters = Parameters(body)
    group = _find_group(server, parameters)
    parameters.finish()
    if not group.members:
        raise ControlError(f"group {group.group_id} has no members, so it cannot rebalance")
    generation = group.generation
    server.submit(RebalanceGroup(group_id=group.group_id))
    return {"group": group.group_id, "generation": generation}


class _IgnoredReply:
    """The process that fences does nothing with its response."""

    def deliver(self, reply: Reply) -> None: ...


def _remove(server: "Server", group: ClassicGroup, member: ClassicMember) -> None:
    """A static member is named by its instance id, as administrators do."""
    is_static = member.instance_id is not None
    leaving = LeavingMember(
        member_id=NO_MEMBER if is_static else member.member_id,
        instance_id=member.instance_id,
        reason=_REMOVED_BY,
    )
    ticket = server.broker.groups.open(_IgnoredReply())
    server.submit(LeaveGroup(ticket=ticket, group_id=group.group_id, members=(leaving,)))


def _answer(group: ClassicGroup, member: ClassicMember) -> Body:
    return {"group": group.group_id, "member_id": member.member_id}


def _read_member(server: "Server", body: Body) -> tuple[ClassicGroup, ClassicMember]:
    parameters = Parameters(body)
    group = _find_group(server, parameters)
    asked = parameters.get_text("member")
    parameters.finish()
    members = list(group.members.values())
    exact = [each for each in members if asked in (each.member_id, each.instance_id)]
    found = exact or [each for each in members if each.client_id == asked]
    if len(found) == 1:
        return group, found[0]
    listed = _list([_describe(each) for each in found or members])
    problem = "has no member" if not found else f"has {len(found)} members with the client id"
    raise ControlError(
        f"group {group.group_id} {problem} {asked}: use a member id, a group instance id or the"
        f" client id of one member. Members: {listed}"
    )


def _find_group(server: "Server", parameters: Parameters) -> ClassicGroup:
    name = parameters.get_text("group")
    groups = server.broker.coordinator.groups
    group = groups.get(GroupId(name))
    if group is None:
        raise ControlError(f"there is no group {name}. Groups: {_list(sorted(groups))}")
    return group


def _describe(member: ClassicMember) -> str:
    instance = "" if member.instance_id is None else f", instance {member.instance_id}"
    return f"{member.member_id} (client {member.client_id}{instance})"


def _list(names: list[str] | list[GroupId]) -> str:
    rest = len(names) - _LISTED_MAX
    more = [f"and {rest} more"] if rest > 0 else []
    return ", ".join([*names[:_LISTED_MAX], *more]) or "none"
