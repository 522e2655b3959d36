"""A damaged batch cancels the compaction of its log: reported, and other logs are compacted."""

import pytest

from kohort.node.loop import NodeLoop
from kohort.types import Millis, Topic
from tests.log.faulty_disks import MemoryDisk
from tests.node.broker_harness import BrokerHarness, HarnessClock, new_batch, produce_request
from tests.node.fake_transport import FakeNodeTransport

DAMAGED, INTACT = "damaged", "intact"
MINUTE_MS = 60_000


def compacted_size(harness: BrokerHarness, topic: str) -> int:
    log = harness.catalog.partition(Topic(topic), 0)
    assert log is not None
    return log.size_bytes


@pytest.mark.parametrize(("at", "reason"), [(-1, "crc"), (8, "size")], ids=["crc", "length"])
def test_a_damaged_batch_is_reported_once_a_minute_and_other_logs_are_compacted(
    caplog: pytest.LogCaptureFixture, at: int, reason: str
) -> None:
    disk = MemoryDisk()
    harness = BrokerHarness(disk, {"kohort.events.enable": "false"})
    for topic in (DAMAGED, INTACT):
        harness.create(topic, cleanup_policy="compact", internal_segment_bytes="700")
        for number in range(40):
            harness.answer(produce_request(new_batch(f"{number}".ljust(50)), topic), 9)
    harness.restart()
    first = f"{DAMAGED}-0/{0:020d}.log"
    disk.content(first)[at] ^= 0x40
    before = compacted_size(harness, INTACT)
    loop = NodeLoop(harness.broker, FakeNodeTransport(), HarnessClock(harness))

    for _ in range(3):
        for _ in range(10):
            loop.clean(1 << 20)
            loop.iterate()
        harness.now = Millis(harness.now + MINUTE_MS)

    lines = [each.getMessage() for each in caplog.records if "storage-error" in each.getMessage()]
    assert len(lines) == 3
    for line in lines:
        assert f"partition={DAMAGED}-0 path={first}" in line
        assert reason in line
    assert compacted_size(harness, INTACT) < before
