"""Reading what a caller waits for: from JSON, and from strings of an HTTP query."""

from typing import Any

import pytest

from kohort.conditions.expectations import CommitExpectation, GroupExpectation
from kohort.conditions.wait_requests import (
    TIMEOUT_S,
    read_commit_wait,
    read_rebalance_wait,
    read_wait,
)
from kohort.settings.readers import BadValue
from kohort.types import Offset, Partition, Topic

EXPECTED = GroupExpectation(
    members=3,
    state="Stable",
    stable=True,
    assigned=6,
    lag=0,
    topics=(Topic("orders"), Topic("refunds")),
)


@pytest.mark.parametrize(
    "body",
    [
        {
            "members": 3,
            "state": "Stable",
            "stable": True,
            "assigned": 6,
            "lag": 0,
            "topics": ["orders", "refunds"],
            "timeout": 2.5,
        },
        {
            "members": "3",
            "state": "stable",
            "stable": "true",
            "assigned": "6",
            "lag": "0",
            "topics": "orders, refunds",
            "timeout": "2.5",
        },
    ],
    ids=["json", "strings"],
)
def test_values_of_json_and_of_a_query_mean_the_same(body: dict[str, Any]) -> None:
    asked = read_wait({"group": "billing", **body})

    assert (asked.group_id, asked.expected, asked.timeout_s) == ("billing", EXPECTED, 2.5)


def test_everything_but_the_group_is_optional() -> None:
    asked = read_wait({"group": "billing", "members": None})

    assert (asked.expected, asked.timeout_s) == (GroupExpectation(), TIMEOUT_S)


def test_commit_is_that_of_a_partition() -> None:
    asked = read_commit_wait({"group": "g", "topic": "orders", "partition": "0", "offset": "5"})

    assert asked.expected == CommitExpectation(
        topic=Topic("orders"), partition=Partition(0), offset=Offset(5)
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "wait needs a group: give group"),
        ({"group": ""}, "group='' is invalid: empty"),
        ({"group": 7}, "group=7 is invalid: not text"),
        ({"members": "three"}, "members='three' is invalid: not a whole number"),
        ({"members": -1}, "members=-1 is invalid: not between 0 and 2147483647"),
        ({"members": True}, "members=True is invalid: not a whole number"),
        ({"lag": 1.5}, "lag=1.5 is invalid: not a whole number"),
        ({"stable": "yes"}, "stable='yes' is invalid: neither true nor false"),
        ({"topics": 7, "lag": 0}, "topics=7 is invalid: not a list of topics"),
        ({"topics": "orders"}, "topics restricts lag: give lag too"),
        ({"timeout": "soon"}, "timeout='soon' is invalid: not a number"),
        ({"timeout": -1}, "timeout=-1 is invalid: not between 0 and 3600.0"),
        ({"timeout": 3601}, "timeout=3601 is invalid: not between 0 and 3600.0"),
        ({"timeout": "nan"}, "timeout='nan' is invalid: not between 0 and 3600.0"),
        ({"member": 3}, "wait has no field 'member'; did you mean members?"),
        ({"stable": True, "state": "Empty"}, "exclude each other: give one"),
        ({"state": "Happy"}, "state='Happy' is invalid: none of PreparingRebalance, "),
    ],
)
def test_invalid_wait_is_refused_with_the_value(body: dict[str, Any], reason: str) -> None:
    group = {} if not body else {"group": "billing"}

    with pytest.raises(BadValue) as refusal:
        read_wait({**group, **body})

    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"partition": 0}, "partition needs a topic: give topic too"),
        ({"topic": "orders", "offset": 3}, "give topic and partition too"),
        ({"lag": 3}, "wait-commit has no field 'lag'"),
    ],
)
def test_incomplete_commit_is_refused(body: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadValue, match=reason):
        read_commit_wait({"group": "billing", **body})


def test_negative_generation_is_refused() -> None:
    with pytest.raises(BadValue, match="after=-1 is invalid"):
        read_rebalance_wait({"group": "billing", "after": -1})
