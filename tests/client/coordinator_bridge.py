"""Connects a member to the coordinator directly: requests become commands, replies responses."""

from typing import Any

from kohort.coordinator import commands, replies
from kohort.coordinator.commands import Ticket
from kohort.types import BrokerId, MemberId, Topic
from kohort.wire.api import (
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
)


def command_of(body: Any, ticket: Ticket, client_id: str, fresh: MemberId) -> commands.Request:
    match body:
        case k11_join_group.JoinGroupRequest():
            return commands.JoinGroup(
                ticket=ticket,
                group_id=body.group_id,
                member_id=body.member_id,
                fresh_member_id=fresh,
                instance_id=body.group_instance_id,
                client_id=client_id,
                client_host="h",
                session_timeout_ms=body.session_timeout_ms,
                rebalance_timeout_ms=body.rebalance_timeout_ms,
                protocol_type=body.protocol_type,
                protocols=tuple(
                    commands.Protocol(name=each.name, metadata=each.metadata)
                    for each in body.protocols
                ),
                reason=body.reason,
            )
        case k14_sync_group.SyncGroupRequest():
            return commands.SyncGroup(
                ticket=ticket,
                group_id=body.group_id,
                member_id=body.member_id,
                instance_id=body.group_instance_id,
                generation=body.generation_id,
                protocol_type=body.protocol_type,
                protocol=body.protocol_name,
                assignments=tuple(
                    commands.MemberAssignment(member_id=each.member_id, assignment=each.assignment)
                    for each in body.assignments
                ),
            )
        case k12_heartbeat.HeartbeatRequest():
            return commands.Heartbeat(
                ticket=ticket,
                group_id=body.group_id,
                member_id=body.member_id,
                instance_id=body.group_instance_id,
                generation=body.generation_id,
            )
        case _:
            return _other_command(body, ticket)


def _other_command(body: Any, ticket: Ticket) -> commands.Request:
    match body:
        case k13_leave_group.LeaveGroupRequest():
            return commands.LeaveGroup(
                ticket=ticket,
                group_id=body.group_id,
                members=tuple(
                    commands.LeavingMember(
                        member_id=each.member_id,
                        instance_id=each.group_instance_id,
                        reason=each.reason,
                    )
                    for each in body.members
                ),
            )
        case k08_offset_commit.OffsetCommitRequest():
            return commands.CommitOffsets(
                ticket=ticket,
                group_id=body.group_id,
                member_id=body.member_id,
                instance_id=body.group_instance_id,
                generation=body.generation_id_or_member_epoch,
                offsets=tuple(
                    commands.OffsetToCommit(
                        topic=topic.name,
                        partition=each.partition_index,
                        offset=each.committed_offset,
                        leader_epoch=each.committed_leader_epoch,
                        metadata=each.committed_metadata,
                    )
                    for topic in body.topics
                    for each in topic.partitions
                ),
            )
        case k09_offset_fetch.OffsetFetchRequest():
            (group,) = body.groups
            return commands.FetchOffsets(
                ticket=ticket,
                group_id=group.group_id,
                topics=tuple(
                    commands.RequestedTopic(topic=each.name, partitions=each.partition_indexes)
                    for each in group.topics or ()
                ),
                require_stable=body.require_stable,
            )
        case _:
            raise AssertionError(f"no coordinator is asked {body}")


