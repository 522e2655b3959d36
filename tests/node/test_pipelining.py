"""Requests that a client pipelines behind a long-poll Fetch, over real sockets."""

import kohort
from kohort.node.broker import Address
from kohort.types import ErrorCode, GroupId, Millis, Partition, Topic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from tests.node.broker_harness import fetch_request
from tests.node.raw_client import RawClient, join_first

OFFSETS = "__consumer_offsets"
LATEST = Millis(-1)


def end_offset(client: RawClient) -> int:
    partition = ListOffsetsPartition(partition_index=Partition(0), timestamp=LATEST)
    topic = ListOffsetsTopic(name=Topic(OFFSETS), partitions=(partition,))
    answer = client.ask(ListOffsetsRequest(topics=(topic,)), 5)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def test_leave_pipelined_behind_a_fetch_of_the_offsets_topic_waits_for_the_sync_it_reads() -> None:
    settings = {"group.initial.rebalance.delay.ms": 0}
    with kohort.Node(settings=settings) as node:
        host, port = node.bootstrap_servers.split(":")
        address = Address(host=host, port=int(port))
        with (
            RawClient(address) as member,
            RawClient(address) as reader,
            RawClient(address) as third,
        ):
            joined = join_first(member, "g")
            fetch = fetch_request(end_offset(reader), OFFSETS, max_wait_ms=10_000)
            leaver = MemberIdentity(member_id=joined.member_id)
            leave = LeaveGroupRequest(group_id=GroupId("g"), members=(leaver,))
            fetch_sent, fetch_frame = reader.encode(fetch, 12)
            leave_sent, leave_frame = reader.encode(leave, 5)
            reader.socket.sendall(fetch_frame + leave_frame)
            third.ask(ListGroupsRequest(), 4)  # the reader's fetch waits by now

            share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
            synced = member.ask(
                SyncGroupRequest(
                    group_id=GroupId("g"),
                    generation_id=joined.generation_id,
                    member_id=joined.member_id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=(share,),
                ),
                5,
            )

            assert ErrorCode(synced.error_code) is ErrorCode.NONE
            assert synced.assignment == b"all"
            assert reader.receive(fetch_sent).responses[0].partitions[0].records
            assert ErrorCode(reader.receive(leave_sent).error_code) is ErrorCode.NONE
            (group,) = third.ask(ListGroupsRequest(), 4).groups
            assert (group.group_id, group.group_state) == ("g", "Empty")
