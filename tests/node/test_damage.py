"""Damaged and lost files of a node: groups, other topics, and what clients are told."""

import copy
import logging
from pathlib import Path

import pytest

from kohort.events.internal_topics import CONSUMER_OFFSETS
from kohort.node.damage_report import report_repair
from kohort.types import ErrorCode, Generation, GroupId, Millis, Offset, Partition, Topic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.log.faulty_disks import MemoryDisk
from tests.node.broker_harness import BrokerHarness, new_batch
from tests.node.served_node import ServedNode

GROUPS = ("g", "other", "third")
ROUNDS = 2
OFFSETS_LOG = f"{CONSUMER_OFFSETS}-0/{0:020d}.log"


def commit(harness: BrokerHarness, group: str, offset: int) -> None:
    committed = OffsetCommitRequestPartition(
        partition_index=Partition(0), committed_offset=Offset(offset)
    )
    request = OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=Generation(-1),
        topics=(OffsetCommitRequestTopic(name=Topic("t"), partitions=(committed,)),),
    )
    assert harness.answer(request, 8).topics[0].partitions[0].error_code == 0


def prepared_disk() -> MemoryDisk:
    """Every group commits offset 1, 2 and so on for one partition; the node was killed."""
    disk = MemoryDisk()
    harness = BrokerHarness(disk, {"kohort.events.enable": "false"})
    harness.create("t")
    harness.produce(new_batch("a"))
    for number in range(1, ROUNDS + 1):
        for group in GROUPS:
            commit(harness, group, number)
    for pending in harness.catalog.take_pending_syncs():
        pending.sync()
    harness.catalog.clean(harness.now)
    disk.kill()
    return disk


def committed(harness: BrokerHarness) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for group in GROUPS:
        request = OffsetFetchRequest(
            groups=(OffsetFetchRequestGroup(group_id=GroupId(group), topics=None),)
        )
        (answer,) = harness.answer(request, 8).groups
        assert answer.error_code == 0
        offsets = [each.committed_offset for topic in answer.topics for each in topic.partitions]
        found[group] = offsets[0] if offsets else None
    return found


def open_harness(disk: MemoryDisk) -> BrokerHarness:
    return BrokerHarness(disk, {"kohort.events.enable": "false"}, on_repair=report_repair)


def check_groups(disk: MemoryDisk, log: pytest.LogCaptureFixture) -> None:
    log.clear()
    harness = open_harness(disk)

    found = committed(harness)
    if found != dict.fromkeys(GROUPS, ROUNDS):
        assert "batch-damaged" in log.text or "tail-cut" in log.text
        assert CONSUMER_OFFSETS in log.text
    # An older commit of the group is right, only older. At most one batch is damaged.
    assert sum(offset != ROUNDS for offset in found.values()) <= 1
    assert set(found.values()) <= {None, *range(1, ROUNDS + 1)}
    assert harness.fetch().records


@pytest.mark.parametrize(
    "every_bit", [False, pytest.param(True, marks=pytest.mark.full, id="every-bit")]
)
def test_damaged_commit_is_right_or_reported(
    caplog: pytest.LogCaptureFixture, *, every_bit: bool
) -> None:
    caplog.set_level(logging.WARNING)
    disk = prepared_disk()
    size = len(disk.content(OFFSETS_LOG))

    for at in range(size):
        for bit in range(8) if every_bit else [at * 3 % 8]:
            damaged = copy.deepcopy(disk)
            damaged.content(OFFSETS_LOG)[at] ^= 1 << bit
            check_groups(damaged, caplog)


def test_commits_after_a_damaged_batch_length_are_loaded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    disk = prepared_disk()
    data = disk.content(OFFSETS_LOG)
    data[8:12] = b"\x7f\xff\xff\xff"

    harness = open_harness(disk)

    assert committed(harness) == dict.fromkeys(GROUPS, ROUNDS)
    assert f"path={OFFSETS_LOG} position=0" in caplog.text
    assert 'reason="offsets ' in caplog.text


