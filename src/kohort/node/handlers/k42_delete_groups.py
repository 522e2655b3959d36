"""DeleteGroups: one command per group, so that each is kept or refused on its own."""

from collections.abc import Callable
from functools import partial

from kohort.coordinator.commands import DeleteGroups
from kohort.coordinator.replies import DeleteGroupsAnswered, Refused, Reply
from kohort.node.broker import Broker
from kohort.node.gathering import gather
from kohort.node.request import Request
from kohort.types import GroupId, Millis
from kohort.wire.api.k42_delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: DeleteGroupsRequest = request.body
    group_ids = tuple(dict.fromkeys(body.groups_names))

    def finish(results: list[DeletableGroupResult]) -> None:
        request.answer(DeleteGroupsResponse(results=tuple(results)))

    collect = gather(len(group_ids), finish)
    for index, group_id in enumerate(group_ids):
        _delete(broker, group_id, partial(collect, index), now)
    if not group_ids:
        finish([])


def _delete(
    broker: Broker,
    group_id: GroupId,
    collect: Callable[[DeletableGroupResult], None],
    now: Millis,
) -> None:
    ticket = broker.groups.issue(lambda reply: collect(_result(reply, group_id)))
    broker.groups.submit(DeleteGroups(ticket=ticket, group_ids=(group_id,)), now)


def _result(reply: Reply, group_id: GroupId) -> DeletableGroupResult:
    match reply:
        case Refused():
            return DeletableGroupResult(group_id=group_id, error_code=reply.error)
        case DeleteGroupsAnswered():
            return DeletableGroupResult(group_id=group_id, error_code=reply.results[0].error)
        case _:
            raise AssertionError(f"a delete cannot be answered with {reply}")
