"""Read by offset: limits, several segments, gaps and open files."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log.errors import CorruptFile, RequestRejected
from kohort.log.limits import Limits
from kohort.types import ErrorCode, Offset
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    file_names,
    get_log,
    headers_of,
    new_batch,
    new_record,
    numbered_batch,
    open_catalog,
    open_log,
    read_all,
)


@pytest.mark.parametrize("index_interval", ["0", "150", "4096"])
def test_read_starts_at_the_batch_that_contains_the_offset(index_interval: str) -> None:
    sizes = [1, 5, 2, 1, 1, 9, 3, 1, 4, 2] * 4
    with open_log(MemoryDisk(), {**SMALL_SEGMENTS, "index.interval.bytes": index_interval}) as log:
        bases = [
            log.append(numbered_batch(number, records=count), NOW).base_offset
            for number, count in enumerate(sizes)
        ]

        for offset in range(log.end_offset):
            data = log.read(Offset(offset), 1, at_least_one=True)
            assert headers_of(data)[0].base_offset == max(b for b in bases if b <= offset)


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=30),
    interval=st.integers(0, 500),
    segment=st.integers(400, 3000),
)
@settings(max_examples=25)
def test_consecutive_reads_return_all_batches(
    sizes: list[int], interval: int, segment: int
) -> None:
    settings_ = {"internal.segment.bytes": str(segment), "index.interval.bytes": str(interval)}
    with open_log(MemoryDisk(), settings_) as log:
        for number, count in enumerate(sizes):
            log.append(numbered_batch(number, records=count, size=1), NOW)
        expected = read_all(log)

        read, offset = b"", Offset(0)
        while offset < log.end_offset:
            data = log.read(offset, 700, at_least_one=True)
            headers = headers_of(_whole_batches(data))
            read += data[: sum(header.size_in_bytes for header in headers)]
            offset = headers[-1].next_offset

        assert read == expected


def _whole_batches(data: bytes) -> bytes:
    """Without the truncated batch at the end."""
    end = 0
    while end + 12 <= len(data):
        size = 12 + int.from_bytes(data[end + 8 : end + 12])
        if end + size > len(data):
            break
        end += size
    return data[:end]


def test_read_limit_never_truncates_the_first_batch() -> None:
    batches = [numbered_batch(number) for number in range(3)]
    size = len(batches[0])
    with open_log(MemoryDisk()) as log:
        for batch in batches:
            log.append(batch, NOW)

        assert len(log.read(Offset(0), 2 * size + 5, at_least_one=False)) == 2 * size + 5
        assert len(log.read(Offset(0), size - 1, at_least_one=True)) == size
        assert log.read(Offset(0), size - 1, at_least_one=False) == b""
        assert log.read(Offset(0), 0, at_least_one=False) == b""


def test_read_at_the_log_end_is_empty_and_beyond_is_an_error() -> None:
    with open_log(MemoryDisk()) as log:
        log.append(numbered_batch(0, records=2), NOW)

        assert log.read(Offset(2), 100, at_least_one=True) == b""
        for offset in (-1, 3):
            with pytest.raises(RequestRejected) as rejected:
                log.read(Offset(offset), 100, at_least_one=True)
            assert rejected.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_read_of_an_empty_log_is_empty() -> None:
    with open_log(MemoryDisk()) as log:
        assert log.read(Offset(0), 100, at_least_one=True) == b""
        assert list(log.batches(Offset(0))) == []


def test_read_excludes_batches_beyond_the_offset_limit() -> None:
    with open_log(MemoryDisk(), SMALL_SEGMENTS) as log:
        for number in range(20):
            log.append(numbered_batch(number, records=2), NOW)

        for before in range(log.end_offset + 1):
            read, offset = 0, Offset(0)
            while data := log.read(offset, 10_000, at_least_one=True, before=Offset(before)):
                offset = headers_of(data)[-1].next_offset
                read = offset
            assert read == before - before % 2


def test_chunks_contain_whole_batches_of_any_size() -> None:
    with open_log(MemoryDisk(), SMALL_SEGMENTS) as log:
        for number in range(10):
            log.append(numbered_batch(number, size=40 * number), NOW)

        chunks = list(log.batches(Offset(3), chunk_bytes=100))

        assert [header.base_offset for chunk in chunks for header in headers_of(chunk)] == [
            *range(3, 10)
        ]


def test_chunk_iteration_survives_changes_of_the_log() -> None:
    with open_log(MemoryDisk(), SMALL_SEGMENTS) as log:
        for number in range(30):
            log.append(numbered_batch(number), NOW)
        chunks = log.batches(Offset(0), chunk_bytes=200)
        seen = [header.base_offset for header in headers_of(next(chunks))]

        log.delete_before(Offset(20))
        log.append(numbered_batch(30), NOW)

        seen += [header.base_offset for chunk in chunks for header in headers_of(chunk)]
        assert seen == [0, 1, *range(20, 31)]


def test_number_of_open_segment_files_is_limited(tmp_path: Path) -> None:
    with open_log(tmp_path, SMALL_SEGMENTS, Limits(open_files_max=4)) as log:
        for number in range(100):
            log.append(numbered_batch(number), NOW)
        before = len(list(Path("/proc/self/fd").iterdir()))

        for offset in range(100):
            log.read(Offset(offset), 1, at_least_one=True)

        assert len(file_names(tmp_path / f"{TOPIC}-0")) > 5
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


def test_corrupt_sealed_segment_raises_corrupt_file(tmp_path: Path) -> None:
    with open_log(tmp_path, {**SMALL_SEGMENTS, "index.interval.bytes": "100000"}) as log:
        for number in range(20):
            log.append(numbered_batch(number), NOW)
    segment = tmp_path / f"{TOPIC}-0" / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[8:12] = b"\xff\xff\xff\xff"
    segment.write_bytes(data)

    with open_log(tmp_path) as log:
        with pytest.raises(CorruptFile):
            log.read(Offset(0), 100, at_least_one=True)
        assert headers_of(log.read(Offset(1), 1, at_least_one=True))[0].base_offset == 1


def test_lookup_needs_more_than_one_header_read() -> None:
    with open_log(MemoryDisk(), {"index.interval.bytes": "1000000"}) as log:
        for number in range(5):
            log.append(new_batch(new_record(value="x" * 9000)), NOW)
            log.append(numbered_batch(number), NOW)

        for offset in range(10):
            data = log.read(Offset(offset), 1, at_least_one=True)
            assert headers_of(data)[0].base_offset == offset


def test_read_after_a_restart(tmp_path: Path) -> None:
    with open_log(tmp_path, SMALL_SEGMENTS) as log:
        for number in range(20):
            log.append(numbered_batch(number), NOW)
        expected = read_all(log)
    catalog = open_catalog(tmp_path)
    log = get_log(catalog)

    assert read_all(log) == expected
    assert log.append(numbered_batch(20), NOW).base_offset == 20
    catalog.close(NOW)
