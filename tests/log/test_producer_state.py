"""Producer state: duplicate detection, sequence checks, snapshots and expiration."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log.appended_batch import Appended
from kohort.log.errors import RequestRejected
from kohort.log.limits import Limits
from kohort.log.partition import PartitionLog
from kohort.log.producer_snapshot import decode_snapshot, encode_snapshot
from kohort.log.producer_state import ProducerStateManager
from kohort.types import ErrorCode, Millis, Offset
from kohort.wire.batch import peek
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    get_log,
    new_batch,
    new_record,
    open_catalog,
    open_log,
)

DAY = 24 * 60 * 60_000


def send(
    log: PartitionLog,
    sequence: int,
    *,
    count: int = 1,
    epoch: int = 0,
    producer_id: int = 7,
    timestamp: int = NOW,
) -> Appended:
    batch = new_batch(
        *(new_record(timestamp=timestamp) for _ in range(count)),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return log.append(batch, NOW)


def rejection_code(log: PartitionLog, sequence: int, *, epoch: int = 0) -> ErrorCode:
    end_offset = log.end_offset
    with pytest.raises(RequestRejected) as rejected:
        send(log, sequence, epoch=epoch)
    assert log.end_offset == end_offset
    return rejected.value.code


def test_duplicate_batch_is_not_appended_again() -> None:
    with open_log(MemoryDisk()) as log:
        send(log, 0, count=3)
        first = send(log, 3, count=2, timestamp=NOW - 5)

        again = send(log, 3, count=2, timestamp=NOW - 5)

        assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
        assert again.append_ms == NOW - 5
        assert again.is_duplicate
        assert log.end_offset == 5


def test_duplicates_of_the_last_five_batches_are_detected() -> None:
    with open_log(MemoryDisk()) as log:
        for sequence in range(6):
            send(log, sequence)

        assert [send(log, sequence).is_duplicate for sequence in range(1, 6)] == [True] * 5
        assert rejection_code(log, 0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_batch_with_another_record_count_is_no_duplicate() -> None:
    with open_log(MemoryDisk()) as log:
        send(log, 0, count=2)

        with pytest.raises(RequestRejected) as rejected:
            send(log, 0, count=1)
        assert rejected.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequence_gap_is_rejected() -> None:
    with open_log(MemoryDisk()) as log:
        send(log, 0)

        assert rejection_code(log, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert not send(log, 1).is_duplicate


def test_unknown_producer_may_start_at_any_sequence() -> None:
    with open_log(MemoryDisk()) as log:
        send(log, 41)

        assert rejection_code(log, 41 + 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(log, 42).base_offset == 1


def test_old_producer_epoch_is_rejected() -> None:
    with open_log(MemoryDisk()) as log:
        send(log, 0, epoch=3)

        assert rejection_code(log, 1, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_new_producer_epoch_starts_at_sequence_zero() -> None:
    with open_log(MemoryDisk()) as log:
        send(log, 0)

        assert rejection_code(log, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert not send(log, 0, epoch=1).is_duplicate
        assert rejection_code(log, 0, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequence_numbers_wrap_between_batches() -> None:
    last = 2**31 - 1
    with open_log(MemoryDisk()) as log:
        send(log, last - 1, count=2)
        send(log, 0)
        send(log, 1)

        assert send(log, last - 1, count=2).is_duplicate


def test_sequence_numbers_wrap_within_a_batch() -> None:
    with open_log(MemoryDisk()) as log:
        send(log, 2**31 - 2, count=5)

        assert send(log, 2**31 - 2, count=5).is_duplicate
        assert send(log, 3).base_offset == 5


def test_producers_are_independent() -> None:
    with open_log(MemoryDisk()) as log:
        send(log, 0, producer_id=1)
        send(log, 9, producer_id=2)

        assert send(log, 1, producer_id=1).base_offset == 2
        assert send(log, 10, producer_id=2).base_offset == 3


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("segments", [{}, SMALL_SEGMENTS])
def test_duplicates_are_detected_after_a_restart(
    is_clean: bool,  # noqa: FBT001 - pytest gives parameters by name
    segments: dict[str, str],
) -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, segments)
    for sequence in range(30):
        send(log, sequence)
    if is_clean:
        catalog.close(NOW)
    else:
        disk.kill()

    with open_log(disk) as log:
        assert [send(log, sequence).is_duplicate for sequence in range(25, 30)] == [True] * 5
        assert rejection_code(log, 24) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(log, 30).base_offset == 30


@pytest.mark.parametrize("damage", [b"", b"\x00\x01", b"x" * 56])
def test_producer_state_is_rebuilt_if_the_snapshot_is_invalid(
    damage: bytes, tmp_path: Path
) -> None:
    with open_log(tmp_path, SMALL_SEGMENTS) as log:
        for sequence in range(30):
            send(log, sequence)
    for path in (tmp_path / f"{TOPIC}-0").glob("*.snapshot"):
        path.write_bytes(damage)

    with open_log(tmp_path) as log:
        assert send(log, 25).is_duplicate
        assert send(log, 30).base_offset == 30


def test_idle_producer_expires_after_a_day() -> None:
    with open_log(MemoryDisk()) as log:
        send(log, 0, producer_id=1)
        send(log, 0, producer_id=2, timestamp=NOW + 1)

        log.clean(Millis(NOW + DAY))

        assert not send(log, 77, producer_id=1).is_duplicate
        with pytest.raises(RequestRejected):
            send(log, 77, producer_id=2)


def test_producer_of_old_records_does_not_expire_early() -> None:
    with open_log(MemoryDisk()) as log:
        send(log, 0, timestamp=NOW - 2 * DAY)

        log.clean(Millis(NOW + DAY - 1))

        assert send(log, 0, timestamp=NOW - 2 * DAY).is_duplicate


def test_producer_of_old_records_survives_a_crash() -> None:
    disk = MemoryDisk()
    log = get_log(open_catalog(disk))
    send(log, 0, timestamp=NOW - 2 * DAY)

    disk.kill()
    log = get_log(open_catalog(disk))
    log.clean(NOW)

    assert send(log, 0, timestamp=NOW - 2 * DAY).is_duplicate


def test_idle_producer_expires_at_a_restart() -> None:
    disk = MemoryDisk()
    with open_log(disk) as log:
        send(log, 0)
    catalog = open_catalog(disk, now=Millis(NOW + DAY))

    assert not send(get_log(catalog), 77).is_duplicate


def test_producers_above_the_limit_evict_the_most_idle() -> None:
    with open_log(MemoryDisk(), limits=Limits(producers_max=10)) as log:
        for each in range(11):
            send(log, 0, producer_id=each, timestamp=NOW + each)

        assert not send(log, 5, producer_id=0).is_duplicate
        with pytest.raises(RequestRejected):
            send(log, 5, producer_id=10)


def test_snapshot_format_matches_kafka() -> None:
    producers = ProducerStateManager(Limits())
    batch = new_batch(new_record(), new_record(), producer_id=9, producer_epoch=2, base_sequence=4)
    producers.update(batch, 0, peek(batch), Offset(30), NOW)

    data = encode_snapshot(producers)

    assert struct.unpack_from(">h", data) == (1,)
    assert struct.unpack_from(">i", data, 6) == (1,)
    assert struct.unpack_from(">qhiqiqiq", data, 10) == (9, 2, 5, 31, 1, NOW, -1, -1)
    assert len(data) == 10 + 46


@given(
    sent=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.booleans()), min_size=1, max_size=30
    )
)
@settings(max_examples=30)
def test_snapshot_round_trip(sent: list[tuple[int, int, bool]]) -> None:
    producers = ProducerStateManager(Limits())
    sequences = dict.fromkeys(range(4), 0)
    offset = 0
    for producer_id, count, is_transactional in sent:
        batch = new_batch(
            *(new_record(timestamp=NOW + offset) for _ in range(count)),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequences[producer_id],
            is_transactional=is_transactional,
        )
        producers.update(batch, 0, peek(batch), Offset(offset), NOW)
        sequences[producer_id] += count
        offset += count
    end = Offset(offset)

    again = decode_snapshot(encode_snapshot(producers), NOW, Limits())

    assert again is not None
    assert again.last_records() == producers.last_records()
    assert again.last_stable_offset(end) == producers.last_stable_offset(end)
    assert encode_snapshot(again) == encode_snapshot(producers)


def test_corrupt_snapshot_is_ignored() -> None:
    producers = ProducerStateManager(Limits())
    batch = new_batch(producer_id=1, producer_epoch=0, base_sequence=0)
    producers.update(batch, 0, peek(batch), Offset(0), NOW)
    data = encode_snapshot(producers)

    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x40
        assert decode_snapshot(bytes(changed), NOW, Limits()) is None
        assert decode_snapshot(data[:at], NOW, Limits()) is None
