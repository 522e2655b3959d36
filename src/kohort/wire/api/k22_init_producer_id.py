"""InitProducerId, API key 22: assigns a producer id and epoch, and fences older producers.

Idempotent producers send it to any broker, transactional ones to their coordinator (KIP-98).

Version notes:
 1  the broker responds before it throttles (KIP-219)
 2  flexible (KIP-482)
 3  a producer can get a new epoch for its id, to continue after an error (KIP-360)
 4  the error PRODUCER_FENCED (KIP-588)
 5  the error TRANSACTION_ABORTABLE (KIP-890)
 6  two-phase commit: a prepared transaction can be kept (KIP-939); still unstable in Kafka
"""

from kohort.types import Millis, ProducerEpoch, ProducerId, TransactionalId
from kohort.wire.schema import boolean, int16, int32, int64, message, string


@message(api_key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdRequest:
    # Null from a producer that is only idempotent.
    transactional_id: TransactionalId | None = string(nullable_since=0)
    transaction_timeout_ms: Millis = int32()
    # -1 with epoch -1 from a new producer.
    producer_id: ProducerId = int64(since=3, default=-1)
    producer_epoch: ProducerEpoch = int16(since=3, default=-1)
    enable2_pc: bool = boolean(since=6)
    keep_prepared_txn: bool = boolean(since=6)


@message(api_key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdResponse:
    throttle_time_ms: Millis = int32(ignorable=True)
    error_code: int = int16()
    producer_id: ProducerId = int64(default=-1)
    producer_epoch: ProducerEpoch = int16()
    ongoing_txn_producer_id: ProducerId = int64(since=6, default=-1)
    ongoing_txn_producer_epoch: int = int16(since=6, default=-1)
