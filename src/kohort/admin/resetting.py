"""Moving a group's offsets: first a plan, which is pure, and then, where it is wished, the deed.

A plan says for every partition where the group stands, where it will stand, and what that means:
how many records are skipped, or read again. New offsets never lie outside of a log.
"""

import csv
import io
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias, assert_never

from kohort.admin import groups, offsets, topics
from kohort.admin.cluster import Cluster
from kohort.admin.errors import GroupNotEmpty, NoSuchTopic, WrongWish
from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId, Millis, Offset, Partition, Topic, value


@value
class ToEarliest:
    """All there is."""


@value
class ToLatest:
    """Only what comes from now on."""


@value
class ToCurrent:
    """Where it stands; what has no commit goes to the end. To export it, or to keep it alive."""


@value
class ToOffset:
    offset: Offset


@value
class ShiftBy:
    records: int
    """Below zero: so many are read again."""


@value
class Since:
    moment_ms: Millis
    """To the first record that is as new; to the end if there is none."""


@value
class AsPlanned:
    """As a file says, group by group."""

    offsets: Mapping[GroupId, Mapping[TopicPartition, Offset]]


ResetWish: TypeAlias = ToEarliest | ToLatest | ToCurrent | ToOffset | ShiftBy | Since | AsPlanned


