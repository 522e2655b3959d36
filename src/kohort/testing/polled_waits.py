"""Waits for conditions of groups on any Kafka, over its protocol. It polls, unlike `waits`.

Apache Kafka does not report whether a member of a classic group has received its assignment, nor
the time since a group entered its state, nor the cause of a rebalance. It reports the last offset
of each partition, so a second commit of the same offset is not noticed.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, NoReturn, TypeVar

from kohort.admin import offsets, rebalance_history
from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import NoHistory
from kohort.admin.group_monitor.views import ObservedRebalance
from kohort.admin.groups import ConsumerGroupDescription, GroupMemberDescription, describe_groups
from kohort.admin.offsets import CommittedOffset
from kohort.admin.reverse_reader import read_backwards
from kohort.admin.topics import describe_topics
from kohort.conditions.expectations import (
    CommitExpectation,
    find_missing,
    find_missing_membership,
    find_missing_progress,
    missing_commit,
    missing_rebalance,
    timeout_text,
)
from kohort.conditions.group_snapshot import (
    STABLE,
    GroupSnapshot,
    MemberSnapshot,
    PartitionProgress,
    absent_group,
    find_revoking,
)
from kohort.conditions.wait_requests import (
    WaitRequest,
    read_commit_wait,
    read_rebalance_wait,
    read_wait,
)
from kohort.events.internal_topics import EVENTS_PARTITION, KOHORT_EVENTS
from kohort.events.parser import BadEvent, EventReader
from kohort.events.schema import EventMember
from kohort.testing.group_waits import Body, GroupWaits
from kohort.testing.waits import AcceptedCommit, GroupCommit, WaitTimeout
from kohort.text.event_lines import event_line
from kohort.types import (
    Generation,
    GroupId,
    MemberId,
    Millis,
    Offset,
    Topic,
    TopicPartition,
)

T = TypeVar("T")

_INTERVAL_S: Final = 0.1

_EVENTS_SHOWN: Final = 20


class PolledWaits(GroupWaits):
    """The waits of a cluster without control operations."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def _wait_group(self, body: Body) -> GroupSnapshot:
        asked = read_wait(body)
        found = _poll(lambda: self._find_expected(asked), asked.timeout_s)
        if found is None:
            last = self._snapshot(asked.group_id, asked.expected.topics)
            self._time_out(last, find_missing(last, asked.expected), asked.timeout_s)
        return found

    def _find_expected(self, asked: WaitRequest) -> GroupSnapshot | None:
        described = self._describe(asked.group_id)
        if find_missing_membership(_snapshot_of(asked.group_id, described), asked.expected):
            return None
        group = self._snapshot(asked.group_id, asked.expected.topics)
        return None if find_missing_progress(group, asked.expected) else group

    def _wait_rebalance(self, body: Body) -> ObservedRebalance:
        """Only a Kohort node reports more than the generation."""
        asked = read_rebalance_wait(body)
        group_id = asked.group_id
        since = self._find_generation(group_id) if asked.after is None else asked.after
        found = _poll(lambda: self._find_rebalance(group_id, since), asked.timeout_s)
        if found is None:
            last = self._snapshot(group_id, ())
            self._time_out(last, missing_rebalance(last, since), asked.timeout_s)
        return found

    def _wait_commit(self, body: Body) -> GroupCommit:
        asked = read_commit_wait(body)
        group_id, expected = asked.group_id, asked.expected
        before = self._committed(group_id)
        found = _poll(
            lambda: _find_commit(self._committed(group_id), expected, before) or None,
            asked.timeout_s,
        )
        if found is None:
            last = self._snapshot(group_id, ())
            self._time_out(
                last, missing_commit(group_id, last.committed(), expected), asked.timeout_s
            )
        return GroupCommit(group_id=group_id, commits=tuple(found))

    # The cluster

    def _describe(self, group_id: GroupId) -> ConsumerGroupDescription | None:
        return describe_groups(self._cluster, [group_id]).get(group_id)

    def _committed(self, group_id: GroupId) -> dict[TopicPartition, CommittedOffset]:
        return offsets.list_group_offsets(self._cluster, [group_id])[group_id]

    def _snapshot(self, group_id: GroupId, only: Iterable[Topic]) -> GroupSnapshot:
        """Commits are read before the log ends, so that lag is never too small."""
        described = self._describe(group_id)
        committed = self._committed(group_id)
        names = set(only) or {each.topic for each in committed}
        if not only and described is not None:
            names.update(topic for member in described.members for topic in member.topics)
        partitions = [
            TopicPartition(name, each.partition)
            for name, topic in describe_topics(self._cluster, names).items()
            for each in topic.partitions
        ]
        starts = offsets.list_offsets(self._cluster, partitions, "earliest")
        ends = offsets.list_offsets(self._cluster, partitions, "latest")
        progress = tuple(
            PartitionProgress(
                partition=each,
                start=starts[each],
                end=ends[each],
                committed=committed[each].offset if each in committed else None,
            )
            for each in sorted(partitions)
            if each in starts and each in ends
        )
        return replace(_snapshot_of(group_id, described), partitions=progress)

    def _find_generation(self, group_id: GroupId) -> Generation:
        found = rebalance_history.find_current_generation(self._cluster, group_id)
        return Generation(0) if found is None else found.generation

    def _find_rebalance(self, group_id: GroupId, after: Generation) -> ObservedRebalance | None:
        current = rebalance_history.find_current_generation(self._cluster, group_id)
        if current is None or current.generation <= after:
            return None
        try:
            recorded = rebalance_history.list_rebalances(self._cluster, group_id, Millis(0))
        except NoHistory:
            return _inferred_rebalance(current)
        completed = [each for each in recorded if each.ending in ("stable", "empty")]
        return next((each for each in completed if each.generation > after), None)

    def _time_out(self, group: GroupSnapshot, missing: list[str], timeout_s: float) -> NoReturn:
        lines = self._recent_events(group.group_id)
        raise WaitTimeout(timeout_text(group.group_id, missing, timeout_s, lines), missing, group)

    def _recent_events(self, group_id: GroupId) -> list[str]:
        """As lines; only a Kohort node has events."""
        cluster = self._cluster
        if KOHORT_EVENTS not in describe_topics(cluster, [KOHORT_EVENTS]):
            return []
        end = offsets.list_offsets(cluster, [EVENTS_PARTITION], "latest")[EVENTS_PARTITION]
        reader, lines = EventReader(), deque[str](maxlen=_EVENTS_SHOWN)
        for record in next(read_backwards(cluster, EVENTS_PARTITION, Offset(0), end), ()):
            if record.key == group_id.encode():
                try:
                    event = reader.read(record.value)
                except BadEvent:
                    continue  # another cluster may have a topic of this name
                if event is not None:
                    lines.append(event_line(event))
        return list(lines)


