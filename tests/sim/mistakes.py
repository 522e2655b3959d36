"""The mistakes themselves: each puts one wrong function in the place of a right one."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kohort.client.member import committing, handover, joining, leading, membership, rebalancing
from kohort.client.member.effects import Change
from kohort.client.member.membership import MemberState
from kohort.coordinator import group, machine, offsets
from kohort.coordinator import membership as coordinator_membership
from kohort.coordinator.group import Roster
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.outcome import Outcome, TimerKind
from kohort.log import recovery
from kohort.log.compaction import Compaction
from kohort.log.partition import PartitionLog
from kohort.log.producers import Producers
from kohort.log.unsynced import SyncQueue
from kohort.node.broker import Broker
from kohort.node.offsets_topic import OffsetsTopic
from kohort.node.request import Request
from kohort.node.runtime import NotKept
from kohort.node.timers import Timers
from kohort.types import Generation

Patch = Callable[..., None]
"""As pytest's: an owner, a name, and what takes its place."""


# Coordinator


def accept_old_commits(patch: Patch) -> None:
    right = offsets.commit

    def commit(turn: Any, of: Any, command: Any) -> None:
        if of is not None and command.generation >= 0:
            command = replace(command, generation=of.roster.generation)
        right(turn, of, command)

    patch(offsets, "commit", commit)


def accept_old_heartbeats(patch: Patch) -> None:
    right = coordinator_membership.heartbeat

    def heartbeat(turn: Any, of: Any, command: Any) -> None:
        if of is not None:
            command = replace(command, generation=of.roster.generation)
        right(turn, of, command)

    patch(coordinator_membership, "heartbeat", heartbeat)


def let_fenced_commit(patch: Patch) -> None:
    right = offsets.commit

    def commit(turn: Any, of: Any, command: Any) -> None:
        holder = of.roster.instances.get(command.instance_id) if of is not None else None
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
    right = group.roster_from

    def roster_from(formed: Any) -> Roster:
        roster = right(formed)
        if roster.generation > 0:
            roster.generation = Generation(roster.generation - 1)
        return roster

    patch(machine, "roster_from", roster_from)


# Node


def skip_append(patch: Patch) -> None:
    patch(OffsetsTopic, "keep", lambda _self, records, _now: records)


def take_failure_for_success(patch: Patch) -> None:
    right = OffsetsTopic.keep

    def keep(self: OffsetsTopic, records: Any, now: Any) -> Any:
        try:
            return right(self, records, now)
        except NotKept:
            return records

    patch(OffsetsTopic, "keep", keep)


def release_before_sync(patch: Patch) -> None:
    patch(OffsetsTopic, "is_durable", property(lambda _: True))


def acknowledge_before_sync(patch: Patch) -> None:
    patch(Broker, "when_durable", lambda _self, then: then())


def never_cancel(patch: Patch) -> None:
    patch(Timers, "cancel", lambda _self, _key: None)


def answer_twice(patch: Patch) -> None:
    right = Request._finish  # noqa: SLF001  # a mistake is made where it can be made

    def finish(self: Request, payload: bytes) -> None:
        is_sync = self.header.request_api_key == 14
        right(self, payload * 2 if is_sync else payload)

    patch(Request, "_finish", finish)


def survive_failed_sync(patch: Patch) -> None:
    right = Broker.__init__

    def begin(self: Broker, settings: Any, topics: Any, syncer: Any, **options: Any) -> None:
        if syncer is not None:
            patch(syncer, "_on_failure", lambda _: None)
        right(self, settings, topics, syncer, **options)

    patch(Broker, "__init__", begin)


# Log


def believe_torn_tails(patch: Patch) -> None:
    patch(recovery, "verify_crc", lambda *_: None)


def overtrust_indexes(patch: Patch) -> None:
    patch(recovery, "bisect_left", bisect_right)


def index_torn_segments(patch: Patch) -> None:
    right = recovery._Loader.open_segments  # noqa: SLF001  # as above

    def open_segments(self: Any, index_interval_bytes: int) -> Any:
        segments = right(self, index_interval_bytes)
        self.complete_indexes(segments)
        return segments

    patch(recovery._Loader, "open_segments", open_segments)  # noqa: SLF001  # as above


