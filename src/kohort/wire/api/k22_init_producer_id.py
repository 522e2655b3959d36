"""InitProducerId, API key 22: a producer asks for its id and epoch, and fences its predecessors.

Idempotent producers ask any broker, transactional ones their coordinator (KIP-98).

Version notes:
 1  the broker answers first and throttles afterwards (KIP-219)
 2  flexible (KIP-482)
 3  a producer may ask for a new epoch of the id it has, and go on after an error (KIP-360)
 4  PRODUCER_FENCED may be answered (KIP-588)
 5  TRANSACTION_ABORTABLE may be answered (KIP-890)
 6  two-phase commit: a prepared transaction may be kept (KIP-939); unstable in Kafka so far
"""

from kohort.types import Millis, ProducerEpoch, ProducerId, TransactionalId
from kohort.wire.schema import boolean, int16, int32, int64, message, string


@message(api_key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdRequest:
    # Null from a producer that is idempotent and no more.
    transactional_id: TransactionalId | None = string(nullable_since=0)
    transaction_timeout_ms: Millis = int32()
    # -1, with epoch -1, from a producer that has none.
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