def _poll(find: Callable[[], T | None], timeout_s: float) -> T | None:
    """The first result that is not None; None after the timeout."""
    end = time.monotonic() + timeout_s
    while (found := find()) is None:
        left_s = end - time.monotonic()
        if left_s <= 0:
            return None
        time.sleep(min(_INTERVAL_S, left_s))
    return found


# Kafka's responses as values


def _snapshot_of(group_id: GroupId, group: ConsumerGroupDescription | None) -> GroupSnapshot:
    """Without `partitions`."""
    if group is None:
        return absent_group(group_id)
    # A classic group that rebalances may still report the assignment of the last generation.
    is_current = group.epoch is not None or group.state == STABLE
    owned = ((each.member_id, each.owned, each.partitions) for each in group.members)
    return GroupSnapshot(
        group_id=group_id,
        state=group.state,
        state_age_ms=None,
        generation=None if group.epoch is None else Generation(group.epoch),
        protocol_type=group.protocol_type,
        protocol=group.assignor or None,
        members=tuple(_member_of(each, is_current=is_current) for each in group.members),
        revoking=find_revoking(group.assignor, owned) if is_current else (),
    )


def _member_of(member: GroupMemberDescription, *, is_current: bool) -> MemberSnapshot:
    return MemberSnapshot(
        party=EventMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.host,
        ),
        assignment=member.partitions if is_current else (),
    )


def _inferred_rebalance(current: rebalance_history.CurrentGeneration) -> ObservedRebalance:
    return ObservedRebalance(
        key=str(current.formed_ms),
        is_exact=False,
        generation_before=None,
        generation=current.generation,
        started_ms=None,
        joined_ms=None,
        ended_ms=current.formed_ms,
        trigger=None,
        initiator=None,
        client_reason=None,
        state_before=None,
        join_ended_by=None,
        ending=None,
        protocol=current.protocol,
        leader=None if current.leader is None else MemberId(current.leader),
        waited_for=(),
        participants=(),
        removals=(),
    )


def _find_commit(
    committed: dict[TopicPartition, CommittedOffset],
    expected: CommitExpectation,
    before: dict[TopicPartition, CommittedOffset],
) -> list[AcceptedCommit]:
    return [
        AcceptedCommit(
            partition=partition, offset=commit.offset, metadata=commit.metadata, committed_ms=None
        )
        for partition, commit in sorted(committed.items())
        if expected.covers(partition)
        and (
            before.get(partition) != commit
            if expected.offset is None
            else commit.offset >= expected.offset
        )
    ]
