"""The operations `wait`, `wait-rebalance` and `wait-commit`: answered when a condition holds.

The node checks the conditions itself, so nothing polls. A result is returned when what it shows is
synced, like the responses to members. Timeouts are real time, whatever the node's clock is.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from kohort.conditions.expectations import (
    find_missing,
    find_missing_membership,
    find_missing_progress,
    missing_commit,
    missing_rebalance,
    timeout_text,
)
from kohort.conditions.group_snapshot import GroupSnapshot, snapshot_to_json
from kohort.conditions.wait_requests import (
    CommitWaitRequest,
    WaitRequest,
    read_commit_wait,
    read_rebalance_wait,
    read_wait,
)
from kohort.coordinator.events import RebalanceResult
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.records import OffsetCommitted
from kohort.events.schema import Event, RebalanceEndedEvent
from kohort.node.control.errors import ControlError
from kohort.node.control.event_log import GroupEventLog, read_recent_events
from kohort.node.control.group_view import describe_group, find_commits, find_progress
from kohort.settings.readers import BadValue
from kohort.text.event_lines import event_line
from kohort.types import Generation, GroupId, Topic, TopicPartition

if TYPE_CHECKING:
    from kohort.node.control.operations import Body
    from kohort.node.server import Server

T = TypeVar("T")

_EVENTS_SHOWN: Final = 20

_COMPLETED: Final = (RebalanceResult.STABLE, RebalanceResult.EMPTY)
"""Endings of rebalances that have led to a generation."""


async def wait(server: "Server", body: "Body") -> dict[str, Any]:
    """Answer when the group is as expected, with a description of it."""
    asked = _read(read_wait, body)
    found = await _wait(server, lambda: _find_expected(server, asked), asked.timeout_s)
    if found is None:
        group = _snapshot(server, asked.group_id, asked.expected.topics)
        _time_out(server, group, find_missing(group, asked.expected), asked.timeout_s)
    return snapshot_to_json(found)


def _find_expected(server: "Server", asked: WaitRequest) -> GroupSnapshot | None:
    group_id, expected = asked.group_id, asked.expected
    group = describe_group(group_id, _find_group(server, group_id), server.clock.now())
    if find_missing_membership(group, expected):
        return None
    group = _snapshot(server, group_id, expected.topics)
    return None if find_missing_progress(group, expected) else group


async def wait_rebalance(server: "Server", body: "Body") -> dict[str, Any]:
    """Answer with the first completed rebalance after a generation, as its recorded event."""
    asked = _read(read_rebalance_wait, body)
    group_id = asked.group_id
    if not server.broker.settings["kohort.events.enable"]:
        raise ControlError(
            "this node records no rebalances: start it with kohort.events.enable=true"
        )
    events = GroupEventLog(server.broker.topics, group_id, is_past_included=asked.after is not None)
    after = asked.after
    if after is None:
        after = _last_generation(_find_group(server, group_id))
    found = await _wait(server, lambda: _find_rebalance(events, after), asked.timeout_s)
    if found is None:
        group = _snapshot(server, group_id, ())
        _time_out(server, group, missing_rebalance(group, after), asked.timeout_s)
    return found.body


def _last_generation(group: ClassicGroup | None) -> Generation:
    """The last one that has an assignment, or became empty. One that is formed now comes later."""
    return Generation(0) if group is None or group.stored is None else group.stored.generation


def _find_rebalance(events: GroupEventLog, after: Generation) -> Event | None:
    for event in events.read_new():
        match event.details:
            case RebalanceEndedEvent(ending=ending, generation=generation):
                if ending in _COMPLETED and generation > after:
                    return event
            case _:
                pass
    return None


async def wait_commit(server: "Server", body: "Body") -> dict[str, Any]:
    """Answer with the commits: new ones, or of at least the expected offset."""
    asked = _read(read_commit_wait, body)
    before = find_commits(_find_group(server, asked.group_id))
    found = await _wait(
        server, lambda: _find_commit(server, asked, before) or None, asked.timeout_s
    )
    if found is None:
        group = _snapshot(server, asked.group_id, ())
        missing = missing_commit(asked.group_id, group.committed(), asked.expected)
        _time_out(server, group, missing, asked.timeout_s)
    return {"group": asked.group_id, "commits": [_commit_json(each) for each in found]}


def _find_commit(
    server: "Server", asked: CommitWaitRequest, before: dict[TopicPartition, OffsetCommitted]
) -> list[OffsetCommitted]:
    expected = asked.expected
    return [
        commit
        for partition, commit in sorted(find_commits(_find_group(server, asked.group_id)).items())
        if expected.covers(partition)
        and (
            before.get(partition) is not commit
            if expected.offset is None
            else commit.offset >= expected.offset
        )
    ]


def _commit_json(commit: OffsetCommitted) -> dict[str, Any]:
    return {
        "topic": commit.topic,
        "partition": commit.partition,
        "offset": commit.offset,
        "metadata": commit.metadata,
        "committed_ms": commit.commit_ms,
    }


# What the operations share


def _read(read: Callable[["Body"], T], body: "Body") -> T:
    try:
        return read(body)
    except BadValue as error:
        raise ControlError(str(error)) from None


async def _wait(server: "Server", find: Callable[[], T | None], timeout_s: float) -> T | None:
    found = await server.waiters.wait(find, timeout_s)
    if found is not None:
        await server.wait_for_sync()
    return found


def _find_group(server: "Server", group_id: GroupId) -> ClassicGroup | None:
    return server.broker.coordinator.groups.get(group_id)


def _snapshot(server: "Server", group_id: GroupId, topics: Sequence[Topic]) -> GroupSnapshot:
    found = _find_group(server, group_id)
    group = describe_group(group_id, found, server.clock.now())
    return replace(group, partitions=find_progress(server.broker.topics, found, topics))


def _time_out(
    server: "Server", group: GroupSnapshot, missing: list[str], timeout_s: float
) -> NoReturn:
    events = read_recent_events(server.broker.topics, group.group_id, _EVENTS_SHOWN)
    raise ControlError(
        timeout_text(group.group_id, missing, timeout_s, [event_line(each) for each in events]),
        {
            "missing": missing,
            "group": snapshot_to_json(group),
            "events": [each.body for each in events],
        },
    )
