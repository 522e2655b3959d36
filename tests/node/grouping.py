"""Groups on a scene: members that join, get their share, commit and leave, all at once."""

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
from kohort.wire.embedded import Assignment, TopicPartitions, encode_assignment
from tests.node.asking import Scene, name_of
from tests.node.calling import join_request

AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}


@dataclass(frozen=True, slots=True)
class Member:
    group: str
    member_id: MemberId
    generation: Generation


def share(topic: str, *partitions: int) -> bytes:
    given = TopicPartitions(topic=Topic(topic), partitions=tuple(map(Partition, partitions)))
    return encode_assignment(Assignment(assigned_partitions=(given,)))


def join_alone(scene: Scene, group: str, assignment: bytes = b"") -> Member:
    """The only member of a group; the scene's settings are AT_ONCE."""
    told = scene.answer(join_request(group), 9)
    parked = scene.ask(join_request(group, told.member_id), 9)
    scene.advance(1)
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
    assert scene.answer(sync, 5).error_code == 0
    return Member(group, joined.member_id, joined.generation_id)


def leave(scene: Scene, member: Member) -> None:
    leaver = MemberIdentity(member_id=member.member_id, reason="done")
    scene.answer(LeaveGroupRequest(group_id=GroupId(member.group), members=(leaver,)), 5)


def commit(
    scene: Scene, group: str, topic: str, *partitions: int, member: Member | None = None
) -> str:
    """The error of the last partition; without a member, as a simple group does."""
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
    answer = scene.answer(request, 9)
    return name_of(answer.topics[0].partitions[-1].error_code)


def delete_group(scene: Scene, group: str) -> str:
    answer = scene.answer(DeleteGroupsRequest(groups_names=(GroupId(group),)), 2)
    return name_of(answer.results[0].error_code)
