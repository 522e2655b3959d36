"""The examples of Kafka's documentation, and cases that it does not mention."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from kohort.assignors import Subscriber
from tests.assignors.group_samples import format_assignment, group, names, subscriber


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    partitions: Mapping[str, int]
    members: tuple[Subscriber, ...]
    expected: Mapping[str, str]


BOTH = (subscriber("C0", "ab"), subscriber("C1", "ab"))
THREE = (subscriber("C0", "ab"), subscriber("C1", "ab"), subscriber("C2", "ab"))
STAIRS = (subscriber("C0", "a"), subscriber("C1", "ab"), subscriber("C2", "abc"))

RANGE = {
    "the example of Kafka's documentation": Row(
        partitions={"a": 3, "b": 3},
        members=BOTH,
        expected={"C0": "a0 a1 b0 b1", "C1": "a2 b2"},
    ),
    "static members go by their instance ids": Row(
        partitions={"a": 3, "b": 3},
        members=(
            subscriber("C0", "ab", instance_id="i1"),
            subscriber("C1", "ab", instance_id="i0"),
        ),
        expected={"C1": "a0 a1 b0 b1", "C0": "a2 b2"},
    ),
    "static members go before the others": Row(
        partitions={"a": 4},
        members=(
            subscriber("C0", "a"),
            subscriber("C1", "a", instance_id="z"),
            subscriber("C2", "a"),
        ),
        expected={"C1": "a0 a1", "C0": "a2", "C2": "a3"},
    ),
    "members are in the order of UTF-16, as in Java": Row(
        partitions={"a": 2},
        members=(subscriber("\U0001f600", "a"), subscriber("\uffee", "a")),
        expected={"\U0001f600": "a0", "\uffee": "a1"},
    ),
    "each topic has its own subscribers": Row(
        partitions={"a": 1, "b": 2, "c": 3},
        members=STAIRS,
        expected={"C0": "a0", "C1": "b0", "C2": "b1 c0 c1 c2"},
    ),
    "more members than partitions": Row(
        partitions={"a": 1, "b": 2},
        members=THREE,
        expected={"C0": "a0 b0", "C1": "b1", "C2": ""},
    ),
    "a topic that does not exist": Row(
        partitions={"a": 2},
        members=(subscriber("C0", "ax"), subscriber("C1", "x")),
        expected={"C0": "a0 a1", "C1": ""},
    ),
    "a topic without partitions": Row(
        partitions={"a": 0}, members=(subscriber("C0", "a"),), expected={"C0": ""}
    ),
    "a topic without subscribers": Row(
        partitions={"a": 1, "b": 9}, members=(subscriber("C0", "a"),), expected={"C0": "a0"}
    ),
    "no members": Row(partitions={"a": 1}, members=(), expected={}),
}

ROUNDROBIN = {
    "the example of Kafka's documentation": Row(
        partitions={"a": 3, "b": 3},
        members=BOTH,
        expected={"C0": "a0 a2 b1", "C1": "a1 b0 b2"},
    ),
    "its example of unequal subscriptions": Row(
        partitions={"a": 1, "b": 2, "c": 3},
        members=STAIRS,
        expected={"C0": "a0", "C1": "b0", "C2": "b1 c0 c1 c2"},
    ),
    "its example of three members": Row(
        partitions={"a": 3, "b": 3},
        members=THREE,
        expected={"C0": "a0 b0", "C1": "a1 b1", "C2": "a2 b2"},
    ),
    "its example of static members that return": Row(
        partitions={"a": 3, "b": 3},
        members=(
            subscriber("C3", "ab", instance_id="i1"),
            subscriber("C4", "ab", instance_id="i2"),
            subscriber("C5", "ab", instance_id="i0"),
        ),
        expected={"C5": "a0 b0", "C3": "a1 b1", "C4": "a2 b2"},
    ),
    "a skipped member does not get an extra turn": Row(
        partitions={"a": 2, "b": 3},
        members=(subscriber("C0", "b"), subscriber("C1", "ab"), subscriber("C2", "ab")),
        expected={"C0": "b0", "C1": "a0 b1", "C2": "a1 b2"},
    ),
    "a topic that does not exist": Row(
        partitions={"b": 2},
        members=(subscriber("C0", "ab"), subscriber("C1", "a")),
        expected={"C0": "b0 b1", "C1": ""},
    ),
    "no members": Row(partitions={"a": 1}, members=(), expected={}),
}

STICKY = {
    "the example of Kafka's documentation, fresh": Row(
        partitions={"a": 2, "b": 2, "c": 2, "d": 2},
        members=tuple(subscriber(each, "abcd") for each in ("C0", "C1", "C2")),
        expected={"C0": "a0 b1 d0", "C1": "a1 c0 d1", "C2": "b0 c1"},
    ),
    "the same when C1 has left": Row(
        partitions={"a": 2, "b": 2, "c": 2, "d": 2},
        members=(
            subscriber("C0", "abcd", owned=names("a0 b1 d0"), generation=1),
            subscriber("C2", "abcd", owned=names("b0 c1"), generation=1),
        ),
        expected={"C0": "a0 b1 c0 d0", "C2": "a1 b0 c1 d1"},
    ),
    "its example of unequal subscriptions, fresh": Row(
        partitions={"a": 1, "b": 2, "c": 3},
        members=STAIRS,
        expected={"C0": "a0", "C1": "b0 b1", "C2": "c0 c1 c2"},
    ),
    "the same when C0 has left": Row(
        partitions={"a": 1, "b": 2, "c": 3},
        members=(
            subscriber("C1", "ab", owned=names("b0 b1"), generation=1),
            subscriber("C2", "abc", owned=names("c0 c1 c2"), generation=1),
        ),
        expected={"C1": "a0 b0 b1", "C2": "c0 c1 c2"},
    ),
    "a member that loses partitions loses some of every topic": Row(
        partitions={"a": 3, "b": 3},
        members=(
            subscriber("C0", "ab", owned=names("a0 a1 a2 b0 b1 b2"), generation=1),
            subscriber("C1", "ab"),
        ),
        expected={"C0": "a0 a1 b0", "C1": "a2 b1 b2"},
    ),
    "balance by a chain of moves": Row(
        partitions={"a": 3, "b": 1},
        members=(
            subscriber("C0", "a", owned=names("a0 a1 a2"), generation=1),
            subscriber("C1", "ab", owned=names("b0"), generation=1),
            subscriber("C2", "b"),
        ),
        expected={"C0": "a0 a1", "C1": "a2", "C2": "b0"},
    ),
    "unowned partitions are used for balance before owned ones move": Row(
        partitions={"a": 1, "b": 1, "c": 1},
        members=(
            subscriber("C0", "bc", owned=names("b0"), generation=1),
            subscriber("C1", "abc"),
            subscriber("C2", "ab"),
        ),
        expected={"C0": "b0", "C1": "c0", "C2": "a0"},
    ),
    "a member without topics does not affect the balance": Row(
        partitions={"a": 2},
        members=(subscriber("C0", "a"), subscriber("C1", ""), subscriber("C2", "a")),
        expected={"C0": "a0", "C1": "", "C2": "a1"},
    ),
    "no members": Row(partitions={"a": 1}, members=(), expected={}),
    "no topics": Row(partitions={}, members=STAIRS, expected={"C0": "", "C1": "", "C2": ""}),
}

CASES = [
    pytest.param(name, row, id=f"{name}: {title}")
    for name, rows in (("range", RANGE), ("roundrobin", ROUNDROBIN), ("sticky", STICKY))
    for title, row in rows.items()
]


@pytest.mark.parametrize(("name", "row"), CASES)
def test_assignment_matches_the_table(name: str, row: Row) -> None:
    here = group(row.partitions, *row.members)

    assignment = here.assign(name)

    assert format_assignment(assignment) == row.expected


FRESH = [
    pytest.param(row, id=title)
    for title, row in STICKY.items()
    if not any(each.owned for each in row.members)
]


@pytest.mark.parametrize("row", FRESH)
def test_both_sticky_assignors_agree_for_a_new_group(row: Row) -> None:
    here = group(row.partitions, *row.members)

    assignment = here.assign("cooperative-sticky")

    assert format_assignment(assignment) == row.expected
