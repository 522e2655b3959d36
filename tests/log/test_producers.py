"""Idempotent producers: each batch once, in order, over restarts and forgetting."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log.errors import Refused
from kohort.log.limits import Limits
from kohort.log.partition import Appended, PartitionLog
from kohort.log.producers import Producers
from kohort.log.snapshot import decode_snapshot, encode_snapshot
from kohort.types import ErrorCode, Millis, Offset
from kohort.wire.batch import peek
from tests.log.disks import ForgetfulDisk
from tests.log.logs import (
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    get_log,
    new_batch,
    new_record,
    open_catalog,
    opened,
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


def refusal(log: PartitionLog, sequence: int, *, epoch: int = 0) -> ErrorCode:
    end_offset = log.end_offset
    with pytest.raises(Refused) as refused:
        send(log, sequence, epoch=epoch)
    assert log.end_offset == end_offset
    return refused.value.code


def test_a_batch_sent_twice_is_kept_once() -> None:
    with opened(ForgetfulDisk()) as log:
        send(log, 0, count=3)
        first = send(log, 3, count=2, timestamp=NOW - 5)

        again = send(log, 3, count=2, timestamp=NOW - 5)

        assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
        assert again.append_ms == NOW - 5
        assert again.is_duplicate
        assert log.end_offset == 5


def test_the_last_five_batches_are_known_again_and_no_others() -> None:
    with opened(ForgetfulDisk()) as log:
        for sequence in range(6):
            send(log, sequence)

        assert [send(log, sequence).is_duplicate for sequence in range(1, 6)] == [True] * 5
        assert refusal(log, 0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_of_another_length_is_no_duplicate() -> None:
    with opened(ForgetfulDisk()) as log:
        send(log, 0, count=2)

        with pytest.raises(Refused) as refused:
            send(log, 0, count=1)
        assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused() -> None:
    with opened(ForgetfulDisk()) as log:
        send(log, 0)

        assert refusal(log, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert not send(log, 1).is_duplicate


def test_an_unknown_producer_may_begin_anywhere() -> None:
    with opened(ForgetfulDisk()) as log:
        send(log, 41)

        assert refusal(log, 41 + 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(log, 42).base_offset == 1


def test_an_old_epoch_is_refused() -> None:
    with opened(ForgetfulDisk()) as log:
        send(log, 0, epoch=3)

        assert refusal(log, 1, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_begins_at_zero() -> None:
    with opened(ForgetfulDisk()) as log:
        send(log, 0)

        assert refusal(log, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert not send(log, 0, epoch=1).is_duplicate
        assert refusal(log, 0, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_after_the_last_sequence_number_comes_zero() -> None:
    last = 2**31 - 1
    with opened(ForgetfulDisk()) as log:
        send(log, last - 1, count=2)
        send(log, 0)
        send(log, 1)

        assert send(log, last - 1, count=2).is_duplicate


def test_sequence_numbers_wrap_within_a_batch() -> None:
    with opened(ForgetfulDisk()) as log:
        send(log, 2**31 - 2, count=5)

        assert send(log, 2**31 - 2, count=5).is_duplicate
        assert send(log, 3).base_offset == 5


def test_producers_do_not_see_each_other() -> None:
    with opened(ForgetfulDisk()) as log:
        send(log, 0, producer_id=1)
        send(log, 9, producer_id=2)

        assert send(log, 1, producer_id=1).base_offset == 2
        assert send(log, 10, producer_id=2).base_offset == 3


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("segments", [{}, SMALL_SEGMENTS])
def test_all_five_batches_are_known_again_after_a_restart(
    is_clean: bool,  # noqa: FBT001 - pytest gives parameters by name
    segments: dict[str, str],
) -> None:
    disk = ForgetfulDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, segments)
    for sequence in range(30):
        send(log, sequence)
    if is_clean:
        catalog.close(NOW)
    else:
        disk.kill()

    with opened(disk) as log:
        assert [send(log, sequence).is_duplicate for sequence in range(25, 30)] == [True] * 5
        assert refusal(log, 24) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(log, 30).base_offset == 30


@pytest.mark.parametrize("damage", [b"", b"\x00\x01", b"x" * 56])
def test_a_torn_snapshot_is_made_good_by_the_log(damage: bytes, tmp_path: Path) -> None:
    with opened(tmp_path, SMALL_SEGMENTS) as log:
        for sequence in range(30):
            send(log, sequence)
    for path in (tmp_path / f"{TOPIC}-0").glob("*.snapshot"):
        path.write_bytes(damage)

    with opened(tmp_path) as log:
        assert send(log, 25).is_duplicate
        assert send(log, 30).base_offset == 30


def test_an_idle_producer_is_forgotten_after_a_day() -> None:
    with opened(ForgetfulDisk()) as log:
        send(log, 0, producer_id=1)
        send(log, 0, producer_id=2, timestamp=NOW + 1)

        log.clean(Millis(NOW + DAY))

        assert not send(log, 77, producer_id=1).is_duplicate
        with pytest.raises(Refused):
            send(log, 77, producer_id=2)


def test_a_producer_of_old_records_is_as_well_remembered() -> None:
    with opened(ForgetfulDisk()) as log:
        send(log, 0, timestamp=NOW - 2 * DAY)

        log.clean(Millis(NOW + DAY - 1))

        assert send(log, 0, timestamp=NOW - 2 * DAY).is_duplicate


def test_a_crash_does_not_forget_a_producer_of_old_records() -> None:
    disk = ForgetfulDisk()
    log = get_log(open_catalog(disk))
    send(log, 0, timestamp=NOW - 2 * DAY)

    disk.kill()
    log = get_log(open_catalog(disk))
    log.clean(NOW)

    assert send(log, 0, timestamp=NOW - 2 * DAY).is_duplicate


def test_an_idle_producer_is_forgotten_over_a_restart() -> None:
    disk = ForgetfulDisk()
    with opened(disk) as log:
        send(log, 0)
    catalog = open_catalog(disk, now=Millis(NOW + DAY))

    assert not send(get_log(catalog), 77).is_duplicate


def test_too_many_producers_push_out_the_idlest() -> None:
    with opened(ForgetfulDisk(), limits=Limits(producers_max=10)) as log:
        for each in range(11):
            send(log, 0, producer_id=each, timestamp=NOW + each)

        assert not send(log, 5, producer_id=0).is_duplicate
        with pytest.raises(Refused):
            send(log, 5, producer_id=10)


def test_a_snapshot_is_kafkas() -> None:
    producers = Producers(Limits())
    batch = new_batch(new_record(), new_record(), producer_id=9, producer_epoch=2, base_sequence=4)
    producers.note(batch, 0, peek(batch), Offset(30), NOW)

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
def test_a_snapshot_read_again_remembers_the_same(sent: list[tuple[int, int, bool]]) -> None:
    producers = Producers(Limits())
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
        producers.note(batch, 0, peek(batch), Offset(offset), NOW)
        sequences[producer_id] += count
        offset += count
    end = Offset(offset)

    again = decode_snapshot(encode_snapshot(producers), NOW, Limits())

    assert again is not None
    assert again.last_written() == producers.last_written()
    assert again.last_stable_offset(end) == producers.last_stable_offset(end)
    assert encode_snapshot(again) == encode_snapshot(producers)


def test_a_snapshot_with_any_byte_changed_is_no_snapshot() -> None:
    producers = Producers(Limits())
    batch = new_batch(producer_id=1, producer_epoch=0, base_sequence=0)
    producers.note(batch, 0, peek(batch), Offset(0), NOW)
    data = encode_snapshot(producers)

    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x40
        assert decode_snapshot(bytes(changed), NOW, Limits()) is None
        assert decode_snapshot(data[:at], NOW, Limits()) is None
