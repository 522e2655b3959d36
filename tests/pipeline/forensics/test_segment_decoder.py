"""Segment files are decoded completely, to their valid end, and damage is reported."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.log.catalog import Catalog
from kohort.pipeline.forensics.decoders import segment_decoder
from kohort.pipeline.forensics.decoders.segment_decoder import DamagedLog, find_end
from kohort.pipeline.forensics.decoders.segment_files import SegmentFile, list_segments
from kohort.pipeline.forensics.decoders.transaction_filter import decode_segment
from kohort.types import Millis, Offset, Uuid
from kohort.wire.batch import Codec, NewBatch, NewRecord, encode, iter_records, split
from tests.log.log_setup import marker_batch, new_batch, new_record
from tests.pipeline.forensics.history_bytes import (
    OFFSETS,
    SMALL_SEGMENTS,
    History,
    some_history,
    write,
)
from tests.wire.batches import update_crc

Rows = list[tuple[int, bytes | None, bytes | None]]


def decoded(*given_segments: SegmentFile) -> Rows:
    found: Rows = []
    for segment in given_segments:
        for batch in decode_segment(segment):
            batch.validate(full=True)
            assert batch.schema == segment_decoder.SCHEMA
            columns = (batch.column(name).to_pylist() for name in ("offset", "key", "value"))
            found += zip(*columns, strict=True)
    return found


def told(history: History) -> Rows:
    return [(each.offset, each.key, each.value) for each in history.of(OFFSETS)]


def only_segment(directory: Path, content: bytes) -> SegmentFile:
    """A log of one segment with this content."""
    where = directory / f"{OFFSETS}-0"
    where.mkdir(parents=True, exist_ok=True)
    (where / f"{0:020d}.log").write_bytes(content)
    (segment,) = list_segments(str(directory))
    return segment


def content_of(history: History) -> bytes:
    return b"".join(
        encode(
            NewBatch(
                records=(NewRecord(key=each.key, value=each.value, timestamp=each.at),),
                base_offset=each.offset,
            )
        )
        for each in history.of(OFFSETS)
    )


@pytest.mark.parametrize("codec", list(Codec))
def test_compressed_batches_are_decoded(tmp_path: Path, codec: Codec) -> None:
    history = some_history()
    records = tuple(
        NewRecord(key=each.key, value=each.value, timestamp=each.at) for each in history.of(OFFSETS)
    )
    plain = encode(NewBatch(records=records[:1]))
    packed = encode(NewBatch(records=records[1:], base_offset=Offset(1), codec=codec))

    assert decoded(only_segment(tmp_path, plain + packed)) == told(history)


def test_timestamps_are_create_time_or_log_append_time(tmp_path: Path) -> None:
    records = (NewRecord(key=b"", value=b"", timestamp=Millis(5)),)
    by_producer = encode(NewBatch(records=records))
    by_broker = encode(NewBatch(records=records, base_offset=Offset(1), log_append_time=Millis(7)))

    (batch,) = decode_segment(only_segment(tmp_path, by_producer + by_broker))

    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [5_000, 7_000]


def test_batches_across_windows_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = some_history(commits=50)
    segment = only_segment(tmp_path, content_of(history))

    for size in (1, 61, 100, 1_000):
        monkeypatch.setattr(segment_decoder, "WINDOW_BYTES", size)
        assert decoded(segment) == told(history)


def test_each_offset_of_overlapping_segments_is_read_once(tmp_path: Path) -> None:
    history = some_history()
    content = content_of(history)
    only_segment(tmp_path, content)
    tail = next(position for position, header in split(content) if header.base_offset == 9)
    (tmp_path / f"{OFFSETS}-0" / f"{9:020d}.log").write_bytes(content[tail:])

    assert decoded(*list_segments(str(tmp_path))) == told(history)


def test_unfinished_files_of_compaction_are_ignored(tmp_path: Path) -> None:
    history = some_history()
    write(tmp_path, history, settings=SMALL_SEGMENTS)
    directory = tmp_path / f"{OFFSETS}-0"
    for segment in sorted(directory.glob("*.log")):
        for stage in (".cleaned", ".swap", ".deleted"):
            shutil.copy(segment, segment.with_name(segment.name + stage))

    assert decoded(*list_segments(str(directory))) == told(history)


@pytest.mark.parametrize("rest", [bytes(5_000), b"\xff" * 300, b"garbage " * 40, b"\x00"])
def test_garbage_after_the_last_batch_is_left_out(tmp_path: Path, rest: bytes) -> None:
    content = content_of(some_history())

    end = find_end(only_segment(tmp_path, content + rest))

    assert end.size == len(content)
    assert end.reason


@given(data=st.data())
def test_a_truncated_log_ends_with_its_last_complete_batch(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = content_of(some_history(commits=4))
    cut = content[: data.draw(st.integers(1, len(content)))]
    segment = only_segment(tmp_path_factory.mktemp("cut"), cut)

    end = find_end(segment)

    whole = [position + header.size_in_bytes for position, header in split(cut, truncated_ok=True)]
    assert end.size == max(whole, default=0)
    assert (end.reason is None) == (end.size == len(cut))
    assert len(decoded(replace(segment, size=end.size))) == len(whole)


@given(data=st.data())
def test_a_changed_byte_is_reported_with_its_position(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Offset and leader epoch are not covered by the checksum, so they are not changed here."""
    content = bytearray(content_of(some_history(commits=4)))
    (begin, header), *_ = data.draw(st.permutations(list(split(bytes(content)))[:-1]))
    at = begin + data.draw(st.sampled_from([*range(8, 12), *range(16, header.size_in_bytes)]))
    content[at] ^= data.draw(st.integers(1, 255))
    segment = only_segment(tmp_path_factory.mktemp("changed"), bytes(content))

    with pytest.raises(DamagedLog, match=rf"{0:020d}.log: damaged at position {begin}: "):
        find_end(segment)
    with pytest.raises(DamagedLog, match=rf"{0:020d}.log: damaged at position {begin}: "):
        decoded(segment)


