"""Heartbeat: the most frequent request, so its command and its responses are made once."""

from functools import cache
from typing import Final

from kohort.coordinator.commands import Heartbeat, Ticket
from kohort.coordinator.replies import RequestRefused
from kohort.node.broker import Broker
from kohort.node.request import PreparedResponse, Request
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse

_NO_TICKET: Final = Ticket(0)


def handle(broker: Broker, request: Request, now: Millis) -> PreparedResponse:
    # A member sends the same bytes until the generation changes.
    command: Heartbeat | None = request.memo
    if command is None:
        command = request.memo = _command(request.body)
    reply = broker.groups.answer_now(command, now)
    version = request.header.request_api_version
    return (
        _error_response(version, reply.error)
        if isinstance(reply, RequestRefused)
        else accepted_response(version)
    )


def _command(body: HeartbeatRequest) -> Heartbeat:
    return Heartbeat(
        ticket=_NO_TICKET,
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id,
    )


@cache
def accepted_response(version: int) -> PreparedResponse:
    """The successful response, encoded once per version."""
    return PreparedResponse(HeartbeatResponse(), version)


@cache
def _error_response(version: int, error: ErrorCode) -> PreparedResponse:
    return PreparedResponse(HeartbeatResponse(error_code=error), version)
