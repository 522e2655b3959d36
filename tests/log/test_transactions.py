"""Transactions in a log: the last stable offset and the aborted transactions."""

import pytest

from kohort.log.errors import RequestRejected
from kohort.log.index import AbortedTxn
from kohort.log.partition import PartitionLog
from kohort.types import ErrorCode, Offset, ProducerId
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    NOW,
    SMALL_SEGMENTS,
    get_log,
    marker_batch,
    new_batch,
    new_record,
    numbered_batch,
    open_catalog,
    open_log,
)


def write(log: PartitionLog, producer_id: int, key: str = "k", value: str = "v") -> None:
    batch = new_batch(
        new_record(key, value), producer_id=producer_id, producer_epoch=0, is_transactional=True
    )
    log.append_trusted(batch, NOW)


def end(log: PartitionLog, producer_id: int, *, is_commit: bool) -> None:
    log.append_trusted(marker_batch(producer_id, is_commit=is_commit), NOW)


def aborted(producer_id: int, first: int, last: int, stable: int) -> AbortedTxn:
    return AbortedTxn(
        producer_id=ProducerId(producer_id),
        first_offset=Offset(first),
        last_offset=Offset(last),
        last_stable_offset=Offset(stable),
    )


def test_last_stable_offset_is_the_start_of_the_first_open_transaction() -> None:
    with open_log(MemoryDisk()) as log:
        log.append(numbered_batch(0), NOW)
        assert log.last_stable_offset == 1

        write(log, 1)
        write(log, 2)
        write(log, 1)
        assert log.last_stable_offset == 1

        end(log, 1, is_commit=True)
        assert log.last_stable_offset == 2

        end(log, 2, is_commit=False)
        assert log.last_stable_offset == log.end_offset == 6


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("settings", [{}, SMALL_SEGMENTS])
def test_aborted_transactions_are_known_after_a_restart(
    is_clean: bool,  # noqa: FBT001 - pytest gives parameters by name
    settings: dict[str, str],
) -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, settings)
    for _ in range(10):
        write(log, 1)
        write(log, 2)
        end(log, 2, is_commit=False)
        end(log, 1, is_commit=True)
    write(log, 3)
    expected = log.aborted_transactions(Offset(0), log.end_offset)
    assert expected == tuple(aborted(2, 4 * n + 1, 4 * n + 2, 4 * n) for n in range(10))
    if is_clean:
        catalog.close(NOW)
    else:
        disk.kill()

    with open_log(disk) as log:
        assert log.aborted_transactions(Offset(0), log.end_offset) == expected
        assert log.last_stable_offset == 40


def test_aborted_transactions_are_filtered_by_offset_range() -> None:
    with open_log(MemoryDisk(), SMALL_SEGMENTS) as log:
        for _ in range(20):
            write(log, 1)
            end(log, 1, is_commit=False)

        for start in range(0, 40, 3):
            for stop in range(start + 1, 40, 5):
                transactions = log.aborted_transactions(Offset(start), Offset(stop))
                assert [each.first_offset for each in transactions] == [
                    first for first in range(0, 40, 2) if first + 1 >= start and first < stop
                ]


def test_aborted_transaction_that_ends_after_the_range_is_included() -> None:
    with open_log(MemoryDisk()) as log:
        write(log, 1)
        write(log, 2)
        end(log, 2, is_commit=False)
        end(log, 1, is_commit=False)

        transactions = log.aborted_transactions(Offset(0), Offset(2))

        assert transactions == (aborted(2, 1, 2, 0), aborted(1, 0, 3, 4))


def test_abort_marker_of_an_empty_transaction_is_ignored() -> None:
    with open_log(MemoryDisk()) as log:
        end(log, 1, is_commit=False)

        assert log.aborted_transactions(Offset(0), Offset(1)) == ()


def test_non_transactional_batch_in_an_open_transaction_is_rejected() -> None:
    with open_log(MemoryDisk()) as log:
        first = new_batch(producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
        log.append(first, NOW)

        with pytest.raises(RequestRejected) as rejected:
            log.append(new_batch(producer_id=1, producer_epoch=0, base_sequence=1), NOW)

        assert rejected.value.code is ErrorCode.INVALID_TXN_STATE
        end(log, 1, is_commit=True)
        log.append(new_batch(producer_id=1, producer_epoch=0, base_sequence=1), NOW)


def test_read_committed_stops_before_an_open_transaction() -> None:
    with open_log(MemoryDisk()) as log:
        log.append(numbered_batch(0), NOW)
        write(log, 1)
        log.append(numbered_batch(1), NOW)

        data = log.read(Offset(0), 10_000, at_least_one=True, before=log.last_stable_offset)

        assert data == log.read(Offset(0), 1, at_least_one=True)