# Lost data


def lose(disk: MemoryDisk, directory: str) -> None:
    for name in list(disk.list(directory)):
        disk.remove(f"{directory}/{name}")
    disk.remove(directory)


def disk_without(directory: str) -> MemoryDisk:
    disk = MemoryDisk()
    harness = BrokerHarness(disk, {"kohort.events.enable": "false"})
    harness.create("t", 2)
    for partition in (0, 1):
        harness.produce(new_batch("a"), partition=partition)
    commit(harness, "g", 1)
    harness.close()
    lose(disk, directory)
    return disk


def test_clients_of_a_refused_partition_get_a_storage_error_and_the_reason() -> None:
    harness = open_harness(disk_without("t-0"))
    listed = ListOffsetsPartition(partition_index=Partition(0), timestamp=Millis(-2))
    epoch = OffsetForLeaderPartition(partition=Partition(0), leader_epoch=0)
    topic = Topic("t")

    produced = harness.produce(new_batch("b"))
    start = harness.answer(
        ListOffsetsRequest(topics=(ListOffsetsTopic(name=topic, partitions=(listed,)),)), 7
    )
    ended = harness.answer(
        OffsetForLeaderEpochRequest(
            topics=(OffsetForLeaderTopic(topic=topic, partitions=(epoch,)),)
        ),
        4,
    )

    assert produced.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "offsets 0 to 0 are missing" in (produced.error_message or "")
    for offset in (0, 1, 5):
        assert harness.fetch(offset).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert start.topics[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert ended.topics[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert harness.produce(new_batch("b"), partition=1).base_offset == 1
    assert committed_of(harness, "g") == ErrorCode.NONE
    harness.close()


def committed_of(harness: BrokerHarness, group: str) -> int:
    asked = OffsetFetchRequestGroup(group_id=GroupId(group), topics=None)
    code: int = harness.answer(OffsetFetchRequest(groups=(asked,)), 8).groups[0].error_code
    return code


def test_groups_are_refused_and_topics_served_without_consumer_offsets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    harness = open_harness(disk_without(f"{CONSUMER_OFFSETS}-0"))

    found = harness.answer(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), 4)

    assert committed_of(harness, "g") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (coordinator,) = found.coordinators
    assert coordinator.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "are missing" in (coordinator.error_message or "")
    assert harness.fetch().records
    assert harness.produce(new_batch("b")).base_offset == 1
    assert "groups-refused" in caplog.text
    harness.shut_down()
    harness.close()


def test_partition_starts_without_the_records_that_the_operator_gives_up(tmp_path: Path) -> None:
    data = tmp_path / "data"
    harness = BrokerHarness(data)
    harness.create("t")
    harness.produce(new_batch("a"))
    harness.close()
    for file in (data / "t-0").iterdir():
        file.unlink()

    with ServedNode(tmp_path) as served:
        assert served.stop() == 0
        assert "partition-refused path=t-0" in served.log
    with ServedNode(tmp_path, {"kohort.accept.data.loss": "t-0"}) as served:
        assert served.stop() == 0
        assert "data-loss-accepted path=t-0" in served.log

    harness = BrokerHarness(data)
    assert harness.produce(new_batch("b")).base_offset == Offset(1)
    harness.close()


def test_unusable_directory_is_one_sentence_without_a_traceback(tmp_path: Path) -> None:
    BrokerHarness(tmp_path / "data").close()
    catalog = tmp_path / "data" / "kohort-catalog.json"
    content = bytearray(catalog.read_bytes())
    content[len(content) // 2] ^= 1
    catalog.write_bytes(content)
    catalog.parent.chmod(0o700)

    with ServedNode(tmp_path, is_awaited=False) as served:
        assert served.wait() == 1

        (sentence,) = served.log.splitlines()
        assert "kohort-catalog.json is corrupt" in sentence
