"""A node on a thread, with its faults, and raw clients for it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kohort.node.broker import Address
from kohort.node.broker_thread import BrokerThread
from kohort.node.config import BrokerConfig
from kohort.testing.faults import Faults
from kohort.types import Generation, GroupId, Offset, Partition, Topic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.node.raw_client import Membership, RawClient


class FaultyNode:
    """It is the control channel of its faults, also after a restart."""

    def __init__(self, data: Path, settings: Mapping[str, str] | None = None) -> None:
        self._data = data
        self._settings = {"group.initial.rebalance.delay.ms": "0", **(settings or {})}
        self.faults = Faults(self)
        self._start()

    def _start(self) -> None:
        self.thread = BrokerThread(BrokerConfig(self._settings), self._data)
        self.address: Address = self.thread.start("127.0.0.1", 0)

    def request(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.thread.request(operation, body)

    def restart(self) -> None:
        self.thread.stop()
        self._start()

    @property
    def bootstrap_servers(self) -> str:
        return str(self.address)

    def connect(self) -> RawClient:
        return RawClient(self.address)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        topic = CreatableTopic(name=Topic(name), num_partitions=partitions, replication_factor=1)
        with self.connect() as client:
            answer = client.ask(CreateTopicsRequest(topics=(topic,)), 7)
        assert [each.error_code for each in answer.topics] == [0]

    def committed(self, group: str, topic: str = "t") -> int:
        """The committed offset of partition 0, or -1."""
        asked = OffsetFetchRequestGroup(group_id=GroupId(group), topics=None)
        with self.connect() as client:
            answer = client.ask(OffsetFetchRequest(groups=(asked,)), 9)
        offsets = {
            (each.name, partition.partition_index): partition.committed_offset
            for each in answer.groups[0].topics
            for partition in each.partitions
        }
        return offsets.get((topic, 0), -1)

    def describe(self, group: str) -> Any:
        with self.connect() as client:
            (described,) = client.ask(DescribeGroupsRequest(groups=(GroupId(group),)), 5).groups
        return described


def commit_request(group: str, offset: int, topic: str = "t") -> OffsetCommitRequest:
    """Of a group without members, version 9."""
    partition = OffsetCommitRequestPartition(
        partition_index=Partition(0), committed_offset=Offset(offset), committed_metadata=""
    )
    asked = OffsetCommitRequestTopic(name=Topic(topic), partitions=(partition,))
    return OffsetCommitRequest(group_id=GroupId(group), topics=(asked,))


def heartbeat_of(member: Membership) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=member.group_id, generation_id=member.generation, member_id=member.member_id
    )


def sync_of(group: str, joined: Any) -> SyncGroupRequest:
    """The leader's, version 5: it assigns everything to itself."""
    share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    return SyncGroupRequest(
        group_id=GroupId(group),
        generation_id=Generation(joined.generation_id),
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(share,),
    )
