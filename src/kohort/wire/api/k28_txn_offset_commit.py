"""TxnOffsetCommit, API key 28: a producer commits a group's offsets as part of its transaction.

It goes to the group's coordinator, which holds the offsets back until the transaction ends.

Version notes:
 1  the broker answers first and throttles afterwards (KIP-219)
 2  the leader epoch of the last record read (KIP-320)
 3  flexible (KIP-482); generation and member, so that a zombie's offsets are refused (KIP-447)
 4  TRANSACTION_ABORTABLE may be answered (KIP-890)
 5  it also enlists the group, and AddOffsetsToTxn is not needed before it (KIP-890)
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
    # -1 with an empty member id from a producer that knows only the group's name.
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
