"""The operation `reset`: drop all topics and all groups, as if the data directory was new.

`__consumer_offsets` stays, because a new node has it too. It gets a tombstone for each group and
offset, so that they do not come back with a restart. Producer ids are not issued again, because
producers from before may still use theirs.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from kohort.coordinator.commands import DeleteGroups
from kohort.coordinator.replies import DeleteGroupsAnswered, Reply
from kohort.events.internal_topics import CONSUMER_OFFSETS
from kohort.log.errors import StorageError
from kohort.node.control.errors import ControlError
from kohort.types import GroupId

if TYPE_CHECKING:
    from kohort.node.server import Server


async def reset_node(server: "Server", _: object) -> dict[str, Any]:
    """Members of groups are removed: their next request is refused with UNKNOWN_MEMBER_ID."""
    await server.wait_until_loaded()
    broker = server.broker
    if broker.groups_refusal is not None:
        raise ControlError(f"groups cannot be reset: {broker.groups_refusal}")
    group_ids = tuple(broker.coordinator.groups)
    waiters = [_delete_group(server, group_id) for group_id in group_ids]
    for waiter in waiters:
        reply = await waiter.reply
        if not isinstance(reply, DeleteGroupsAnswered):
            raise ControlError(f"groups cannot be reset: {reply}")
    # Groups come first: their events are in a topic, which is deleted with the others.
    topics = [topic for topic in broker.topics.all() if topic.name != CONSUMER_OFFSETS]
    try:
        server.delete_topics(topics)
    except StorageError as error:
        raise ControlError(f"topics cannot be deleted: {error}") from error
    return {"topics": len(topics), "groups": len(group_ids)}


def _delete_group(server: "Server", group_id: GroupId) -> "_ReplyWaiter":
    """One command for each group: the records of one outcome must fit into one batch."""
    waiter = _ReplyWaiter()
    ticket = server.broker.groups.open(waiter)
    server.submit(DeleteGroups(ticket=ticket, group_ids=(group_id,), removes_members=True))
    return waiter


class _ReplyWaiter:
    def __init__(self) -> None:
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def deliver(self, reply: Reply) -> None:
        if not self.reply.done():
            self.reply.set_result(reply)
