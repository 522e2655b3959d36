"""Reading: bytes by offset, cut where the reader wants, across segments and gaps."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log.errors import Damaged, Refused
from kohort.log.limits import Limits
from kohort.types import ErrorCode, Offset
from tests.log.disks import ForgetfulDisk
from tests.log.logs import (
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
    opened,
    read_all,
)


@pytest.mark.parametrize("index_interval", ["0", "150", "4096"])
def test_every_offset_finds_the_batch_that_holds_it(index_interval: str) -> None:
    sizes = [1, 5, 2, 1, 1, 9, 3, 1, 4, 2] * 4
    with opened(ForgetfulDisk(), {**SMALL_SEGMENTS, "index.interval.bytes": index_interval}) as log:
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
def test_a_reader_who_goes_on_where_he_stopped_sees_everything(
    sizes: list[int], interval: int, segment: int
) -> None:
    settings_ = {"internal.segment.bytes": str(segment), "index.interval.bytes": str(interval)}
    with opened(ForgetfulDisk(), settings_) as log:
        for number, count in enumerate(sizes):
            log.append(numbered_batch(number, records=count, size=1), NOW)
        expected = read_all(log)

        read, offset = b"", Offset(0)
        while offset < log.end_offset:
            data = log.read(offset, 700, at_least_one=True)
            headers = headers_of(_whole(data))
            read += data[: sum(header.size_in_bytes for header in headers)]
            offset = headers[-1].next_offset

        assert read == expected


def _whole(data: bytes) -> bytes:
    """Without the batch that is cut short."""
    end = 0
    while end + 12 <= len(data):
        size = 12 + int.from_bytes(data[end + 8 : end + 12])
        if end + size > len(data):
            break
        end += size
    return data[:end]


def test_bytes_are_cut_at_the_limit_but_not_within_the_first_batch() -> None:
    batches = [numbered_batch(number) for number in range(3)]
    size = len(batches[0])
    with opened(ForgetfulDisk()) as log:
        for batch in batches:
            log.append(batch, NOW)

        assert len(log.read(Offset(0), 2 * size + 5, at_least_one=False)) == 2 * size + 5
        assert len(log.read(Offset(0), size - 1, at_least_one=True)) == size
        assert log.read(Offset(0), size - 1, at_least_one=False) == b""
        assert log.read(Offset(0), 0, at_least_one=False) == b""


def test_at_the_end_there_is_nothing_and_beyond_it_an_error() -> None:
    with opened(ForgetfulDisk()) as log:
        log.append(numbered_batch(0, records=2), NOW)

        assert log.read(Offset(2), 100, at_least_one=True) == b""
        for offset in (-1, 3):
            with pytest.raises(Refused) as refused:
                log.read(Offset(offset), 100, at_least_one=True)
            assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_empty_log_can_be_read_at_its_end() -> None:
    with opened(ForgetfulDisk()) as log:
        assert log.read(Offset(0), 100, at_least_one=True) == b""
        assert list(log.batches(Offset(0))) == []


def test_batches_that_reach_past_a_limit_stay_out() -> None:
    with opened(ForgetfulDisk(), SMALL_SEGMENTS) as log:
        for number in range(20):
            log.append(numbered_batch(number, records=2), NOW)

        for before in range(log.end_offset + 1):
            read, offset = 0, Offset(0)
            while data := log.read(offset, 10_000, at_least_one=True, before=Offset(before)):
                offset = headers_of(data)[-1].next_offset
                read = offset
            assert read == before - before % 2


def test_chunks_hold_whole_batches_however_large() -> None:
    with opened(ForgetfulDisk(), SMALL_SEGMENTS) as log:
        for number in range(10):
            log.append(numbered_batch(number, size=40 * number), NOW)

        chunks = list(log.batches(Offset(3), chunk_bytes=100))

        assert [header.base_offset for chunk in chunks for header in headers_of(chunk)] == [
            *range(3, 10)
        ]


def test_a_walk_goes_on_though_the_log_changes_meanwhile() -> None:
    with opened(ForgetfulDisk(), SMALL_SEGMENTS) as log:
        for number in range(30):
            log.append(numbered_batch(number), NOW)
        walk = log.batches(Offset(0), chunk_bytes=200)
        seen = [header.base_offset for header in headers_of(next(walk))]

        log.delete_before(Offset(20))
        log.append(numbered_batch(30), NOW)

        seen += [header.base_offset for chunk in walk for header in headers_of(chunk)]
        assert seen == [0, 1, *range(20, 31)]


def test_few_sealed_segments_stay_open(tmp_path: Path) -> None:
    with opened(tmp_path, SMALL_SEGMENTS, Limits(open_segments_max=2)) as log:
        for number in range(100):
            log.append(numbered_batch(number), NOW)
        before = len(list(Path("/proc/self/fd").iterdir()))

        for offset in range(100):
            log.read(Offset(offset), 1, at_least_one=True)

        assert len(file_names(tmp_path / f"{TOPIC}-0")) > 5
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


def test_damage_in_a_sealed_segment_is_an_error_not_a_crash(tmp_path: Path) -> None:
    with opened(tmp_path, {**SMALL_SEGMENTS, "index.interval.bytes": "100000"}) as log:
        for number in range(20):
            log.append(numbered_batch(number), NOW)
    segment = tmp_path / f"{TOPIC}-0" / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[8:12] = b"\xff\xff\xff\xff"
    segment.write_bytes(data)

    with opened(tmp_path) as log, pytest.raises(Damaged):
        log.read(Offset(1), 100, at_least_one=True)


def test_the_position_of_a_batch_may_lie_beyond_what_is_read_at_once() -> None:
    with opened(ForgetfulDisk(), {"index.interval.bytes": "1000000"}) as log:
        for number in range(5):
            log.append(new_batch(new_record(value="x" * 9000)), NOW)
            log.append(numbered_batch(number), NOW)

        for offset in range(10):
            data = log.read(Offset(offset), 1, at_least_one=True)
            assert headers_of(data)[0].base_offset == offset


def test_reading_goes_on_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path, SMALL_SEGMENTS) as log:
        for number in range(20):
            log.append(numbered_batch(number), NOW)
        expected = read_all(log)
    catalog = open_catalog(tmp_path)
    log = get_log(catalog)

    assert read_all(log) == expected
    assert log.append(numbered_batch(20), NOW).base_offset == 20
    catalog.close(NOW)