def test_batches_before_kafka_0_11_are_not_an_incomplete_end(tmp_path: Path) -> None:
    content = bytearray(content_of(some_history(commits=0)))
    content[16] = 1

    with pytest.raises(DamagedLog, match="magic 1 is not supported"):
        find_end(only_segment(tmp_path, bytes(content[:100])))


def test_malformed_records_with_a_valid_checksum_are_refused(tmp_path: Path) -> None:
    sound = encode(NewBatch(records=(NewRecord(key=b"k", value=b"v", timestamp=Millis(1)),)))
    broken = encode(
        NewBatch(
            records=(NewRecord(key=b"k", value=b"v", timestamp=Millis(1)),), base_offset=Offset(1)
        )
    )
    body = bytearray(broken)
    body[61] += 2
    resealed = update_crc(body)

    with pytest.raises(DamagedLog, match=f"damaged at position {len(sound)}: "):
        decoded(only_segment(tmp_path, sound + resealed))


def test_only_committed_transactions_are_decoded(tmp_path: Path) -> None:
    """Across segments, with and without .txnindex files."""
    catalog, _ = Catalog.open(tmp_path, Millis(0))
    catalog.create_topic(OFFSETS, Uuid(bytes([1] * 16)), 1, SMALL_SEGMENTS)
    log = catalog.partition(OFFSETS, 0)
    assert log is not None
    for number in range(12):
        for producer in (1, 2, 3):
            batch = new_batch(
                new_record(f"{producer}.{number}"),
                producer_id=producer,
                producer_epoch=0,
                is_transactional=True,
            )
            log.append_trusted(batch, Millis(0))
        if number % 4 == 3:
            for producer in (1, 2) if number > 8 else (1, 2, 3):
                log.append_trusted(marker_batch(producer, is_commit=producer != 2), Millis(0))
    aborted = log.aborted_transactions(log.start_offset, log.end_offset)
    content = b"".join(log.batches(log.start_offset))
    stable = log.last_stable_offset
    catalog.close(Millis(0))
    found = list_segments(str(tmp_path))

    with_index = decoded(*found)
    for index in (tmp_path / f"{OFFSETS}-0").glob("*.txnindex"):
        index.unlink()
    without_index = decoded(*found)

    # Kafka's own way to tell: below the last stable offset, and in no range of the index.
    expected = [
        (record.offset, record.key, record.value)
        for position, header in split(content)
        for record in iter_records(content, position)
        if not header.is_control
        and not any(
            each.producer_id == header.producer_id
            and each.first_offset <= record.offset <= each.last_offset
            for each in aborted
        )
        and (record.offset < stable or header.producer_id != 3)
    ]
    assert len(found) > 4
    assert len(aborted) == 3
    assert len(expected) == 12 + 8
    assert with_index == without_index == expected
