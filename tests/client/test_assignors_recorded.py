"""What Apache Kafka's own assignors said of the same groups, and what kafka-python's say.

The groups in vectors/assignors.json come from vectors/Assignors.java.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from kohort.client.assignors import STICKY, Assignment
from kohort.types import MemberId
from tests.client.assignor_groups import (
    Group,
    group,
    groups,
    is_valid,
    lost,
    names,
    spell,
    squares,
    subscriber,
)

FILE = Path(__file__).parent / "vectors" / "assignors.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    group: Group
    said: Mapping[str, Mapping[str, str]]
    user_data: Mapping[MemberId, bytes]

    def assignment(self, name: str) -> Assignment:
        return {MemberId(each): list(names(text)) for each, text in self.said[name].items()}


def read(told: dict[str, Any]) -> Recorded:
    members = told.pop("members")
    subscribers = [
        subscriber(
            each["id"],
            each["topics"],
            owned=names(each.get("owned", "")),
            generation=each.get("generation", -1),
            instance_id=each.get("instance"),
        )
        for each in members
    ]
    return Recorded(
        group=group(told.pop("partitions"), *subscribers),
        said=told,
        user_data={
            each["id"]: bytes.fromhex(each["user_data"]) for each in members if "user_data" in each
        },
    )


RECORDED = [read(each) for each in json.loads(FILE.read_text("ascii"))]

SOUND = [each for each in RECORDED if is_valid(each.group, each.assignment("sticky"))]
"""Kafka's sticky assignors can give partitions to a member that has no topics, and leave one with a
member that subscribes to its topic no more but claims it from an older generation. What they say
then is no measure."""


def has_equal_subscriptions(group: Group) -> bool:
    known = frozenset(group.partitions)
    return len({each.topics & known for each in group.subscribers}) == 1


def test_the_recorded_groups_are_many_and_of_all_kinds() -> None:
    equal = [each for each in RECORDED if has_equal_subscriptions(each.group)]
    static = [each for each in RECORDED if any(m.instance_id for m in each.group.subscribers)]

    assert len(RECORDED) >= 200
    assert 50 <= len(equal) <= len(RECORDED) - 50
    assert len(static) >= 30
    assert len(RECORDED) * 0.95 <= len(SOUND) < len(RECORDED)


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_we_say_what_kafka_says(name: str) -> None:
    for each in RECORDED:
        assert spell(each.group.assign(name)) == each.said[name]


def test_members_tell_what_they_had_in_the_bytes_of_kafka() -> None:
    for each in RECORDED:
        for member in each.group.subscribers:
            theirs = each.user_data.get(member.member_id)

            assert STICKY.user_data(member.owned, member.generation) == theirs


def test_we_are_never_less_even_than_kafka() -> None:
    for each in SOUND:
        assert squares(each.group.assign("sticky")) <= squares(each.assignment("sticky"))


def test_among_equals_we_never_move_more_than_kafka() -> None:
    for each in SOUND:
        if has_equal_subscriptions(each.group):
            ours = lost(each.group, each.group.assign("sticky"))
            theirs = lost(each.group, each.assignment("sticky"))

            assert ours <= theirs


def test_where_kafka_is_as_even_we_do_not_move_more_in_all() -> None:
    ours = theirs = 0
    for each in SOUND:
        assignment = each.group.assign("sticky")
        if squares(assignment) == squares(each.assignment("sticky")):
            ours += lost(each.group, assignment)
            theirs += lost(each.group, each.assignment("sticky"))

    assert 0 < ours <= theirs


def test_cooperative_members_are_asked_to_give_up_no_more_than_by_kafka() -> None:
    ours = theirs = 0
    for each in SOUND:
        if has_equal_subscriptions(each.group):
            ours += lost(each.group, each.group.assign("cooperative-sticky"))
            theirs += lost(each.group, each.assignment("cooperative-sticky"))

    assert 0 < ours <= theirs


# kafka-python


def ask(assignor: Any, group: Group) -> dict[str, str]:
    """What kafka-python says; it wants static members to be told before the others."""
    members = sorted(group.subscribers, key=lambda each: each.instance_id is None)
    told = [
        SimpleNamespace(
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            metadata=SimpleNamespace(topics=sorted(each.topics)),
        )
        for each in members
    ]
    counts = {topic: count for topic, count in group.partitions.items() if count}
    cluster = SimpleNamespace(
        partitions_for_topic=lambda topic: set(range(counts[topic])) if topic in counts else None
    )
    said = assignor.assign(cluster, told)
    return {each: _spell(said[each].assigned_partitions) for each in said}


def _spell(assigned: Iterable[tuple[str, Iterable[int]]]) -> str:
    return " ".join(f"{topic}{number}" for topic, numbers in assigned for number in numbers)


@given(group=groups())
def test_range_agrees_with_kafka_python(group: Group) -> None:
    assert spell(group.assign("range")) == ask(RangePartitionAssignor, group)


@given(group=groups(are_equal=True))
def test_roundrobin_agrees_with_kafka_python_about_equal_subscriptions(group: Group) -> None:
    assert spell(group.assign("roundrobin")) == ask(RoundRobinPartitionAssignor, group)
