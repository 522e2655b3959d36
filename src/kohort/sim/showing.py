"""Values as a trace shows them: short, sorted, and the same in every run."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from kohort.client.member.events import Position
from kohort.client.topic_partition import TopicPartition
from kohort.sim.reader import Piece
from kohort.types import ErrorCode
from kohort.wire.embedded import decode_assignment, decode_subscription


def show_partition(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def show_partitions(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(show_partition(each) for each in sorted(partitions)) or "nothing"


def show_positions(positions: Mapping[TopicPartition, Position]) -> str:
    return ",".join(f"{show_partition(at)}@{each.offset}" for at, each in sorted(positions.items()))


def show_pieces(pieces: list[Piece]) -> str:
    shown = []
    ordered = sorted(pieces, key=lambda piece: (piece.partition, piece.offset))
    for partition, group in groupby(ordered, lambda piece: piece.partition):
        offsets = [piece.offset for piece in group]
        shown.append(f"{show_partition(partition)}@{offsets[0]}..{offsets[-1]}")
    return ",".join(shown)


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
            dealt = " ".join(
                f"{_id(each.member_id)}={_assigned(each.assignment)}" for each in body.assignments
            )
            return (
                f"{name} id={_id(body.member_id)} generation={body.generation_id} {dealt}".rstrip()
            )
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


def show_answer(body: Any) -> str:
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
    dealt = decode_assignment(data).assigned_partitions
    return (
        ",".join(f"{each.topic}-{index}" for each in dealt for index in each.partitions)
        or "nothing"
    )


def _error(code: int) -> str:
    return "ok" if code == 0 else ErrorCode(code).name


def _id(member_id: str) -> str:
    """Enough of it to tell one from another: ids end in what chance has drawn."""
    name, _, rest = member_id.rpartition("-")
    return f"{name.partition('-')[0]}-{rest[-4:]}" if name else member_id or "none"
