"""FindCoordinator: the only broker coordinates every group."""

from kohort.node.broker import Broker
from kohort.node.request import ITEMS_PER_SLICE, Request, SlicedWork
from kohort.types import BrokerId, ErrorCode, Millis
from kohort.wire.api.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_GROUP, _TRANSACTION, _SHARE = range(3)


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: FindCoordinatorRequest = request.body
    if request.version >= 4:
        found = []
        for key in body.coordinator_keys:
            found.append(_find(broker, key, body.key_type))
            if not len(found) % ITEMS_PER_SLICE:
                yield
        return FindCoordinatorResponse(coordinators=tuple(found))
    only = _find(broker, body.key, body.key_type)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        # As in Kafka, versions up to 3 have a message even without an error.
        error_message=only.error_message or ErrorCode(only.error_code).name,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _find(broker: Broker, key: str, key_type: int) -> Coordinator:
    if key_type == _GROUP and broker.groups_refusal is not None:
        return Coordinator(
            key=key,
            node_id=BrokerId(-1),
            port=-1,
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
            error_message=f"no group is served: {broker.groups_refusal}",
        )
    if key_type == _GROUP:
        return Coordinator(
            key=key,
            node_id=broker.node_id,
            host=broker.address.host,
            port=broker.address.port,
            error_code=ErrorCode.NONE,
        )
    error, reason = ErrorCode.INVALID_REQUEST, ""
    if key_type == _TRANSACTION:
        # DEVIATION: there is no transaction or share coordinator. Clients treat this error as
        # fatal; they would retry any other error forever.
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        reason = "this broker coordinates only groups"
    elif key_type != _SHARE:
        reason = f"unknown coordinator key type {key_type}"
    return Coordinator(
        key=key, node_id=BrokerId(-1), port=-1, error_code=error, error_message=reason
    )
