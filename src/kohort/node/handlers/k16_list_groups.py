"""ListGroups: all groups, or those of the requested states and types."""

from kohort.coordinator.commands import ListGroups
from kohort.coordinator.replies import GroupsListed, Reply, RequestRefused
from kohort.node.broker import Broker
from kohort.node.request import PARKED, Request
from kohort.types import Millis
from kohort.wire.api.k16_list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(broker: Broker, request: Request, now: Millis) -> object:
    body: ListGroupsRequest = request.body
    command = ListGroups(
        ticket=broker.park(request, _respond),
        states=body.states_filter,
        types=body.types_filter,
    )
    broker.groups.submit(command, now)
    return PARKED


def _respond(_: Request, reply: Reply) -> ListGroupsResponse:
    match reply:
        case RequestRefused():
            return ListGroupsResponse(error_code=reply.error)
        case GroupsListed():
            return ListGroupsResponse(
                groups=tuple(
                    ListedGroup(
                        group_id=group.group_id,
                        protocol_type=group.protocol_type,
                        group_state=group.state,
                        group_type=group.type,
                    )
                    for group in reply.groups
                )
            )
        case _:
            raise AssertionError(f"unexpected reply to list: {reply}")
