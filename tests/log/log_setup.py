"""Helpers for log tests: open a log with one topic, build batches, read the content."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kohort.log.catalog import Catalog
from kohort.log.disk import Disk
from kohort.log.limits import Limits
from kohort.log.partition import PartitionLog
from kohort.log.repair import Repair
from kohort.types import Millis, Offset, ProducerEpoch, ProducerId, Topic, Uuid
from kohort.wire.batch import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    Codec,
    NewBatch,
    NewRecord,
    Record,
    encode,
    iter_records,
    split,
)
from kohort.wire.control_batch import EndTransactionMarker, MarkerType, new_marker_batch

NOW = Millis(1_700_000_000_000)
TOPIC = Topic("orders")
TOPIC_ID = Uuid(bytes(range(16)))
SMALL_SEGMENTS = {"internal.segment.bytes": "1000", "index.interval.bytes": "200"}
COMPACTED = {
    **SMALL_SEGMENTS,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1000",
}


def new_record(key: str | None = "k", value: str | None = "v", timestamp: int = NOW) -> NewRecord:
    return NewRecord(
        key=None if key is None else key.encode(),
        value=None if value is None else value.encode(),
        timestamp=Millis(timestamp),
    )


def new_batch(
    *records: NewRecord,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
) -> bytes:
    return encode(
        NewBatch(
            records=records or (new_record(),),
            codec=codec,
            producer_id=ProducerId(producer_id),
            producer_epoch=ProducerEpoch(producer_epoch),
            base_sequence=base_sequence,
            is_transactional=is_transactional,
        )
    )


def numbered_batch(number: int, records: int = 1, size: int = 20) -> bytes:
    """Distinct records, 10 ms later than those of `number - 1`."""
    return new_batch(
        *(
            new_record(f"k{number}.{each}", "v" * size, NOW + 10 * number + each)
            for each in range(records)
        )
    )


def marker_batch(
    producer_id: int, *, is_commit: bool, epoch: int = 0, timestamp: int = NOW
) -> bytes:
    kind = MarkerType.COMMIT if is_commit else MarkerType.ABORT
    return encode(
        new_marker_batch(
            EndTransactionMarker(type=kind, coordinator_epoch=0),
            producer_id=ProducerId(producer_id),
            producer_epoch=ProducerEpoch(epoch),
            timestamp=Millis(timestamp),
            base_offset=Offset(0),
        )
    )


def open_catalog(where: Path | Disk, limits: Limits | None = None, now: Millis = NOW) -> Catalog:
    return open_with_repairs(where, limits, now)[0]


def open_with_repairs(
    where: Path | Disk, limits: Limits | None = None, now: Millis = NOW
) -> tuple[Catalog, tuple[Repair, ...]]:
    return Catalog.open(where, now, limits=limits or Limits())


@contextmanager
def open_log(
    where: Path | Disk, settings: Mapping[str, str] | None = None, limits: Limits | None = None
) -> Iterator[PartitionLog]:
    """The log of the only partition; created if missing, closed cleanly."""
    catalog = open_catalog(where, limits)
    yield get_log(catalog, settings or {})
    catalog.close(NOW)


def get_log(catalog: Catalog, settings: Mapping[str, str] | None = None) -> PartitionLog:
    if catalog.find_topic(TOPIC) is None:
        catalog.create_topic(TOPIC, TOPIC_ID, 1, settings or {})
    log = catalog.partition(TOPIC, 0)
    assert log is not None
    return log


def read_all(log: PartitionLog) -> bytes:
    return b"".join(log.batches(log.start_offset))


def headers_of(data: bytes) -> list[BatchHeader]:
    return [header for _, header in split(data)]


def records_of(data: bytes, *, is_control: bool = False) -> list[Record]:
    return [
        record
        for position, header in split(data)
        if header.is_control == is_control
        for record in iter_records(data, position)
    ]


def values_of(log: PartitionLog) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records_of(read_all(log))]


def latest_of(log: PartitionLog) -> dict[bytes | None, bytes]:
    """The last value of each key that is not deleted."""
    return {key: text for key, text in dict(values_of(log)).items() if text is not None}


def file_names(directory: Path, ending: str = ".log") -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name.endswith(ending))
