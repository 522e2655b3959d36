"""Records of other group types in `__consumer_offsets` survive a restart and a compaction."""

from pathlib import Path

import pytest

from kohort.log.partition import PartitionLog
from kohort.wire.batch import encode_simple_batch
from tests.node.broker_harness import BrokerHarness
from tests.node.metrics_reader import metric_value, page_of

GROUP_EPOCH, MEMBER = b"\x00\x03\x00\x01g", b"\x00\x05\x00\x01g\x00\x01m"
SMALL_SEGMENTS = {"offsets.topic.segment.bytes": "1048576", "offsets.topic.num.partitions": "1"}


@pytest.fixture
def harness(tmp_path: Path) -> BrokerHarness:
    return BrokerHarness(tmp_path, SMALL_SEGMENTS)


def offsets_log(harness: BrokerHarness) -> PartitionLog:
    (log,) = harness.broker.topics.offsets_partitions()
    return log


def append(harness: BrokerHarness, *pairs: tuple[bytes, bytes | None]) -> None:
    offsets_log(harness).append_trusted(encode_simple_batch(pairs, harness.now), harness.now)


def kept(harness: BrokerHarness) -> dict[bytes, bytes | None]:
    unknown = harness.broker.coordinator.unknown_records
    return {key: record.value for key, record in unknown.items()}


def test_unknown_records_survive_a_restart(
    harness: BrokerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    append(harness, (GROUP_EPOCH, b"old"), (MEMBER, b"member"))
    append(harness, (GROUP_EPOCH, b"new"))
    caplog.set_level("INFO", logger="kohort")

    harness.restart()

    assert kept(harness) == {GROUP_EPOCH: b"new", MEMBER: b"member"}
    assert "unknown-records count=2 kinds=3,5" in caplog.text
    assert metric_value(page_of(harness), "kohort_records_unknown") == 2
    assert metric_value(page_of(harness), "kohort_records_skipped_total") == 0


def test_tombstone_removes_an_unknown_record(harness: BrokerHarness) -> None:
    append(harness, (GROUP_EPOCH, b"old"), (MEMBER, b"member"))
    append(harness, (GROUP_EPOCH, None), (MEMBER, None))

    harness.restart()

    assert kept(harness) == {}


def test_unknown_records_survive_compaction(harness: BrokerHarness) -> None:
    append(harness, (GROUP_EPOCH, b"first"), (MEMBER, b"member"))
    for number in range(60):
        append(harness, (GROUP_EPOCH, f"{number}".encode().ljust(50_000)))
    before = offsets_log(harness).size_bytes

    cleaned = offsets_log(harness).clean(harness.now)
    harness.restart()

    assert cleaned.compacted is not None
    assert offsets_log(harness).size_bytes < before
    assert kept(harness) == {GROUP_EPOCH: b"59".ljust(50_000), MEMBER: b"member"}
