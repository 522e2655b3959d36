"""EndTxn, API key 26: a producer commits or aborts its transaction (KIP-98).

Offsets that the transaction committed for a group become visible or are discarded.

Version notes:
 1  the broker responds before it throttles (KIP-219)
 2  the error PRODUCER_FENCED (KIP-588)
 3  flexible (KIP-482)
 4  the error TRANSACTION_ABORTABLE (KIP-890)
 5  every transaction ends with a new producer epoch, which is in the response (KIP-890)
"""

from kohort.types import Millis, ProducerEpoch, ProducerId, TransactionalId
from kohort.wire.schema import boolean, int16, int32, int64, message, string


@message(api_key=26, versions=(0, 5), flexible_since=3)
class EndTxnRequest:
    transactional_id: TransactionalId = string()
    producer_id: ProducerId = int64()
    producer_epoch: ProducerEpoch = int16()
    # True commits, False aborts.
    committed: bool = boolean()


@message(api_key=26, versions=(0, 5), flexible_since=3)
class EndTxnResponse:
    throttle_time_ms: Millis = int32()
    error_code: int = int16()
    producer_id: ProducerId = int64(since=5, default=-1, ignorable=True)
    producer_epoch: ProducerEpoch = int16(since=5, default=-1, ignorable=True)
