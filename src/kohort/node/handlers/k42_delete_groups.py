"""DeleteGroups: one command per group, so that each is deleted or refused on its own."""

from kohort.coordinator.commands import DeleteGroups
from kohort.coordinator.replies import DeleteGroupsAnswered, Reply, RequestRefused
from kohort.node.broker import Broker
from kohort.node.request import PARKED, ParkedForMany, Request
from kohort.types import GroupId, Millis
from kohort.wire.api.k42_delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(broker: Broker, request: Request, now: Millis) -> object:
    body: DeleteGroupsRequest = request.body
    group_ids = request.context = tuple(dict.fromkeys(body.groups_names))
    if not group_ids:
        return DeleteGroupsResponse()
    waiter = ParkedForMany(request, _respond, len(group_ids))
    for group_id in group_ids:
        ticket = broker.groups.open(waiter)
        broker.groups.submit(DeleteGroups(ticket=ticket, group_ids=(group_id,)), now)
    return PARKED


def _respond(request: Request, replies: list[Reply]) -> DeleteGroupsResponse:
    group_ids: tuple[GroupId, ...] = request.context
    return DeleteGroupsResponse(results=tuple(map(_result, replies, group_ids)))


def _result(reply: Reply, group_id: GroupId) -> DeletableGroupResult:
    match reply:
        case RequestRefused():
            return DeletableGroupResult(group_id=group_id, error_code=reply.error)
        case DeleteGroupsAnswered():
            return DeletableGroupResult(group_id=group_id, error_code=reply.results[0].error)
        case _:
            raise AssertionError(f"unexpected reply to delete: {reply}")
