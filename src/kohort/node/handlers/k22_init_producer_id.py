"""InitProducerId: issues a unique producer id to an idempotent producer."""

from kohort.log.errors import StorageError
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import ErrorCode, Millis, ProducerEpoch, ProducerId
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(broker: Broker, request: Request, _: Millis) -> InitProducerIdResponse:
    body: InitProducerIdRequest = request.body
    error = _find_error(body)
    if error is not None:
        return _error_response(error)
    try:
        producer_id = broker.producer_ids.take()
    except StorageError as failure:
        broker.storage_errors.note(failure)
        return _error_response(failure.code)
    # As in Kafka, a producer that sends its current id gets a new one: a broker remembers ids only
    # for transactional ids.
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=ProducerEpoch(0))


def _find_error(body: InitProducerIdRequest) -> ErrorCode | None:
    if (body.producer_id == -1) != (body.producer_epoch == -1):
        return ErrorCode.INVALID_REQUEST
    if body.transactional_id is None:
        return None
    if not body.transactional_id:
        return ErrorCode.INVALID_REQUEST
    # DEVIATION: transactions are not supported. This is the error that every client treats as
    # fatal; clients retry the others.
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _error_response(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error, producer_id=ProducerId(-1), producer_epoch=ProducerEpoch(-1)
    )
