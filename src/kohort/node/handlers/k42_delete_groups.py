"""DeleteGroups: one command per group, so that each is deleted or refused on its own."""

from typing import Final

from kohort.coordinator.commands import DeleteGroups
from kohort.coordinator.replies import DeleteGroupsAnswered, Reply, RequestRefused
from kohort.node.broker import Broker
from kohort.node.request import ITEMS_PER_SLICE, PARKED, ParkedForMany, Request, SlicedWork
from kohort.types import GroupId, Millis
from kohort.wire.api.k42_delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

_GROUPS_PER_SLICE: Final = 10
"""Each of them is one write."""


def handle(broker: Broker, request: Request, now: Millis) -> SlicedWork:
    body: DeleteGroupsRequest = request.body
    group_ids = request.context = tuple(dict.fromkeys(body.groups_names))
    if not group_ids:
        return DeleteGroupsResponse()
    waiter = ParkedForMany(request, _respond, len(group_ids))
    for index, group_id in enumerate(group_ids):
        if index and not index % _GROUPS_PER_SLICE:
            now = yield
        ticket = broker.groups.open(waiter)
        broker.groups.submit(DeleteGroups(ticket=ticket, group_ids=(group_id,)), now)
    return PARKED


def _respond(request: Request, replies: list[Reply]) -> SlicedWork:
    group_ids: tuple[GroupId, ...] = request.context
    results = []
    for reply, group_id in zip(replies, group_ids, strict=True):
        results.append(_result(reply, group_id))
        if not len(results) % ITEMS_PER_SLICE:
            yield
    return DeleteGroupsResponse(results=tuple(results))


def _result(reply: Reply, group_id: GroupId) -> DeletableGroupResult:
    match reply:
        case RequestRefused():
            return DeletableGroupResult(group_id=group_id, error_code=reply.error)
        case DeleteGroupsAnswered():
            return DeletableGroupResult(group_id=group_id, error_code=reply.results[0].error)
        case _:
            raise AssertionError(f"unexpected reply to delete: {reply}")
