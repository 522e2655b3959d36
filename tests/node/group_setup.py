"""Groups on a BrokerHarness: join, sync, commit and leave without waiting."""

from dataclasses import dataclass

from kohort.types import Generation, GroupId, MemberId, Offset, Partition, Topic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from kohort.wire.consumer_protocol import Assignment, TopicPartitions, encode_assignment
from tests.node.broker_harness import BrokerHarness, name_of
from tests.node.raw_client import join_request

AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}


@dataclass(frozen=True, slots=True)
class Member:
    group: str
    member_id: MemberId
    generation: Generation


def share(topic: str, *partitions: int) -> bytes:
    given = TopicPartitions(topic=Topic(topic), partitions=tuple(map(Partition, partitions)))
    return encode_assignment(Assignment(assigned_partitions=(given,)))


def join_alone(harness: BrokerHarness, group: str, assignment: bytes = b"") -> Member:
    """Join as the only member; the settings of the harness are AT_ONCE."""
    returned = harness.answer(join_request(group), 9)
    parked = harness.ask(join_request(group, returned.member_id), 9)
    harness.advance(1)
    joined = parked.answer
    given = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
    sync = SyncGroupRequest(
        group_id=GroupId(group),
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(given,),
    )
    assert harness.answer(sync, 5).error_code == 0
    return Member(group, joined.member_id, joined.generation_id)


def leave(harness: BrokerHarness, member: Member) -> None:
    leaver = MemberIdentity(member_id=member.member_id, reason="done")
    harness.answer(LeaveGroupRequest(group_id=GroupId(member.group), members=(leaver,)), 5)


def commit(
    harness: BrokerHarness, group: str, topic: str, *partitions: int, member: Member | None = None
) -> str:
    """Return the error of the last partition; without a member it is a simple commit."""
    asked = OffsetCommitRequestTopic(
        name=Topic(topic),
        partitions=tuple(
            OffsetCommitRequestPartition(
                partition_index=Partition(partition), committed_offset=Offset(7)
            )
            for partition in partitions
        ),
    )
    request = OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=member.generation if member else Generation(-1),
        member_id=member.member_id if member else MemberId(""),
        topics=(asked,),
    )
    answer = harness.answer(request, 9)
    return name_of(answer.topics[0].partitions[-1].error_code)


def delete_group(harness: BrokerHarness, group: str) -> str:
    answer = harness.answer(DeleteGroupsRequest(groups_names=(GroupId(group),)), 2)
    return name_of(answer.results[0].error_code)
