"""Sample batches, and the codecs of kafka-python and kio for comparison."""

import io
from datetime import UTC, datetime

from crc32c import crc32c
from hypothesis import strategies as st
from kafka import codec as kafka_codec
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, RecordBatch, RecordHeader
from kio.records.schema import Record as KioRecord
from kio.records.writers import write_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from kohort.types import Millis, Offset, ProducerEpoch, ProducerId
from kohort.wire.batch import Codec, Header, NewBatch, NewRecord, Record, encode

COMPRESS_WITH_KAFKA_PYTHON = {
    Codec.GZIP: kafka_codec.gzip_encode,
    Codec.SNAPPY: kafka_codec.snappy_encode,
    Codec.LZ4: kafka_codec.lz4_encode,
    Codec.ZSTD: kafka_codec.zstd_encode,
}
DECOMPRESS_WITH_KAFKA_PYTHON = {
    Codec.GZIP: kafka_codec.gzip_decode,
    Codec.SNAPPY: kafka_codec.snappy_decode,
    Codec.LZ4: kafka_codec.lz4_decode,
    Codec.ZSTD: kafka_codec.zstd_decode,
}

NOW = Millis(1_700_000_000_000)

NULLABLE_BYTES = st.none() | st.binary(max_size=90)
HEADERS = st.lists(
    st.builds(Header, key=st.text(max_size=12), value=st.none() | st.binary(max_size=12)),
    max_size=3,
).map(tuple)


def new_records(timestamps: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[NewRecord, ...]]:
    record = st.builds(
        NewRecord,
        key=NULLABLE_BYTES,
        value=NULLABLE_BYTES,
        timestamp=timestamps.map(Millis),
        headers=HEADERS,
    )
    return st.lists(record, min_size=1, max_size=8).map(tuple)


def new_batches(
    timestamps: st.SearchStrategy[int] | None = None, codec: Codec | None = None
) -> st.SearchStrategy[NewBatch]:
    if timestamps is None:
        timestamps = st.integers(0, 2**62)
    return st.builds(
        NewBatch,
        records=new_records(timestamps),
        base_offset=st.integers(0, 2**62).map(Offset),
        partition_leader_epoch=st.integers(-1, 2**31 - 1),
        codec=st.sampled_from(Codec) if codec is None else st.just(codec),
        log_append_time=st.none() | st.integers(0, 2**62).map(Millis),
        is_transactional=st.booleans(),
        is_control=st.booleans(),
        producer_id=st.integers(-1, 2**63 - 1).map(ProducerId),
        producer_epoch=st.integers(-1, 2**15 - 1).map(ProducerEpoch),
        base_sequence=st.integers(-1, 2**31 - 1),
    )


SAMPLE = NewBatch(
    records=(
        NewRecord(key=b"key", value=b"value", timestamp=NOW),
        NewRecord(key=None, value=b"v" * 200, timestamp=Millis(NOW - 3)),
        NewRecord(
            key=b"",
            value=None,
            timestamp=Millis(NOW + 70_000),
            headers=(Header(key="trace", value=b"id"), Header(key="ü", value=None)),
        ),
    ),
    base_offset=Offset(41),
    partition_leader_epoch=7,
    producer_id=ProducerId(9),
    producer_epoch=ProducerEpoch(2),
    base_sequence=5,
)


def expected_records(batch: NewBatch) -> tuple[Record, ...]:
    return tuple(
        Record(
            offset=Offset(batch.base_offset + delta),
            timestamp=record.timestamp if batch.log_append_time is None else batch.log_append_time,
            key=record.key,
            value=record.value,
            headers=record.headers,
        )
        for delta, record in enumerate(batch.records)
    )


def encode_with_kafka_python(batch: NewBatch) -> bytes:
    """Its builder does not support base offset, leader epoch and control batches."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(batch.codec),
        is_transactional=batch.is_transactional,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        batch_size=2**31 - 1,
    )
    for offset, record in enumerate(batch.records):
        headers = [(header.key, header.value) for header in record.headers]
        assert builder.append(offset, record.timestamp, record.key, record.value, headers)
    return bytes(builder.build())


def decode_with_kafka_python(data: bytes) -> tuple[DefaultRecordBatch, tuple[Record, ...]]:
    batch = DefaultRecordBatch(data)
    assert batch.validate_crc()
    records = tuple(
        Record(
            offset=record.offset,
            timestamp=record.timestamp,
            key=record.key,
            value=record.value,
            headers=tuple(Header(key=key, value=value) for key, value in record.headers),
        )
        for record in batch
    )
    return batch, records


def encode_with_kio(batch: NewBatch) -> bytes:
    """kio has no compression, and takes the base offset from the first record."""
    with io.BytesIO() as out:
        write_batch(
            out,
            NewRecordBatch(
                producer_id=i64(batch.producer_id),
                producer_epoch=i16(batch.producer_epoch),
                partition_leader_epoch=i32(batch.partition_leader_epoch),
                base_sequence=i32(batch.base_sequence),
                records=tuple(map(_to_kio, expected_records(batch))),
                attributes=i16(0x10 * batch.is_transactional + 0x20 * batch.is_control),
            ),
        )
        return out.getvalue()


def decode_with_kio(data: bytes) -> tuple[RecordBatch, tuple[Record, ...]]:
    batch, size = read_batch(data, 0)
    assert size == len(data)
    return batch, tuple(map(_from_kio, batch.records))


def _to_kio(record: Record) -> KioRecord:
    return KioRecord(
        attributes=i8(0),
        timestamp=TZAwareMicros.parse(datetime.fromtimestamp(record.timestamp / 1000, UTC)),
        offset=i64(record.offset),
        key=record.key,
        value=record.value,
        headers=tuple(
            RecordHeader(key=header.key.encode(), value=header.value) for header in record.headers
        ),
    )


def _from_kio(record: KioRecord) -> Record:
    return Record(
        offset=Offset(record.offset),
        timestamp=Millis(int(record.timestamp.timestamp() * 1000)),
        key=record.key,
        value=record.value,
        headers=tuple(
            Header(key=(header.key or b"").decode(), value=header.value)
            for header in record.headers
        ),
    )


def update_crc(data: bytearray) -> bytes:
    """The bytes with a valid checksum."""
    data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4)
    return bytes(data)


def encode_body(body: bytes, *, record_count: int, last_offset_delta: int | None = None) -> bytes:
    """A batch with these bytes as records and a valid checksum."""
    data = bytearray(encode(SAMPLE)[:61] + body)
    data[8:12] = (len(data) - 12).to_bytes(4)
    data[57:61] = record_count.to_bytes(4, signed=True)
    if last_offset_delta is None:
        last_offset_delta = max(0, record_count - 1)
    data[23:27] = last_offset_delta.to_bytes(4, signed=True)
    return update_crc(data)
