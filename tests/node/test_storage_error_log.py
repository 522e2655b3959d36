"""Storage errors that clients are told of are logged, once per kind and minute."""

import pytest

from kohort.log.errors import CorruptFile, RequestRejected, StorageError
from kohort.node.clock import SystemClock
from kohort.node.loop import NodeLoop
from kohort.node.storage_error_log import StorageErrorLog
from kohort.types import ErrorCode, Millis
from tests.log.faulty_disks import FullDisk, MemoryDisk
from tests.node.broker_harness import START, BrokerHarness, new_batch

FULL = "No space left on device"
SECOND, MINUTE = 1_000, 60_000


def full_disk(path: str = "orders-3/00000000000000000000.log") -> StorageError:
    return StorageError(path, "append", FULL)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_partition_and_reason_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = StorageErrorLog()

    log.note(full_disk())
    log.write(START)

    (line,) = lines(caplog)
    assert line == (
        "storage-error partition=orders-3 path=orders-3/00000000000000000000.log action=append"
        ' reason="No space left on device" count=1'
    )


def test_errors_of_one_kind_are_logged_once_per_minute(caplog: pytest.LogCaptureFixture) -> None:
    log = StorageErrorLog()

    for second in range(61):
        for _ in range(10):
            log.note(full_disk())
        log.write(Millis(START + second * SECOND))

    assert [line.rpartition("count=")[2] for line in lines(caplog)] == ["10", "600"]


def test_kinds_are_logged_separately(caplog: pytest.LogCaptureFixture) -> None:
    log = StorageErrorLog()

    for number in range(5):
        log.note(full_disk())
        log.note(CorruptFile("t-0/0.log", f"read at {number}", f"invalid batch size {number}"))
        log.note(StorageError("t-1/0.log", "open", "No such file or directory"))
        log.write(Millis(START + number))

    assert len(lines(caplog)) == 3


def test_clock_that_is_set_back_silences_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log = StorageErrorLog()
    log.note(full_disk())
    log.write(START)

    log.note(full_disk())
    log.write(Millis(START - 60 * MINUTE))

    assert len(lines(caplog)) == 2


def test_refusals_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = StorageErrorLog()

    log.note(RequestRejected(ErrorCode.INVALID_RECORD, "bad"))

    assert not log.has_new
    assert lines(caplog) == []


def test_produce_to_a_full_disk_is_noted() -> None:
    disk = FullDisk(MemoryDisk(), 1 << 30)
    harness = BrokerHarness(disk)
    harness.create("t")
    disk.free_bytes = 0

    told = harness.produce(new_batch("x"))

    assert told.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert harness.broker.storage_errors.has_new


def test_failed_cleaning_of_a_partition_is_noted() -> None:
    disk = MemoryDisk()
    harness = BrokerHarness(disk)
    harness.create("t", cleanup_policy="compact", internal_segment_bytes="150")
    for number in range(5):
        assert harness.produce(new_batch(f"{number}" * 50)).error_code == 0
    node = NodeLoop(harness.broker, NoTransport(), SystemClock())
    disk.content(f"t-0/{0:020d}.log")[-1] ^= 1

    node.clean(1 << 20)

    assert harness.broker.storage_errors.has_new


class NoTransport:
    def send(self) -> None: ...
