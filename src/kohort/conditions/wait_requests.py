"""Reads what a caller waits for from a JSON object. Pure.

Values may be strings, as in the query of an HTTP request. Invalid ones raise `BadValue`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from kohort.conditions.expectations import CommitExpectation, GroupExpectation
from kohort.conditions.group_snapshot import STABLE, STATES
from kohort.settings.readers import (
    INT_MAX,
    BadValue,
    check_bounds,
    did_you_mean,
    read_decimal,
    read_flag,
    read_list,
    read_number,
    read_text,
    read_word,
)
from kohort.types import Generation, GroupId, Offset, Partition, Topic, value

T = TypeVar("T")

TIMEOUT_S: Final = 10.0
TIMEOUT_S_MAX: Final = 3600.0
"""Protects a node from waiters that nothing ends."""

_LONG_MAX: Final = 2**63 - 1
_STATES: Final = {state.lower(): state for state in STATES}


@value
class WaitRequest:
    group_id: GroupId
    timeout_s: float
    expected: GroupExpectation


@value
class RebalanceWaitRequest:
    group_id: GroupId
    timeout_s: float
    after: Generation | None


@value
class CommitWaitRequest:
    group_id: GroupId
    timeout_s: float
    expected: CommitExpectation


def read_wait(body: Mapping[str, Any]) -> WaitRequest:
    fields = ("members", "state", "stable", "assigned", "lag", "topics")
    group_id, timeout_s = _read_common("wait", body, fields)
    expected = GroupExpectation(
        members=_find(body, "members", _count),
        state=_find(body, "state", lambda given: read_word(given, _STATES, STATES)),
        stable=_find(body, "stable", read_flag) or False,
        assigned=_find(body, "assigned", _count),
        lag=_find(body, "lag", _long),
        topics=_find(body, "topics", _topics) or (),
    )
    if expected.stable and expected.state not in (None, STABLE):
        raise BadValue(f"state={expected.state} and stable=true exclude each other: give one")
    if expected.topics and expected.lag is None:
        raise BadValue("topics restricts lag: give lag too")
    return WaitRequest(group_id=group_id, timeout_s=timeout_s, expected=expected)


def read_rebalance_wait(body: Mapping[str, Any]) -> RebalanceWaitRequest:
    group_id, timeout_s = _read_common("wait-rebalance", body, ("after",))
    after = _find(body, "after", _count)
    return RebalanceWaitRequest(
        group_id=group_id,
        timeout_s=timeout_s,
        after=None if after is None else Generation(after),
    )


def read_commit_wait(body: Mapping[str, Any]) -> CommitWaitRequest:
    group_id, timeout_s = _read_common("wait-commit", body, ("topic", "partition", "offset"))
    topic = _find(body, "topic", read_text)
    partition, offset = _find(body, "partition", _count), _find(body, "offset", _long)
    if partition is not None and topic is None:
        raise BadValue("partition needs a topic: give topic too")
    if offset is not None and partition is None:
        raise BadValue("offset is about one partition: give topic and partition too")
    return CommitWaitRequest(
        group_id=group_id,
        timeout_s=timeout_s,
        expected=CommitExpectation(
            topic=None if topic is None else Topic(topic),
            partition=None if partition is None else Partition(partition),
            offset=None if offset is None else Offset(offset),
        ),
    )


def _read_common(
    operation: str, body: Mapping[str, Any], fields: Iterable[str]
) -> tuple[GroupId, float]:
    known = ("group", *fields, "timeout")
    for name in body:
        if name not in known:
            hint = did_you_mean(name, known) or f"; it has {', '.join(known)}"
            raise BadValue(f"{operation} has no field {name!r:.80}{hint}")
    group_id = _find(body, "group", read_text)
    if group_id is None:
        raise BadValue(f"{operation} needs a group: give group")
    timeout_s = _find(body, "timeout", _seconds)
    return GroupId(group_id), TIMEOUT_S if timeout_s is None else timeout_s


def _find(body: Mapping[str, Any], name: str, read: Callable[[Any], T]) -> T | None:
    given = body.get(name)
    if given is None:
        return None
    try:
        return read(given)
    except ValueError as error:
        raise BadValue(f"{name}={given!r:.80} is invalid: {error}") from None


def _count(given: object) -> int:
    return read_number(given, 0, INT_MAX)


def _long(given: object) -> int:
    return read_number(given, 0, _LONG_MAX)


def _seconds(given: object) -> float:
    if isinstance(given, str):
        return read_decimal(given, 0, TIMEOUT_S_MAX)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ValueError("not a number")  # noqa: TRY004 - all invalid values raise ValueError
    check_bounds(given, 0, TIMEOUT_S_MAX)
    return float(given)


def _topics(given: object) -> tuple[Topic, ...]:
    names = read_list(given) if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        raise ValueError("not a list of topics")
    return tuple(dict.fromkeys(Topic(each) for each in names))
