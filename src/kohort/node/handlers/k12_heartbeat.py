"""Heartbeat: the most frequent request of all, so nothing here is done twice."""

from functools import cache
from typing import Final

from kohort.coordinator.commands import Heartbeat, Ticket
from kohort.coordinator.replies import Refused
from kohort.node.broker import Broker
from kohort.node.request import Ready, Request
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse

_NO_TICKET: Final = Ticket(0)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    # A member says the same until its generation ends: the command is made for the first time only.
    command: Heartbeat | None = request.memo
    if command is None:
        command = request.memo = _command(request.body)
    reply = broker.groups.answer_at_once(command, now)
    version = request.header.request_api_version
    if isinstance(reply, Refused):
        request.answer_ready(_refused(version, reply.error))
    else:
        request.answer_ready(_heard(version))


def _command(body: HeartbeatRequest) -> Heartbeat:
    return Heartbeat(
        ticket=_NO_TICKET,
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id,
    )


@cache
def _heard(version: int) -> Ready:
    return Ready(HeartbeatResponse(), version)


@cache
def _refused(version: int, error: ErrorCode) -> Ready:
    return Ready(HeartbeatResponse(error_code=error), version)
