"""Resets a group's committed offsets: plan first, then apply.

A plan contains for every partition the old and the new offset, and how many records are skipped or
read again. New offsets always lie within the log.
"""

import csv
import io
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias, assert_never

from kohort.admin import groups, offsets, topics
from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import GroupNotEmpty, InvalidRequest, NoSuchTopic
from kohort.text.numbers import count
from kohort.types import GroupId, Millis, Offset, Partition, Topic, TopicPartition, value


@value
class ToEarliest:
    """The log start offset."""


@value
class ToLatest:
    """The log end offset."""


@value
class ToCurrent:
    """The committed offset, else the log end. For exports, or against expiry."""


@value
class ToOffset:
    offset: Offset


@value
class ShiftBy:
    records: int
    """Negative: this many records are read again."""


@value
class ToTimestamp:
    timestamp_ms: Millis
    """The first record with this timestamp or a later one; the log end if there is none."""


@value
class FromFile:
    """The offsets of a CSV file, by group."""

    offsets: Mapping[GroupId, Mapping[TopicPartition, Offset]]


ResetTarget: TypeAlias = (
    ToEarliest | ToLatest | ToCurrent | ToOffset | ShiftBy | ToTimestamp | FromFile
)


@value
class ResetScope:
    """All committed partitions of the group, or topics, or single partitions."""

    is_all: bool = False
    topics: tuple[Topic, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()


@value
class LogOffsets:
    """The input of a plan."""

    committed: Mapping[TopicPartition, Offset]
    earliest: Mapping[TopicPartition, Offset]
    latest: Mapping[TopicPartition, Offset]
    since: Mapping[TopicPartition, Offset]
    """The first offsets since the requested timestamp, if there are any."""


@value
class ResetRow:
    partition: TopicPartition
    old: Offset | None
    """None if nothing is committed."""
    new: Offset
    skipped: int | None
    """Upper bound of the records that will not be read; None without an old offset."""
    again: int | None
    """Upper bound of the records that will be read again."""


@value
class ResetPlan:
    group_id: GroupId
    rows: tuple[ResetRow, ...]
    """Sorted."""


@value
class Resets:
    plans: tuple[ResetPlan, ...]
    """Sorted by group. A group that does not exist is created by the commit."""
    refused: Mapping[GroupId, GroupNotEmpty]


def plan_reset(
    group_id: GroupId, target: ResetTarget, partitions: Collection[TopicPartition], logs: LogOffsets
) -> ResetPlan:
    """Pure. Raises NoSuchTopic or InvalidRequest if a partition cannot be reset."""
    missing = [each for each in sorted(partitions) if each not in logs.latest]
    if missing:
        shown = ", ".join(f"{topic}:{number}" for topic, number in missing)
        raise NoSuchTopic(f"partition {shown} does not exist or has no leader now")
    rows = tuple(
        _row(each, _clamp(_target_offset(group_id, target, each, logs), each, logs), logs)
        for each in sorted(partitions)
    )
    return ResetPlan(group_id=group_id, rows=rows)


def _target_offset(
    group_id: GroupId, target: ResetTarget, partition: TopicPartition, logs: LogOffsets
) -> int:
    match target:
        case ToEarliest():
            return logs.earliest[partition]
        case ToLatest():
            return logs.latest[partition]
        case ToCurrent():
            return logs.committed.get(partition, logs.latest[partition])
        case ToOffset():
            return target.offset
        case ShiftBy():
            if partition not in logs.committed:
                shown = f"{partition.topic}:{partition.partition}"
                raise InvalidRequest(f"cannot shift {shown}: it has no committed offset")
            return logs.committed[partition] + target.records
        case ToTimestamp():
            return logs.since.get(partition, logs.latest[partition])
        case FromFile():
            return target.offsets[group_id][partition]
        case _:
            assert_never(target)


def _clamp(wanted: int, partition: TopicPartition, logs: LogOffsets) -> Offset:
    return Offset(min(max(wanted, logs.earliest[partition]), logs.latest[partition]))


def _row(partition: TopicPartition, new: Offset, logs: LogOffsets) -> ResetRow:
    old = logs.committed.get(partition)
    skipped = again = None
    if old is not None:
        # Records that retention has deleted can be neither skipped nor read again.
        start = min(max(old, logs.earliest[partition]), logs.latest[partition])
        skipped, again = max(0, new - start), max(0, start - new)
    return ResetRow(partition=partition, old=old, new=new, skipped=skipped, again=again)


# Cluster


def plan_resets(
    cluster: Cluster, group_ids: Collection[GroupId], target: ResetTarget, scope: ResetScope
) -> Resets:
    """A plan for each group without members, from the current offsets."""
    described = groups.describe_groups(cluster, group_ids)
    refused = {
        group.group_id: _not_empty(group) for group in described.values() if not group.is_idle
    }
    empty = sorted({*group_ids} - {*refused})
    committed = {
        group_id: {partition: each.offset for partition, each in found.items()}
        for group_id, found in offsets.list_group_offsets(cluster, empty).items()
    }
    wanted = _choose_partitions(cluster, empty, target, scope, committed)
    partitions = {partition for each in wanted.values() for partition in each}
    logs = LogOffsets(
        committed={},
        earliest=offsets.list_offsets(cluster, partitions, "earliest"),
        latest=offsets.list_offsets(cluster, partitions, "latest"),
        since=offsets.list_offsets(cluster, partitions, target.timestamp_ms)
        if isinstance(target, ToTimestamp)
        else {},
    )
    plans = tuple(
        plan_reset(group_id, target, wanted[group_id], _with_committed(logs, committed[group_id]))
        for group_id in empty
    )
    return Resets(plans=plans, refused=refused)


def _not_empty(group: groups.ConsumerGroupDescription) -> GroupNotEmpty:
    members = count(len(group.members), "member")
    return GroupNotEmpty(
        f"group {group.group_id!r} is {group.state} and has {members}: stop them first, "
        "offsets can be reset only while the group has no members"
    )


def _choose_partitions(
    cluster: Cluster,
    group_ids: list[GroupId],
    target: ResetTarget,
    scope: ResetScope,
    committed: Mapping[GroupId, Mapping[TopicPartition, Offset]],
) -> dict[GroupId, frozenset[TopicPartition]]:
    if isinstance(target, FromFile):
        for group_id in group_ids:
            if group_id not in target.offsets:
                raise InvalidRequest(f"the file has no lines for group {group_id!r}")
        return {group_id: frozenset(target.offsets[group_id]) for group_id in group_ids}
    if scope.is_all:
        return {group_id: frozenset(committed[group_id]) for group_id in group_ids}
    named = frozenset((*topics.partitions_of(cluster, scope.topics), *scope.partitions))
    return dict.fromkeys(group_ids, named)


def _with_committed(logs: LogOffsets, committed: Mapping[TopicPartition, Offset]) -> LogOffsets:
    return LogOffsets(
        committed=committed, earliest=logs.earliest, latest=logs.latest, since=logs.since
    )


def apply_reset(cluster: Cluster, plan: ResetPlan) -> None:
    """Commit the offsets of the plan; the group must still be empty."""
    offsets.alter_offsets(cluster, plan.group_id, {row.partition: row.new for row in plan.rows})


# Text formats


def read_scope(given: Iterable[str]) -> ResetScope:
    """Reads `topic` and `topic:0,2`, the syntax of Kafka's tools."""
    names: list[Topic] = []
    partitions: list[TopicPartition] = []
    for each in given:
        topic, separator, numbers = each.partition(":")
        if not topic or (separator and not numbers):
            raise InvalidRequest(f"{each!r} is neither TOPIC nor TOPIC:PARTITION,PARTITION")
        if not separator:
            names.append(Topic(topic))
        for number in numbers.split(",") if separator else ():
            if not number.strip().isdecimal():
                raise InvalidRequest(f"{number!r} in {each!r} is not a partition number")
            partitions.append(TopicPartition(Topic(topic), Partition(int(number))))
    return ResetScope(
        topics=tuple(dict.fromkeys(names)), partitions=tuple(dict.fromkeys(partitions))
    )


def read_plan_file(text: str, group_ids: Collection[GroupId]) -> FromFile:
    """Lines of topic,partition,offset if one group is given, else group,topic,partition,offset."""
    found: dict[GroupId, dict[TopicPartition, Offset]] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if not any(cell.strip() for cell in row):
            continue
        is_short = len(row) == 3 and len(group_ids) == 1
        group_id, partition, offset = _read_line(number, [*group_ids, *row] if is_short else row)
        found.setdefault(group_id, {})[partition] = offset
    if not found:
        raise InvalidRequest("the file has no lines of group,topic,partition,offset")
    return FromFile(offsets=found)


def _read_line(number: int, row: list[str]) -> tuple[GroupId, TopicPartition, Offset]:
    cells = [cell.strip() for cell in row]
    if len(cells) == 3:
        raise InvalidRequest(
            f"line {number} has no group; it is required unless exactly one group is reset"
        )
    if len(cells) != 4 or not (cells[2].isdecimal() and cells[3].isdecimal()):
        raise InvalidRequest(f"line {number} is not group,topic,partition,offset: {','.join(row)}")
    group_id, topic, number_text, offset = cells
    partition = TopicPartition(Topic(topic), Partition(int(number_text)))
    return GroupId(group_id), partition, Offset(int(offset))


def write_plan_file(plans: Collection[ResetPlan]) -> str:
    """The format of `read_plan_file` and of Kafka's tools; without the group if there is one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for plan in plans:
        for row in plan.rows:
            head = [plan.group_id] if len(plans) > 1 else []
            writer.writerow([*head, row.partition.topic, row.partition.partition, row.new])
    return text.getvalue()