def forget_new_names(patch: Patch) -> None:
    right = SyncQueue.take

    def take(self: Any, end_offset: Any) -> Any:
        self._has_new_names = False
        return right(self, end_offset)

    patch(SyncQueue, "take", take)


def promise_unsynced(patch: Patch) -> None:
    right = PartitionLog.checkpoint

    def checkpoint(self: PartitionLog) -> None:
        right(self)
        points = self._checkpoints.recovery_points  # as above
        points.put(self.topic, self.partition, self.end_offset)

    patch(PartitionLog, "checkpoint", checkpoint)


def write_twice(patch: Patch) -> None:
    patch(Producers, "find_duplicate", lambda *_: None)
    patch(Producers, "check", lambda *_: None)


def compact_too_much(patch: Patch) -> None:
    right = Compaction._keeps  # noqa: SLF001  # as above

    def keeps(self: Compaction, record: Any, header: Any) -> bool:
        return right(self, record, header) and bool(record.offset % 7)

    patch(Compaction, "_keeps", keeps)


# Member


def keep_after_reset(patch: Patch) -> None:
    right = rebalancing.Rebalancing._leaving  # noqa: SLF001  # as above

    def leaving(self: Any) -> Any:
        partitions, is_lost = right(self)
        return (frozenset(), False) if is_lost else (partitions, is_lost)

    patch(rebalancing.Rebalancing, "_leaving", leaving)


def commit_too_far(patch: Patch) -> None:
    right = committing._topics  # noqa: SLF001  # as above

    def topics(positions: Any) -> Any:
        return right({at: replace(each, offset=each.offset + 1) for at, each in positions.items()})

    patch(committing, "_topics", topics)


def give_up_uncommitted(patch: Patch) -> None:
    patch(handover.Handover, "commit", lambda *_: True)


def do_not_come_back(patch: Patch) -> None:
    right = rebalancing.Rebalancing.hear_back

    def hear_back(self: Any, call: Any, now: Any) -> None:
        right(self, call, now)
        if call.change is Change.REVOKED and self._membership.state is MemberState.ASSIGNING:
            self._membership.rejoin = None

    patch(rebalancing.Rebalancing, "hear_back", hear_back)


def deal_short(patch: Patch) -> None:
    right = leading.deal

    def deal(assignor: Any, protocol: Any, partitions: Any, subscribers: Any) -> Any:
        known = {topic: max(1, count - 1) for topic, count in partitions.items()}
        return right(assignor, protocol, known, subscribers)

    patch(joining, "deal", deal)


def deal_twice(patch: Patch) -> None:
    right = leading.write_assignment

    def deal(assignor: Any, _protocol: Any, partitions: Any, subscribers: Any) -> Any:
        dealt = assignor.assign(partitions, subscribers)
        whole = {each.member_id: list(dealt.get(each.member_id, ())) for each in subscribers}
        fullest = max(whole, key=lambda member_id: len(whole[member_id]))
        for member_id, given in whole.items():
            if member_id != fullest and whole[fullest]:
                given.append(whole[fullest][0])
                break
        return {member_id: right(given) for member_id, given in whole.items()}

    patch(joining, "deal", deal)


def lose_nothing(patch: Patch) -> None:
    right = membership.Membership.reset

    def reset(self: Any, reason: str, now: Any, *, keeps_id: bool = False) -> None:
        standing = self.standing
        right(self, reason, now, keeps_id=keeps_id)
        self.standing = replace(standing)

    patch(membership.Membership, "reset", reset)


def hold_while_giving_up(patch: Patch) -> None:
    right = rebalancing.Rebalancing.hear_back

    def hear_back(self: Any, call: Any, now: Any) -> None:
        held = self._membership.held
        right(self, call, now)
        if call.change is Change.REVOKED:
            self._membership.held = held

    patch(rebalancing.Rebalancing, "hear_back", hear_back)
