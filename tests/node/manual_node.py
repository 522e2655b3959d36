"""A node whose clock the test moves, and a client with the requests of these tests."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kohort.node.broker import Address
from kohort.node.broker_thread import BrokerThread
from kohort.node.config import BrokerConfig
from kohort.testing.clock import NodeClock
from kohort.types import ErrorCode, Generation, GroupId, MemberId, Millis, Offset, Partition, Topic
from kohort.wire.api.k01_fetch import PartitionData
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kohort.wire.api.k11_join_group import JoinGroupRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.batch import iter_records, split
from tests.node.broker_harness import fetch_request, new_batch, produce_request, values_in
from tests.node.raw_client import Membership, RawClient, join_request

SETTINGS: Mapping[str, str] = {
    "kohort.clock": "manual",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1",
    # An advance of days would close the connection of the test.
    "connections.max.idle.ms": str(400 * 24 * 3_600_000),
}


class ManualNode:
    """One node and one client of it."""

    def __init__(self, thread: BrokerThread, address: Address, client: RawClient) -> None:
        self.thread = thread
        self.address = address
        self.client = client
        self.clock = NodeClock(thread)

    # Topics

    def create_topic(self, name: str = "t", **configs: str) -> None:
        topic = CreatableTopic(
            name=Topic(name),
            num_partitions=1,
            replication_factor=1,
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=text)
                for key, text in configs.items()
            ),
        )
        (result,) = self.client.ask(CreateTopicsRequest(topics=(topic,)), 7).topics
        assert result.error_code == 0, result

    def produce(self, *values: str, at: int) -> int:
        """Return the time of the append, or -1 if the topic has the producers' timestamps."""
        answer = self.client.ask(produce_request(new_batch(*values, at=at)), 9)
        (result,) = answer.responses[0].partition_responses
        assert result.error_code == 0, result
        appended_ms: int = result.log_append_time_ms
        return appended_ms

    def fetch(self, offset: int = 0, *, wait_ms: int = 0) -> PartitionData:
        answer = self.client.ask(fetch_request(offset, max_wait_ms=wait_ms), 12)
        result = answer.responses[0].partitions[0]
        assert isinstance(result, PartitionData)
        return result

    def read_values(self) -> list[str]:
        """The values of the whole topic; a fetch returns those of one segment."""
        values: list[str] = []
        offset = 0
        while records := self.fetch(offset).records:
            values += values_in(records)
            offset = 1 + max(
                record.offset
                for position, _ in split(records)
                for record in iter_records(records, position)
            )
        return values

    # Groups

    def heartbeat(self, member: Membership) -> ErrorCode:
        return ErrorCode(self.client.ask(heartbeat_request(member), 4).error_code)

    def commit(self, group: str, offset: int, member: Membership | None = None) -> None:
        partition = OffsetCommitRequestPartition(
            partition_index=Partition(0), committed_offset=Offset(offset)
        )
        body = OffsetCommitRequest(
            group_id=GroupId(group),
            generation_id_or_member_epoch=Generation(-1) if member is None else member.generation,
            member_id=MemberId("") if member is None else member.member_id,
            topics=(OffsetCommitRequestTopic(name=Topic("t"), partitions=(partition,)),),
        )
        (topic,) = self.client.ask(body, 8).topics
        assert topic.partitions[0].error_code == 0, topic

    def committed(self, group: str) -> int:
        topic = OffsetFetchRequestTopic(name=Topic("t"), partition_indexes=(Partition(0),))
        body = OffsetFetchRequest(group_id=GroupId(group), topics=(topic,))
        (found,) = self.client.ask(body, 7).topics
        offset: int = found.partitions[0].committed_offset
        return offset

    def state(self, group: str) -> str:
        body = DescribeGroupsRequest(groups=(GroupId(group),))
        (found,) = self.client.ask(body, 5).groups
        state: str = found.group_state
        return state


@contextmanager
def manual_node(directory: Path, **settings: str) -> Iterator[ManualNode]:
    """Settings are keyword arguments with underscores instead of dots."""
    given = {name.replace("_", "."): text for name, text in settings.items()}
    thread = BrokerThread(BrokerConfig({**SETTINGS, **given}), directory)
    address = thread.start("127.0.0.1", 0)
    try:
        with RawClient(address) as client:
            yield ManualNode(thread, address, client)
    finally:
        thread.stop()


def heartbeat_request(member: Membership) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=member.group_id, generation_id=member.generation, member_id=member.member_id
    )


def join_with(
    group: str, member_id: str = "", /, *, session_ms: int, rebalance_ms: int
) -> JoinGroupRequest:
    """A join with two timeouts that differ."""
    request = join_request(group, member_id, session_ms=session_ms)
    return replace(request, rebalance_timeout_ms=Millis(rebalance_ms))