@value
class Scope:
    """Which partitions: all that the group has committed, or topics, or partitions of topics."""

    is_all: bool = False
    topics: tuple[Topic, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()


@value
class Facts:
    """What a plan is made from."""

    committed: Mapping[TopicPartition, Offset]
    earliest: Mapping[TopicPartition, Offset]
    latest: Mapping[TopicPartition, Offset]
    since: Mapping[TopicPartition, Offset]
    """The first records since the moment that is wished for, where there is one."""


@value
class ResetRow:
    partition: TopicPartition
    old: Offset | None
    """None where nothing is committed."""
    new: Offset
    skipped: int | None
    """Records between the two that will not be read, at most; None where there is no old offset."""
    again: int | None
    """Records that will be read again, at most."""


@value
class ResetPlan:
    group_id: GroupId
    rows: tuple[ResetRow, ...]
    """In order."""


@value
class Resets:
    plans: tuple[ResetPlan, ...]
    """By their groups. One that is not there is as good as an empty one: its commit makes it."""
    refused: Mapping[GroupId, GroupNotEmpty]


def plan_reset(
    group_id: GroupId, wish: ResetWish, partitions: Collection[TopicPartition], facts: Facts
) -> ResetPlan:
    """Pure. NoSuchTopic, or WrongWish, where it cannot be done for one of the partitions."""
    missing = [each for each in sorted(partitions) if each not in facts.latest]
    if missing:
        shown = ", ".join(f"{topic}:{number}" for topic, number in missing)
        raise NoSuchTopic(f"there is no partition {shown}, or nobody leads it now")
    rows = tuple(
        _row(each, _within(_wanted(group_id, wish, each, facts), each, facts), facts)
        for each in sorted(partitions)
    )
    return ResetPlan(group_id=group_id, rows=rows)


def _wanted(group_id: GroupId, wish: ResetWish, place: TopicPartition, facts: Facts) -> int:
    match wish:
        case ToEarliest():
            return facts.earliest[place]
        case ToLatest():
            return facts.latest[place]
        case ToCurrent():
            return facts.committed.get(place, facts.latest[place])
        case ToOffset():
            return wish.offset
        case ShiftBy():
            if place not in facts.committed:
                shown = f"{place.topic}:{place.partition}"
                raise WrongWish(f"nothing is committed for {shown}, so it cannot be shifted")
            return facts.committed[place] + wish.records
        case Since():
            return facts.since.get(place, facts.latest[place])
        case AsPlanned():
            return wish.offsets[group_id][place]
        case _:
            assert_never(wish)


def _within(wanted: int, place: TopicPartition, facts: Facts) -> Offset:
    return Offset(min(max(wanted, facts.earliest[place]), facts.latest[place]))


def _row(place: TopicPartition, new: Offset, facts: Facts) -> ResetRow:
    old = facts.committed.get(place)
    skipped = again = None
    if old is not None:
        # Records that are gone by age can neither be skipped nor read again.
        start = min(max(old, facts.earliest[place]), facts.latest[place])
        skipped, again = max(0, new - start), max(0, start - new)
    return ResetRow(partition=place, old=old, new=new, skipped=skipped, again=again)


# Facts


def plan_resets(
    cluster: Cluster, group_ids: Collection[GroupId], wish: ResetWish, scope: Scope
) -> Resets:
    """A plan for each group that has no members, from what the cluster says now."""
    described = groups.describe_groups(cluster, group_ids)
    refused = {group.group_id: _refuse(group) for group in described.values() if not group.is_idle}
    asked = sorted({*group_ids} - {*refused})
    committed = {
        group_id: {place: each.offset for place, each in found.items()}
        for group_id, found in offsets.committed(cluster, asked).items()
    }
    wanted = _choose(cluster, asked, wish, scope, committed)
    places = {place for each in wanted.values() for place in each}
    facts = Facts(
        committed={},
        earliest=offsets.ends(cluster, places, "earliest"),
        latest=offsets.ends(cluster, places, "latest"),
        since=offsets.ends(cluster, places, wish.moment_ms) if isinstance(wish, Since) else {},
    )
    plans = tuple(
        plan_reset(group_id, wish, wanted[group_id], _about(facts, committed[group_id]))
        for group_id in asked
    )
    return Resets(plans=plans, refused=refused)


def _refuse(group: groups.Group) -> GroupNotEmpty:
    count = len(group.members)
    whom = f"{count} member{'' if count == 1 else 's'}"
    return GroupNotEmpty(
        f"group {group.group_id!r} is {group.state} and has {whom}: its offsets can only be reset "
        "while it has none, so stop them first"
    )


def _choose(
    cluster: Cluster,
    group_ids: list[GroupId],
    wish: ResetWish,
    scope: Scope,
    committed: Mapping[GroupId, Mapping[TopicPartition, Offset]],
) -> dict[GroupId, frozenset[TopicPartition]]:
    if isinstance(wish, AsPlanned):
        for group_id in group_ids:
            if group_id not in wish.offsets:
                raise WrongWish(f"the file says nothing about group {group_id!r}")
        return {group_id: frozenset(wish.offsets[group_id]) for group_id in group_ids}
    if scope.is_all:
        return {group_id: frozenset(committed[group_id]) for group_id in group_ids}
    named = frozenset((*topics.partitions_of(cluster, scope.topics), *scope.partitions))
    return dict.fromkeys(group_ids, named)


def _about(facts: Facts, committed: Mapping[TopicPartition, Offset]) -> Facts:
    return Facts(
        committed=committed, earliest=facts.earliest, latest=facts.latest, since=facts.since
    )


def apply(cluster: Cluster, plan: ResetPlan) -> None:
    """Do what the plan says; the group must still be empty."""
    offsets.alter_offsets(cluster, plan.group_id, {row.partition: row.new for row in plan.rows})


# Words and files


def read_scope(given: Iterable[str]) -> Scope:
    """Of `topic` and `topic:0,2`, as Kafka's tools take them."""
    names: list[Topic] = []
    places: list[TopicPartition] = []
    for each in given:
        topic, separator, numbers = each.partition(":")
        if not topic or (separator and not numbers):
            raise WrongWish(f"{each!r} is neither TOPIC nor TOPIC:PARTITION,PARTITION")
        if not separator:
            names.append(Topic(topic))
        for number in numbers.split(",") if separator else ():
            if not number.strip().isdecimal():
                raise WrongWish(f"{number!r} in {each!r} is no partition")
            places.append(TopicPartition(Topic(topic), Partition(int(number))))
    return Scope(topics=tuple(dict.fromkeys(names)), partitions=tuple(dict.fromkeys(places)))


def read_plan_file(text: str, group_ids: Collection[GroupId]) -> AsPlanned:
    """Lines of topic,partition,offset for the one group that is named, or with a group before."""
    found: dict[GroupId, dict[TopicPartition, Offset]] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if not any(cell.strip() for cell in row):
            continue
        is_short = len(row) == 3 and len(group_ids) == 1
        group_id, place, offset = _read_line(number, [*group_ids, *row] if is_short else row)
        found.setdefault(group_id, {})[place] = offset
    if not found:
        raise WrongWish("the file has no line of group,topic,partition,offset")
    return AsPlanned(offsets=found)


def _read_line(number: int, row: list[str]) -> tuple[GroupId, TopicPartition, Offset]:
    cells = [cell.strip() for cell in row]
    if len(cells) == 3:
        raise WrongWish(f"line {number} names no group, which only a file about one group may do")
    if len(cells) != 4 or not (cells[2].isdecimal() and cells[3].isdecimal()):
        raise WrongWish(f"line {number} is not group,topic,partition,offset: {','.join(row)}")
    group_id, topic, partition, offset = cells
    place = TopicPartition(Topic(topic), Partition(int(partition)))
    return GroupId(group_id), place, Offset(int(offset))


def write_plan_file(plans: Collection[ResetPlan]) -> str:
    """What `read_plan_file` and Kafka's own tools read; with one group its name is left out."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for plan in plans:
        for row in plan.rows:
            head = [plan.group_id] if len(plans) > 1 else []
            writer.writerow([*head, row.partition.topic, row.partition.partition, row.new])
    return text.getvalue()
