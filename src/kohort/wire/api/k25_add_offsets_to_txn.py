"""AddOffsetsToTxn, API key 25: adds the offsets of a group to a transaction (KIP-98).

It adds the group's partition of `__consumer_offsets`; TxnOffsetCommit has the offsets.

Version notes:
 1  the broker responds before it throttles (KIP-219)
 2  the error PRODUCER_FENCED (KIP-588)
 3  flexible (KIP-482)
 4  the error TRANSACTION_ABORTABLE (KIP-890)
"""

from kohort.types import GroupId, Millis, ProducerEpoch, ProducerId, TransactionalId
from kohort.wire.schema import int16, int32, int64, message, string


@message(api_key=25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnRequest:
    transactional_id: TransactionalId = string()
    producer_id: ProducerId = int64()
    producer_epoch: ProducerEpoch = int16()
    group_id: GroupId = string()


@message(api_key=25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnResponse:
    throttle_time_ms: Millis = int32()
    error_code: int = int16()
