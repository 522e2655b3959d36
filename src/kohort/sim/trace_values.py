"""Formats values for traces: short, sorted and deterministic."""

from collections.abc import Iterable, Mapping
from typing import Any

from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.client.member.member_events import OffsetAndMetadata
from kohort.types import ErrorCode, TopicPartition
from kohort.wire.consumer_protocol import decode_assignment, decode_subscription


def show_partition(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def show_partitions(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(show_partition(each) for each in sorted(partitions)) or "nothing"


def show_positions(positions: Mapping[TopicPartition, OffsetAndMetadata]) -> str:
    return ",".join(f"{show_partition(at)}@{each.offset}" for at, each in sorted(positions.items()))


def show_records(records: list[ConsumerRecord]) -> str:
    offsets: dict[TopicPartition, list[int]] = {}
    for record in records:
        offsets.setdefault(TopicPartition(record.topic, record.partition), []).append(record.offset)
    return ",".join(
        f"{show_partition(at)}@{min(found)}..{max(found)}" for at, found in sorted(offsets.items())
    )


def show_request(body: Any) -> str:
    name = type(body).__name__.removesuffix("Request")
    match name:
        case "JoinGroup":
            owned = decode_subscription(body.protocols[0].metadata).owned_partitions
            holding = ",".join(
                f"{each.topic}-{index}" for each in owned for index in each.partitions
            )
            return f"{name} id={_id(body.member_id)} owned={holding or 'nothing'} {body.reason!r}"
        case "SyncGroup":
            assigned = " ".join(
                f"{_id(each.member_id)}={_assigned(each.assignment)}" for each in body.assignments
            )
            sync = f"{name} id={_id(body.member_id)} generation={body.generation_id}"
            return f"{sync} {assigned}".rstrip()
        case "OffsetCommit":
            positions = ",".join(
                f"{topic.name}-{part.partition_index}@{part.committed_offset}"
                for topic in body.topics
                for part in topic.partitions
            )
            generation = body.generation_id_or_member_epoch
            return f"{name} id={_id(body.member_id)} generation={generation} {positions}"
        case "Heartbeat":
            return f"{name} id={_id(body.member_id)} generation={body.generation_id}"
        case "LeaveGroup":
            return f"{name} id={','.join(_id(each.member_id) for each in body.members)}"
        case _:
            return name


def show_response(body: Any) -> str:
    name = type(body).__name__.removesuffix("Response")
    match name:
        case "JoinGroup" if not body.error_code:
            leads = " leads" if body.leader == body.member_id else ""
            return f"{name} id={_id(body.member_id)} generation={body.generation_id}{leads}"
        case "SyncGroup" if not body.error_code:
            return f"{name} {_assigned(body.assignment)}"
        case "OffsetCommit":
            codes = {part.error_code for topic in body.topics for part in topic.partitions}
            return f"{name} {','.join(_error(code) for code in sorted(codes))}"
        case "OffsetFetch":
            shown = ",".join(
                f"{topic.name}-{part.partition_index}@{part.committed_offset}"
                for group in body.groups
                for topic in group.topics
                for part in topic.partitions
            )
            codes = {group.error_code for group in body.groups}
            return f"{name} {','.join(_error(code) for code in sorted(codes))} {shown}".rstrip()
        case "FindCoordinator":
            return f"{name} {','.join(_error(each.error_code) for each in body.coordinators)}"
        case _:
            return f"{name} {_error(getattr(body, 'error_code', 0))}"


def _assigned(data: bytes) -> str:
    if not data:
        return "nothing"
    assigned = decode_assignment(data).assigned_partitions
    return (
        ",".join(f"{each.topic}-{index}" for each in assigned for index in each.partitions)
        or "nothing"
    )


def _error(code: int) -> str:
    return "ok" if code == 0 else ErrorCode(code).name


def _id(member_id: str) -> str:
    """A short form: ids end in random digits."""
    name, _, rest = member_id.rpartition("-")
    return f"{name.partition('-')[0]}-{rest[-4:]}" if name else member_id or "none"
