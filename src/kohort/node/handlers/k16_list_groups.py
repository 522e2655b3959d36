"""ListGroups: every group, or those in the states and of the types asked for."""

from kohort.coordinator.commands import ListGroups
from kohort.coordinator.replies import GroupsListed, Refused, Reply
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import Millis
from kohort.wire.api.k16_list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: ListGroupsRequest = request.body
    command = ListGroups(
        ticket=broker.groups.issue(lambda reply: request.answer(_respond(reply))),
        states=body.states_filter,
        types=body.types_filter,
    )
    broker.groups.submit(command, now)


def _respond(reply: Reply) -> ListGroupsResponse:
    match reply:
        case Refused():
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
            raise AssertionError(f"a list cannot be answered with {reply}")
