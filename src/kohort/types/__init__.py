"""Names that all packages share: ids, numbers, error codes, TopicPartition. No behaviour."""

from kohort.types.error_code import ErrorCode
from kohort.types.ids import (
    ZERO_UUID,
    BrokerId,
    DeadlineMillis,
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
    TopicPartition,
    TransactionalId,
    Uuid,
)
from kohort.types.value import value

__all__ = [
    "ZERO_UUID",
    "BrokerId",
    "DeadlineMillis",
    "ErrorCode",
    "Generation",
    "GroupId",
    "InstanceId",
    "MemberId",
    "Millis",
    "Offset",
    "Partition",
    "ProducerEpoch",
    "ProducerId",
    "Topic",
    "TopicPartition",
    "TransactionalId",
    "Uuid",
    "value",
]