def response_of(body: Any, reply: replies.Reply) -> object:
    """The response for a request of the member."""
    if isinstance(reply, replies.RequestRefused):
        return error_response(body, reply.error, reply.member_id)
    match reply:
        case replies.Joined():
            return k11_join_group.JoinGroupResponse(
                error_code=0,
                generation_id=reply.generation,
                protocol_type=reply.protocol_type,
                protocol_name=reply.protocol,
                leader=reply.leader,
                skip_assignment=reply.skip_assignment,
                member_id=reply.member_id,
                members=tuple(
                    k11_join_group.JoinGroupResponseMember(
                        member_id=each.member_id,
                        group_instance_id=each.instance_id,
                        metadata=each.metadata,
                    )
                    for each in reply.members
                ),
            )
        case replies.Synced():
            return k14_sync_group.SyncGroupResponse(
                error_code=0,
                protocol_type=reply.protocol_type,
                protocol_name=reply.protocol,
                assignment=reply.assignment,
            )
        case replies.HeartbeatAccepted():
            return k12_heartbeat.HeartbeatResponse(error_code=0)
        case replies.LeaveAnswered():
            return k13_leave_group.LeaveGroupResponse(error_code=0)
        case replies.CommitAnswered():
            return commit_response({(r.topic, r.partition): r.error for r in reply.results})
        case replies.OffsetsFetched():
            return _fetched(reply)
        case _:
            raise AssertionError(f"no member understands {reply}")


def _fetched(reply: replies.OffsetsFetched) -> k09_offset_fetch.OffsetFetchResponse:
    topics: dict[Topic, list[k09_offset_fetch.OffsetFetchResponsePartitions]] = {}
    for each in reply.offsets:
        topics.setdefault(each.topic, []).append(
            k09_offset_fetch.OffsetFetchResponsePartitions(
                partition_index=each.partition,
                committed_offset=each.offset,
                committed_leader_epoch=each.leader_epoch,
                metadata=each.metadata,
                error_code=each.error,
            )
        )
    group = k09_offset_fetch.OffsetFetchResponseGroup(
        group_id=reply.group_id,
        topics=tuple(
            k09_offset_fetch.OffsetFetchResponseTopics(name=topic, partitions=tuple(partitions))
            for topic, partitions in topics.items()
        ),
        error_code=0,
    )
    return k09_offset_fetch.OffsetFetchResponse(groups=(group,))


def commit_response(errors: Any) -> k08_offset_commit.OffsetCommitResponse:
    """From (topic, partition) to error."""
    topics: dict[Topic, list[k08_offset_commit.OffsetCommitResponsePartition]] = {}
    for (topic, partition), error in errors.items():
        topics.setdefault(topic, []).append(
            k08_offset_commit.OffsetCommitResponsePartition(
                partition_index=partition, error_code=error
            )
        )
    return k08_offset_commit.OffsetCommitResponse(
        topics=tuple(
            k08_offset_commit.OffsetCommitResponseTopic(name=topic, partitions=tuple(partitions))
            for topic, partitions in topics.items()
        )
    )


def error_response(body: Any, error: int, member_id: MemberId = MemberId("")) -> object:
    """An error response to any request."""
    match body:
        case k10_find_coordinator.FindCoordinatorRequest():
            unknown = k10_find_coordinator.Coordinator(
                key=body.coordinator_keys[0],
                node_id=BrokerId(-1),
                host="",
                port=-1,
                error_code=error,
            )
            return k10_find_coordinator.FindCoordinatorResponse(coordinators=(unknown,))
        case k11_join_group.JoinGroupRequest():
            return k11_join_group.JoinGroupResponse(
                error_code=error, protocol_name=None, leader=MemberId(""), member_id=member_id
            )
        case k14_sync_group.SyncGroupRequest():
            return k14_sync_group.SyncGroupResponse(error_code=error, assignment=b"")
        case k12_heartbeat.HeartbeatRequest():
            return k12_heartbeat.HeartbeatResponse(error_code=error)
        case k13_leave_group.LeaveGroupRequest():
            return k13_leave_group.LeaveGroupResponse(error_code=error)
        case k08_offset_commit.OffsetCommitRequest():
            return commit_response(
                {
                    (topic.name, each.partition_index): error
                    for topic in body.topics
                    for each in topic.partitions
                }
            )
        case k09_offset_fetch.OffsetFetchRequest():
            (asked,) = body.groups
            group = k09_offset_fetch.OffsetFetchResponseGroup(
                group_id=asked.group_id, topics=(), error_code=error
            )
            return k09_offset_fetch.OffsetFetchResponse(groups=(group,))
        case _:
            raise AssertionError(f"no coordinator is asked {body}")
