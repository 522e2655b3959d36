"""TxnOffsetCommit, API key 28: a producer commits a group's offsets as part of its transaction.

It is sent to the group coordinator, which keeps the offsets pending until the transaction ends.

Version notes:
 1  the broker responds before it throttles (KIP-219)
 2  the leader epoch of the last record read (KIP-320)
 3  flexible (KIP-482); generation and member id, to reject the offsets of zombies (KIP-447)
 4  the error TRANSACTION_ABORTABLE (KIP-890)
 5  adds the group to the transaction; AddOffsetsToTxn is not needed (KIP-890)
"""

from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    TransactionalId,
)
from kohort.wire.schema import array, int16, int32, int64, message, part, string


@part
class TxnOffsetCommitRequestPartition:
    partition_index: Partition = int32()
    committed_offset: Offset = int64()
    committed_leader_epoch: int = int32(since=2, default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable_since=0)


@part
class TxnOffsetCommitRequestTopic:
    name: Topic = string()
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = array(TxnOffsetCommitRequestPartition)


@message(api_key=28, versions=(0, 5), flexible_since=3)
class TxnOffsetCommitRequest:
    transactional_id: TransactionalId = string()
    group_id: GroupId = string()
    producer_id: ProducerId = int64()
    producer_epoch: ProducerEpoch = int16()
    # -1 with an empty member id if the producer knows only the group id.
    generation_id: Generation = int32(since=3, default=-1)
    member_id: MemberId = string(since=3)
    group_instance_id: InstanceId | None = string(since=3, nullable_since=3, default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = array(TxnOffsetCommitRequestTopic)


@part
class TxnOffsetCommitResponsePartition:
    partition_index: Partition = int32()
    error_code: int = int16()


@part
class TxnOffsetCommitResponseTopic:
    name: Topic = string()
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = array(
        TxnOffsetCommitResponsePartition
    )


@message(api_key=28, versions=(0, 5), flexible_since=3)
class TxnOffsetCommitResponse:
    throttle_time_ms: Millis = int32()
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = array(TxnOffsetCommitResponseTopic)
