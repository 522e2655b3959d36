"""A real disk that is full, and later is not. Needs the right to mount one."""

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
from tests.node.asking import new_batch, produce_request
from tests.node.calling import Caller, Membership, join_alone
from tests.node.killing import read_all
from tests.node.serving import Served
from tests.node.working import TOPIC

MEBIBYTE = 1 << 20
ROOM = 12 * MEBIBYTE
BALLAST = 6 * MEBIBYTE

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    # Housekeeping meets the full disk as well, many times.
    "log.retention.check.interval.ms": 50,
}


class SmallDisk:
    """The data directory of a node, on a disk of its own that is half full of something else."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ballast = directory / "data" / "lost+found"
        self._ballast.mkdir()
        (self._ballast / "ballast").write_bytes(b"." * BALLAST)

    def fill(self) -> None:
        """To the last byte."""
        with contextlib.suppress(OSError), (self._ballast / "rest").open("wb", 0) as rest:
            while True:
                rest.write(b"." * 512)

    def make_room(self) -> None:
        for file in self._ballast.iterdir():
            file.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    data = tmp_path / "data"
    data.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        pytest.skip("there is no mount command")
    words = [mount, "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(data)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield SmallDisk(tmp_path)
    finally:
        subprocess.run([umount, "--lazy", str(data)], check=True)


class Client:
    """Fills a topic, and knows what it was told."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.values: list[bytes] = []

    def produce(self) -> ErrorCode:
        value = f"{len(self.values)}".encode() + b"." * 20_000
        batch = new_batch(value.decode(), at=time.time_ns() // 1_000_000)
        answer = self.caller.ask(produce_request(batch, TOPIC, acks=-1), 9)
        (told,) = answer.responses[0].partition_responses
        if told.error_code == 0:
            assert told.base_offset == len(self.values)
            self.values.append(value)
        return ErrorCode(told.error_code)

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
        return ErrorCode(self.caller.ask(request, 8).topics[0].partitions[0].error_code)

    def beat(self, member: Membership) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=member.group_id,
            generation_id=member.generation,
            member_id=member.member_id,
        )
        return ErrorCode(self.caller.ask(request, 4).error_code)

    def create(self, name: str) -> ErrorCode:
        asked = MetadataRequestTopic(name=Topic(name))
        answer = self.caller.ask(MetadataRequest(topics=(asked,)), 9)
        return ErrorCode(answer.topics[0].error_code)

    def check_all(self) -> None:
        kept = read_all(self.caller, Partition(0), 0)
        assert [value for _, value in kept] == self.values


def test_a_full_disk_refuses_writes_serves_reads_and_recovers(disk: SmallDisk) -> None:
    with Served(disk.directory, SETTINGS) as served, Caller(served.address) as caller:
        client = Client(caller)
        assert client.create(TOPIC) is ErrorCode.NONE
        member = join_alone(caller, "g")
        assert client.commit(member, 1) is ErrorCode.NONE

        assert client.fill() is ErrorCode.KAFKA_STORAGE_ERROR
        disk.fill()
        # What Kafka makes of it for groups: clients look for another coordinator, and come back.
        assert client.commit(member, 2) is ErrorCode.NOT_COORDINATOR
        assert client.create("another") is ErrorCode.KAFKA_STORAGE_ERROR
        assert client.beat(member) is ErrorCode.NONE
        client.check_all()

        disk.make_room()
        assert client.produce() is ErrorCode.NONE
        assert client.commit(member, 3) is ErrorCode.NONE
        assert client.create("another") is ErrorCode.NONE
        client.check_all()
        assert served.stop() == 0
        assert "Traceback" not in served.journal


def test_a_node_that_dies_on_a_full_disk_comes_back_when_there_is_room(disk: SmallDisk) -> None:
    with Served(disk.directory, SETTINGS) as served, Caller(served.address) as caller:
        client = Client(caller)
        client.create(TOPIC)
        client.fill()
        served.kill()
    disk.make_room()

    with Served(disk.directory, SETTINGS) as served, Caller(served.address) as caller:
        client.caller = caller
        client.check_all()
        assert client.produce() is ErrorCode.NONE
        assert served.stop() == 0


def test_a_node_that_cannot_close_cleanly_says_so(disk: SmallDisk) -> None:
    with Served(disk.directory, SETTINGS) as served, Caller(served.address) as caller:
        client = Client(caller)
        client.create(TOPIC)
        client.fill()
        disk.fill()
        assert served.stop() == 1
        assert "No space left on device" in served.journal.splitlines()[-1]
        assert "Traceback" not in served.journal
    disk.make_room()

    with Served(disk.directory, SETTINGS) as served, Caller(served.address) as caller:
        client.caller = caller
        client.check_all()
