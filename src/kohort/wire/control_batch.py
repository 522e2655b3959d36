"""Control batches: a broker writes them to the log for consumers; applications never see them.

A transaction ends in each of its partitions with a control batch of one record, the marker.
"""

import struct
from enum import IntEnum
from typing import Final

from kohort.types import Millis, Offset, ProducerEpoch, ProducerId, value
from kohort.wire.batch import NO_PARTITION_LEADER_EPOCH, NewBatch, NewRecord, Record
from kohort.wire.errors import MalformedMessage, UnencodableMessage

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_VERSION: Final = 0


class MarkerType(IntEnum):
    """How a transaction ended."""

    ABORT = 0
    COMMIT = 1


@value
class EndTransactionMarker:
    """The end of a transaction. The batch header has the producer id."""

    type: MarkerType
    coordinator_epoch: int


def find_marker(record: Record) -> EndTransactionMarker | None:
    """The marker in the record of a control batch, or None if it is another control record.

    Later versions may only append fields, so all versions are read in the same way.
    """
    version, kind = _unpack(_KEY, "key", record.key)
    if version < 0:
        raise MalformedMessage("ControlRecord", "key", 0, f"version {version} is negative")
    if kind not in (MarkerType.ABORT, MarkerType.COMMIT):
        return None
    version, coordinator_epoch = _unpack(_VALUE, "value", record.value)
    if version < 0:
        raise MalformedMessage("ControlRecord", "value", 0, f"version {version} is negative")
    return EndTransactionMarker(type=MarkerType(kind), coordinator_epoch=coordinator_epoch)


def _unpack(layout: struct.Struct, field: str, data: bytes | None) -> tuple[int, int]:
    if data is None or len(data) < layout.size:
        found = "null" if data is None else f"{len(data)} bytes"
        raise MalformedMessage("ControlRecord", field, 0, f"{found}, not {layout.size} bytes")
    version, number = layout.unpack_from(data)
    return version, number


def new_marker_batch(
    marker: EndTransactionMarker,
    *,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    timestamp: Millis,
    base_offset: Offset,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> NewBatch:
    """The batch that ends a transaction. Markers have no sequence number."""
    try:
        value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    except struct.error as error:
        raise UnencodableMessage("ControlRecord", "coordinator_epoch", str(error)) from None
    key = _KEY.pack(_VERSION, marker.type)
    return NewBatch(
        records=(NewRecord(key=key, value=value, timestamp=timestamp),),
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        is_transactional=True,
        is_control=True,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
