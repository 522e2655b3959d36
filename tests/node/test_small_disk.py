"""A real full disk. Needs permission to mount a file system."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.types import ErrorCode, Offset, Partition, Topic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from tests.node.broker_harness import new_batch, produce_request
from tests.node.kill_loop import read_all
from tests.node.kill_workers import TOPIC
from tests.node.raw_client import Membership, RawClient, join_alone
from tests.node.served_node import ServedNode

MEBIBYTE = 1 << 20
DISK_BYTES = 12 * MEBIBYTE
BALLAST_BYTES = 6 * MEBIBYTE

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    # Retention also runs while the disk is full.
    "log.retention.check.interval.ms": 50,
}


class SmallDisk:
    """The data directory of a node on a small disk that is half full."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ballast = directory / "data" / "lost+found"
        self._ballast.mkdir()
        (self._ballast / "ballast").write_bytes(b"." * BALLAST_BYTES)

    def fill(self) -> None:
        """Fill the disk completely."""
        with contextlib.suppress(OSError), (self._ballast / "rest").open("wb", 0) as rest:
            while True:
                rest.write(b"." * 512)

    def free_space(self) -> None:
        for file in self._ballast.iterdir():
            file.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    data = tmp_path / "data"
    data.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        pytest.skip("no mount command")
    words = [mount, "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(data)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a file system")
    try:
        yield SmallDisk(tmp_path)
    finally:
        subprocess.run([umount, "--lazy", str(data)], check=True)


class TopicFiller:
    """Fills a topic, and remembers the acknowledged records."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.values: list[bytes] = []

    def produce(self) -> ErrorCode:
        value = f"{len(self.values)}".encode() + b"." * 20_000
        batch = new_batch(value.decode(), at=time.time_ns() // 1_000_000)
        answer = self.client.ask(produce_request(batch, TOPIC, acks=-1), 9)
        (returned,) = answer.responses[0].partition_responses
        if returned.error_code == 0:
            assert returned.base_offset == len(self.values)
            self.values.append(value)
        return ErrorCode(returned.error_code)

    def fill(self) -> ErrorCode:
        """Until it is refused: why."""
        while (error := self.produce()) == ErrorCode.NONE:
            pass
        return error

    def commit(self, member: Membership, offset: int) -> ErrorCode:
        partition = OffsetCommitRequestPartition(
            partition_index=Partition(0),
            committed_offset=Offset(offset),
            committed_metadata="m" * 4000,
        )
        request = OffsetCommitRequest(
            group_id=member.group_id,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
        )
        return ErrorCode(self.client.ask(request, 8).topics[0].partitions[0].error_code)

    def beat(self, member: Membership) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=member.group_id,
            generation_id=member.generation,
            member_id=member.member_id,
        )
        return ErrorCode(self.client.ask(request, 4).error_code)

    def create(self, name: str) -> ErrorCode:
        asked = MetadataRequestTopic(name=Topic(name))
        answer = self.client.ask(MetadataRequest(topics=(asked,)), 9)
        return ErrorCode(answer.topics[0].error_code)

    def check_all(self) -> None:
        kept = read_all(self.client, Partition(0), 0)
        assert [value for _, value in kept] == self.values


def test_a_full_disk_refuses_writes_serves_reads_and_recovers(disk: SmallDisk) -> None:
    with ServedNode(disk.directory, SETTINGS) as served, RawClient(served.address) as client:
        filler = TopicFiller(client)
        assert filler.create(TOPIC) is ErrorCode.NONE
        member = join_alone(client, "g")
        assert filler.commit(member, 1) is ErrorCode.NONE

        assert filler.fill() is ErrorCode.KAFKA_STORAGE_ERROR
        disk.fill()
        # As in Kafka: clients look up the coordinator again and retry.
        assert filler.commit(member, 2) is ErrorCode.NOT_COORDINATOR
        # The last block of the catalog's journal may have room for one more topic.
        assert filler.create("another") in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
        assert filler.beat(member) is ErrorCode.NONE
        filler.check_all()

        disk.free_space()
        assert filler.produce() is ErrorCode.NONE
        assert filler.commit(member, 3) is ErrorCode.NONE
        assert filler.create("another") is ErrorCode.NONE
        filler.check_all()
        assert served.stop() == 0
        assert "Traceback" not in served.log


def test_node_killed_on_a_full_disk_restarts_when_space_is_free(disk: SmallDisk) -> None:
    with ServedNode(disk.directory, SETTINGS) as served, RawClient(served.address) as client:
        filler = TopicFiller(client)
        filler.create(TOPIC)
        filler.fill()
        served.kill()
    disk.free_space()

    with ServedNode(disk.directory, SETTINGS) as served, RawClient(served.address) as client:
        filler.client = client
        filler.check_all()
        assert filler.produce() is ErrorCode.NONE
        assert served.stop() == 0


def test_unclean_shutdown_is_reported(disk: SmallDisk) -> None:
    with ServedNode(disk.directory, SETTINGS) as served, RawClient(served.address) as client:
        filler = TopicFiller(client)
        filler.create(TOPIC)
        filler.fill()
        disk.fill()
        assert served.stop() == 1
        assert "No space left on device" in served.log.splitlines()[-1]
        assert "Traceback" not in served.log
    disk.free_space()

    with ServedNode(disk.directory, SETTINGS) as served, RawClient(served.address) as client:
        filler.client = client
        filler.check_all()
