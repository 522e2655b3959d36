"""Heartbeat: the most frequent request of all, so nothing here is done twice."""

from typing import Final

from kohort.coordinator.commands import Heartbeat, Ticket
from kohort.coordinator.replies import Refused
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import Millis
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse

_HEARD: Final = HeartbeatResponse()
_NO_TICKET: Final = Ticket(0)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: HeartbeatRequest = request.body
    command = Heartbeat(
        ticket=_NO_TICKET,
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id,
    )
    reply = broker.groups.answer_at_once(command, now)
    if isinstance(reply, Refused):
        request.answer(HeartbeatResponse(error_code=reply.error))
    else:
        request.answer(_HEARD)
