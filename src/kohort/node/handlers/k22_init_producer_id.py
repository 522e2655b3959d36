"""InitProducerId: an idempotent producer gets an id nobody else ever had."""

from kohort.log.errors import StorageError
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import ErrorCode, Millis, ProducerEpoch, ProducerId
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(broker: Broker, request: Request, now: Millis) -> None:  # noqa: ARG001
    body: InitProducerIdRequest = request.body
    fault = _find_fault(body)
    if fault is not None:
        request.answer(_refusal(fault))
        return
    try:
        producer_id = broker.producer_ids.take()
    except StorageError as error:
        request.answer(_refusal(error.code))
        return
    # As in Kafka, a producer that shows the id it has gets a new one all the same: only with a
    # transactional id does anybody remember what it had.
    request.answer(InitProducerIdResponse(producer_id=producer_id, producer_epoch=ProducerEpoch(0)))


def _find_fault(body: InitProducerIdRequest) -> ErrorCode | None:
    if (body.producer_id == -1) != (body.producer_epoch == -1):
        return ErrorCode.INVALID_REQUEST
    if body.transactional_id is None:
        return None
    if not body.transactional_id:
        return ErrorCode.INVALID_REQUEST
    # DEVIATION: there are no transactions yet. Of the errors a producer may get here this is the
    # one that ends it at once in every client; any other would be tried again.
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _refusal(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error, producer_id=ProducerId(-1), producer_epoch=ProducerEpoch(-1)
    )
