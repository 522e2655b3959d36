"""The words every room shares: names for ids, numbers and errors. No behaviour lives here."""

from kohort.types.error_code import ErrorCode
from kohort.types.ids import (
    ZERO_UUID,
    BrokerId,
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
    Uuid,
)
from kohort.types.value import maker, value

__all__ = [
    "ZERO_UUID",
    "BrokerId",
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
    "TransactionalId",
    "Uuid",
    "maker",
    "value",
]
