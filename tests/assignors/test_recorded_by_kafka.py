"""Comparison with assignments of Apache Kafka and kafka-python for the same groups.

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

from kohort.assignors import STICKY, Assignment
from kohort.types import MemberId
from tests.assignors.group_samples import (
    Group,
    count_lost,
    format_assignment,
    group,
    groups,
    is_valid,
    names,
    subscriber,
    sum_of_squares,
)

FILE = Path(__file__).parent / "vectors" / "assignors.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAssignment:
    group: Group
    assignments: Mapping[str, Mapping[str, str]]
    user_data: Mapping[MemberId, bytes]

    def assignment(self, name: str) -> Assignment:
        return {MemberId(each): list(names(text)) for each, text in self.assignments[name].items()}


def read(decoded: dict[str, Any]) -> RecordedAssignment:
    members = decoded.pop("members")
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
    return RecordedAssignment(
        group=group(decoded.pop("partitions"), *subscribers),
        assignments=decoded,
        user_data={
            each["id"]: bytes.fromhex(each["user_data"]) for each in members if "user_data" in each
        },
    )


RECORDED = [read(each) for each in json.loads(FILE.read_text("ascii"))]

VALID = [each for each in RECORDED if is_valid(each.group, each.assignment("sticky"))]
"""Kafka's sticky assignors may assign partitions to a member that has no topics, or leave one with
a member that no longer subscribes to its topic. Such results are not used for comparison."""


def has_equal_subscriptions(group: Group) -> bool:
    known = frozenset(group.partitions)
    return len({each.topics & known for each in group.subscribers}) == 1


def test_recorded_groups_cover_all_cases() -> None:
    equal = [each for each in RECORDED if has_equal_subscriptions(each.group)]
    static = [each for each in RECORDED if any(m.instance_id for m in each.group.subscribers)]

    assert len(RECORDED) >= 200
    assert 50 <= len(equal) <= len(RECORDED) - 50
    assert len(static) >= 30
    assert len(RECORDED) * 0.95 <= len(VALID) < len(RECORDED)


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_assignments_match_kafka(name: str) -> None:
    for each in RECORDED:
        assert format_assignment(each.group.assign(name)) == each.assignments[name]


def test_user_data_bytes_match_kafka() -> None:
    for each in RECORDED:
        for member in each.group.subscribers:
            theirs = each.user_data.get(member.member_id)

            assert STICKY.user_data(member.owned, member.generation) == theirs


def test_balance_is_at_least_as_good_as_kafka() -> None:
    for each in VALID:
        assert sum_of_squares(each.group.assign("sticky")) <= sum_of_squares(
            each.assignment("sticky")
        )


def test_equal_subscriptions_move_no_more_partitions_than_kafka() -> None:
    for each in VALID:
        if has_equal_subscriptions(each.group):
            ours = count_lost(each.group, each.group.assign("sticky"))
            theirs = count_lost(each.group, each.assignment("sticky"))

            assert ours <= theirs


def test_with_equal_balance_total_moves_are_at_most_kafkas() -> None:
    ours = theirs = 0
    for each in VALID:
        assignment = each.group.assign("sticky")
        if sum_of_squares(assignment) == sum_of_squares(each.assignment("sticky")):
            ours += count_lost(each.group, assignment)
            theirs += count_lost(each.group, each.assignment("sticky"))

    assert 0 < ours <= theirs


def test_cooperative_revocations_are_at_most_kafkas() -> None:
    ours = theirs = 0
    for each in VALID:
        if has_equal_subscriptions(each.group):
            ours += count_lost(each.group, each.group.assign("cooperative-sticky"))
            theirs += count_lost(each.group, each.assignment("cooperative-sticky"))

    assert 0 < ours <= theirs


# kafka-python


def assign_with_kafka_python(assignor: Any, group: Group) -> dict[str, str]:
    """kafka-python expects static members before the others."""
    members = sorted(group.subscribers, key=lambda each: each.instance_id is None)
    subscribers = [
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
    assignments = assignor.assign(cluster, subscribers)
    return {each: _format_partitions(assignments[each].assigned_partitions) for each in assignments}


def _format_partitions(assigned: Iterable[tuple[str, Iterable[int]]]) -> str:
    return " ".join(f"{topic}{number}" for topic, numbers in assigned for number in numbers)


@given(group=groups())
def test_range_matches_kafka_python(group: Group) -> None:
    assert format_assignment(group.assign("range")) == assign_with_kafka_python(
        RangePartitionAssignor, group
    )


@given(group=groups(are_equal=True))
def test_roundrobin_matches_kafka_python_for_equal_subscriptions(group: Group) -> None:
    assert format_assignment(group.assign("roundrobin")) == assign_with_kafka_python(
        RoundRobinPartitionAssignor, group
    )
