"""The mutations: each replaces one function by a wrong one."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from kohort.client.fetch.completed_fetch import CompletedFetch
from kohort.client.fetch.position_resolver import PositionResolver
from kohort.client.fetch.subscription_state import SubscriptionState, TopicPartitionState
from kohort.client.member import (
    join,
    leader_assignment,
    membership,
    offset_commit,
    rebalance,
    revocation,
)
from kohort.client.member.effects import AssignmentChange
from kohort.client.member.membership import MemberState
from kohort.coordinator import coordinator, offsets
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.groups.classic import group
from kohort.coordinator.groups.classic import heartbeat as classic_heartbeat
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.outcome import Outcome, TimerKind
from kohort.log import recovery, segment_lookup, segment_scan
from kohort.log.compaction import Compaction
from kohort.log.damage import BatchInfo
from kohort.log.partition import PartitionLog
from kohort.log.producer_state import ProducerStateManager
from kohort.log.segment import Segment
from kohort.log.sync_queue import SyncQueue
from kohort.node import deadline_clock, request
from kohort.node.broker import Broker
from kohort.node.connection import Connection
from kohort.node.fetch_purgatory import FetchPurgatory
from kohort.node.group_record_writer import GroupRecordWriter
from kohort.node.loop import NodeLoop
from kohort.node.request import Request
from kohort.node.runtime import Runtime
from kohort.node.timers import Timers
from kohort.sim.node import NodeProcess
from kohort.types import DeadlineMillis, ErrorCode, Generation
from kohort.wire.api.k14_sync_group import SyncGroupResponse
from kohort.wire.envelope import encode_response

_FETCH = 1

Patch = Callable[..., None]
"""Like monkeypatch.setattr: owner, name, replacement."""


# Coordinator


def accept_old_commits(patch: Patch) -> None:
    right = offsets.commit

    def commit(turn: Any, of: Any, command: Any) -> None:
        if of is not None and command.generation >= 0:
            command = replace(command, generation=of.generation)
        right(turn, of, command)

    patch(offsets, "commit", commit)


def accept_old_heartbeats(patch: Patch) -> None:
    right = classic_heartbeat.heartbeat

    def heartbeat(turn: Any, of: Any, command: Any) -> None:
        if of is not None:
            command = replace(command, generation=of.generation)
        right(turn, of, command)

    patch(classic_heartbeat, "heartbeat", heartbeat)


def let_fenced_commit(patch: Patch) -> None:
    right = offsets.commit

    def commit(turn: Any, of: Any, command: Any) -> None:
        holder = of.static_members.get(command.instance_id) if of is not None else None
        right(turn, of, command if holder is None else replace(command, member_id=holder))

    patch(offsets, "commit", commit)


def forget_sessions(patch: Patch) -> None:
    right = Coordinator.resume

    def resume(self: Coordinator, now: Any) -> Outcome:
        outcome = right(self, now)
        for key in [key for key in outcome.timers if key.kind is TimerKind.SESSION]:
            del outcome.timers[key]
        return outcome

    patch(Coordinator, "resume", resume)


def lose_generation(patch: Patch) -> None:
    right = group.restore

    def restore(loaded: ClassicGroup) -> ClassicGroup:
        restored = right(loaded)
        if restored.generation > 0:
            restored.generation = Generation(restored.generation - 1)
        return restored

    patch(coordinator, "restore", restore)


# Node


def follow_wall_clock(patch: Patch) -> None:
    right = NodeLoop._read_clock  # noqa: SLF001  # a mutation needs private names

    def read_clock(self: NodeLoop) -> None:
        right(self)
        now = self._deadline_clock.now = DeadlineMillis(self._now)
        self.broker.groups.timers.now = self.broker.purgatory.timers.now = now

    patch(NodeLoop, "_read_clock", read_clock)


def count_suspensions(patch: Patch) -> None:
    patch(deadline_clock, "_COUNTED_S_MAX", float("inf"))


def skip_append(patch: Patch) -> None:
    def append(_: GroupRecordWriter, outcomes: Any) -> Any:
        return [records for records, _ in outcomes]

    patch(GroupRecordWriter, "append", append)


def ignore_failed_append(patch: Patch) -> None:
    right = GroupRecordWriter.append

    def append(self: GroupRecordWriter, outcomes: Any) -> Any:
        results = right(self, outcomes)
        return [
            records if isinstance(result, ErrorCode) else result
            for result, (records, _) in zip(results, outcomes, strict=True)
        ]

    patch(GroupRecordWriter, "append", append)


def release_before_sync(patch: Patch) -> None:
    def send(self: Runtime[Any, Any, Any, Any, Any], replies: Any, **_: Any) -> None:
        self.deliver(replies)

    patch(Runtime, "_send", send)


def acknowledge_before_sync(patch: Patch) -> None:
    def answer(_: Broker, asked: Request, response: object) -> None:
        asked.answer(response)

    patch(Broker, "answer_after_sync", answer)


def never_cancel(patch: Patch) -> None:
    patch(Timers, "cancel", lambda _self, _key: None)


def answer_twice(patch: Patch) -> None:
    right = encode_response

    def encode_twice(response: object, version: int, correlation_id: int) -> bytes:
        payload = right(response, version, correlation_id)
        return payload * 2 if isinstance(response, SyncGroupResponse) else payload

    patch(request, "encode_response", encode_twice)


def survive_failed_sync(patch: Patch) -> None:
    def sync_failed(self: NodeProcess, _: BaseException) -> None:
        self.sync_finished(0.0)

    patch(NodeProcess, "sync_failed", sync_failed)


def reenter_decide(patch: Patch) -> None:
    right_appended, right_answered = FetchPurgatory.appended, Connection.answered
    # Disable the guard against such commands.
    patch(Runtime, "_is_storing", property(lambda _: False, lambda *_: None), raising=False)

    def appended(self: FetchPurgatory, *given: Any) -> None:
        right_appended(self, *given)
        self.complete(1 << 30)

    def answered(self: Connection, asked: Request) -> None:
        right_answered(self, asked)
        if asked.header.request_api_key == _FETCH:
            self.flush(0.0)
            self.handle_requests()

    patch(FetchPurgatory, "appended", appended)
    patch(Connection, "answered", answered)


# Log


def skip_crc_check(patch: Patch) -> None:
    patch(segment_scan, "verify_crc", lambda *_: None)


def trust_new_indexes(patch: Patch) -> None:
    """Lookups would notice the wrong entries and rebuild the index, so they trust it as well."""

    def walk_from_entry(segment: Segment, offset: int) -> Iterator[BatchInfo]:
        entry = segment.offsets.find_at_most(offset - segment.base_offset)
        return segment.walk(entry[1] if entry else 0)

    patch(recovery, "bisect_left", bisect_right)
    patch(segment_lookup, "_find_nearby", lambda *_: None)
    patch(segment_lookup, "check_time_index", lambda *_: None)
    patch(segment_lookup, "_walk_from_entry", walk_from_entry)


def index_torn_segments(patch: Patch) -> None:
    right = recovery._Loader.open_segments  # noqa: SLF001  # a mutation needs private names

    def open_segments(self: Any, index_interval_bytes: int) -> Any:
        segments = right(self, index_interval_bytes)
        self.complete_indexes(segments)
        return segments

    patch(recovery._Loader, "open_segments", open_segments)  # noqa: SLF001  # a mutation


def forget_new_names(patch: Patch) -> None:
    right = SyncQueue.take

    def take(self: Any, end_offset: Any) -> Any:
        self._has_new_files = False
        return right(self, end_offset)

    patch(SyncQueue, "take", take)


def checkpoint_unsynced(patch: Patch) -> None:
    right = PartitionLog.checkpoint

    def checkpoint(self: PartitionLog) -> None:
        right(self)
        points = self._checkpoints.recovery_points  # a mutation needs private names
        points.put(self.topic, self.partition, self.end_offset)

    patch(PartitionLog, "checkpoint", checkpoint)


def write_twice(patch: Patch) -> None:
    patch(ProducerStateManager, "find_duplicate", lambda *_: None)
    patch(ProducerStateManager, "check", lambda *_: None)


def compact_too_much(patch: Patch) -> None:
    right = Compaction._keeps  # noqa: SLF001  # a mutation needs private names

    def keeps(self: Compaction, record: Any, header: Any) -> bool:
        return right(self, record, header) and bool(record.offset % 7)

    patch(Compaction, "_keeps", keeps)


# Member


def keep_after_reset(patch: Patch) -> None:
    right = rebalance.Rebalancer._to_revoke  # noqa: SLF001  # a mutation needs private names

    def to_revoke(self: Any) -> Any:
        partitions, is_lost = right(self)
        return (frozenset(), False) if is_lost else (partitions, is_lost)

    patch(rebalance.Rebalancer, "_to_revoke", to_revoke)


def commit_too_far(patch: Patch) -> None:
    right = offset_commit._topics  # noqa: SLF001  # a mutation needs private names

    def topics(positions: Any) -> Any:
        return right({at: replace(each, offset=each.offset + 1) for at, each in positions.items()})

    patch(offset_commit, "_topics", topics)


def revoke_uncommitted(patch: Patch) -> None:
    patch(revocation.Revocation, "commit", lambda *_: True)


def do_not_rejoin(patch: Patch) -> None:
    right = rebalance.Rebalancer.on_listener_returned

    def on_listener_returned(self: Any, call: Any, now: Any) -> None:
        right(self, call, now)
        if (
            call.change is AssignmentChange.REVOKED
            and self._membership.state is MemberState.ASSIGNING
        ):
            self._membership.rejoin = None

    patch(rebalance.Rebalancer, "on_listener_returned", on_listener_returned)


def assign_too_few(patch: Patch) -> None:
    right = leader_assignment.compute_assignments

    def compute(assignor: Any, protocol: Any, partitions: Any, subscribers: Any) -> Any:
        known = {topic: max(1, count - 1) for topic, count in partitions.items()}
        return right(assignor, protocol, known, subscribers)

    patch(join, "compute_assignments", compute)


def assign_twice(patch: Patch) -> None:
    right = leader_assignment.write_assignment

    def compute(assignor: Any, _protocol: Any, partitions: Any, subscribers: Any) -> Any:
        assignment = assignor.assign(partitions, subscribers)
        whole = {each.member_id: list(assignment.get(each.member_id, ())) for each in subscribers}
        fullest = max(whole, key=lambda member_id: len(whole[member_id]))
        for member_id, given in whole.items():
            if member_id != fullest and whole[fullest]:
                given.append(whole[fullest][0])
                break
        return {member_id: right(given) for member_id, given in whole.items()}

    patch(join, "compute_assignments", compute)


def keep_generation(patch: Patch) -> None:
    right = membership.Membership.reset

    def reset(self: Any, reason: str, now: Any, *, keeps_id: bool = False) -> None:
        generation = self.generation
        right(self, reason, now, keeps_id=keeps_id)
        self.generation = replace(generation)

    patch(membership.Membership, "reset", reset)


def keep_revoked(patch: Patch) -> None:
    right = rebalance.Rebalancer.on_listener_returned

    def on_listener_returned(self: Any, call: Any, now: Any) -> None:
        owned = self._membership.owned
        right(self, call, now)
        if call.change is AssignmentChange.REVOKED:
            self._membership.owned = owned

    patch(rebalance.Rebalancer, "on_listener_returned", on_listener_returned)


# Consumer core


def ignore_committed(patch: Patch) -> None:
    right = PositionResolver._take_committed  # noqa: SLF001  # a mutation needs private names

    def take_committed(self: Any, state: Any, _found: Any) -> None:
        right(self, state, None)

    patch(PositionResolver, "_take_committed", take_committed)


def skip_after_fetch(patch: Patch) -> None:
    right = CompletedFetch._split_batches  # noqa: SLF001  # a mutation needs private names

    def split_batches(self: Any) -> None:
        right(self)
        self.end = replace(self.end, offset=self.end.offset + 1)

    patch(CompletedFetch, "_split_batches", split_batches)


def commit_unfinished(patch: Patch) -> None:
    right = SubscriptionState.processed_positions

    def processed_positions(self: SubscriptionState) -> Any:
        self.mark_all_processed()
        return right(self)

    patch(SubscriptionState, "processed_positions", processed_positions)


def read_while_revoking(patch: Patch) -> None:
    patch(TopicPartitionState, "is_fetchable", property(lambda self: not self.is_paused))
