"""Passes the observations of actors and of the wire tap to the checkers."""

from collections.abc import Sequence
from typing import Any

from kohort.coordinator.events import GroupEvent
from kohort.sim.checkers.assignment_log import AssignmentLog
from kohort.sim.checkers.commit_durability import CommitDurability, SeenCommit
from kohort.sim.checkers.deliveries import Deliveries, Worker
from kohort.sim.checkers.evictions import Evictions
from kohort.sim.checkers.exclusive_ownership import ClaimedPartitions, ExclusiveOwnership
from kohort.sim.checkers.generation_fencing import GenerationFencing
from kohort.sim.checkers.record_durability import RecordDurability
from kohort.sim.checkers.response_order import ResponseOrder
from kohort.sim.host import ExitKind
from kohort.sim.network import Link
from kohort.sim.node import NodeProcess
from kohort.sim.plan import SimulationPlan
from kohort.sim.wire_tap import (
    HEARTBEAT,
    JOIN_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
    Exchange,
)
from kohort.types import ErrorCode, TopicPartition
from kohort.virtual_time.scheduler import Scheduler

__all__ = ["CheckerHub", "ClaimedPartitions", "Worker"]


class CheckerHub:
    def __init__(self, scheduler: Scheduler, plan: SimulationPlan) -> None:
        self._scheduler = scheduler
        self._is_fsync = plan.durability == "fsync"
        idempotent = tuple(f"{each.name}:" for each in plan.producers if each.is_idempotent)
        self._responses = ResponseOrder()
        self._ownership = ExclusiveOwnership()
        self._generations = GenerationFencing()
        self._assignment_log = AssignmentLog()
        self._evictions = Evictions(scheduler)
        self.records = RecordDurability(
            self._records_lost, lambda text: text.startswith(idempotent)
        )
        self.commits = CommitDurability(self._moved_back)
        self.deliveries = Deliveries(self.records.acknowledged_records, is_orderly=plan.is_orderly)

    # Observations of clients

    def request_sent(self, link: Link, correlation_id: int) -> None:
        self._responses.request_sent(link, correlation_id, self._scheduler.now_ms)

    def response_received(self, link: Link, correlation_id: int) -> None:
        self._responses.response_received(link, correlation_id)

    def connection_closed(self, link: Link) -> None:
        self._responses.connection_closed(link)

    # Observations of members

    def claims(self, process: str, claim: ClaimedPartitions) -> None:
        self._ownership.claims(process, claim)

    def ended(self, process: str) -> None:
        self._ownership.ended(process)

    # Observations of producers

    def acknowledged(
        self,
        partition: TopicPartition,
        base_offset: int,
        values: Sequence[str],
        asked_at: int,
        acks: int,
    ) -> None:
        is_synced = self._is_fsync and acks == -1
        self.records.acknowledged(partition, base_offset, values, asked_at, is_synced=is_synced)

    # Observations of the wire tap

    def request(self, exchange: Exchange) -> None:
        request = exchange.request
        exchange.arrived = self._evictions.running
        if exchange.api_key in (OFFSET_COMMIT, HEARTBEAT, SYNC_GROUP):
            self._generations.request_arrived(exchange, request.group_id, request.group_instance_id)
            if exchange.api_key == OFFSET_COMMIT:
                self._commit_arrived(exchange)
        elif exchange.api_key == OFFSET_FETCH:
            exchange.snapshot = {key: self.commits.find(*key) for key in _partitions_asked(request)}

    def response(self, exchange: Exchange, response: Any) -> None:
        request = exchange.request
        if exchange.api_key == OFFSET_COMMIT:
            self._commit_answered(exchange, response)
        elif exchange.api_key == OFFSET_FETCH:
            self._offsets_shown(exchange, response)
        elif response.error_code:
            is_rebalancing = response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
            if exchange.api_key == HEARTBEAT and is_rebalancing:
                self._evictions.heard(request.group_id, request.member_id, exchange.arrived)
        elif exchange.api_key == JOIN_GROUP:
            self._generations.joined(request, response)
            self._evictions.joined(request, response)
        elif exchange.api_key in (HEARTBEAT, SYNC_GROUP):
            if exchange.api_key == HEARTBEAT:
                self._evictions.heard(request.group_id, request.member_id, exchange.arrived)
            what = "a heartbeat" if exchange.api_key == HEARTBEAT else "a sync"
            self._generations.accepted(
                exchange, request.group_id, request.generation_id, request.member_id, what
            )
            if exchange.api_key == SYNC_GROUP:
                self._generations.synced(request)
                self._assignment_log.reported(
                    request.group_id,
                    request.member_id,
                    request.generation_id,
                    response.assignment,
                )

    def _commit_arrived(self, exchange: Exchange) -> None:
        request = exchange.request
        writer = (request.generation_id_or_member_epoch, request.member_id)
        for topic in request.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                kept = SeenCommit(
                    order=exchange.order,
                    offset=part.committed_offset,
                    writer=writer,
                    assigned_in=self._assignment_log.find(
                        request.group_id, request.member_id, partition
                    ),
                    is_delayed=exchange.is_delayed,
                )
                self.commits.arrived(request.group_id, partition, kept)

    def _commit_answered(self, exchange: Exchange, response: Any) -> None:
        request = exchange.request
        group, member_id = request.group_id, request.member_id
        generation = request.generation_id_or_member_epoch
        offsets = {
            (topic.name, part.partition_index): part.committed_offset
            for topic in request.topics
            for part in topic.partitions
        }
        for topic in response.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                if part.error_code:
                    self.commits.refused(group, partition, exchange.order)
                    continue
                self._generations.accepted(exchange, group, generation, member_id, "a commit")
                self._evictions.heard(group, member_id, exchange.arrived)
                self.commits.accepted(group, partition, exchange.order)
                self.deliveries.committed(
                    group, partition, offsets[partition], generation, member_id
                )

    def _offsets_shown(self, exchange: Exchange, response: Any) -> None:
        for group in response.groups:
            for topic in () if group.error_code else group.topics:
                for part in topic.partitions:
                    key = (group.group_id, TopicPartition(topic.name, part.partition_index))
                    before = exchange.snapshot.get(key, -1)
                    if not part.error_code:
                        self.commits.fetched(*key, part.committed_offset, before)

    # Node lifecycle

    def node_started(self, _process: NodeProcess, /) -> None:
        self._generations.node_loaded()
        self._evictions.node_started()

    def node_resumed(self, suspended: int, /) -> None:
        self._evictions.node_resumed(suspended)

    def groups_changed(self, events: list[GroupEvent], /) -> None:
        self._evictions.groups_changed(events)

    def node_ended(self, _process: NodeProcess, exit_kind: ExitKind, /) -> None:
        self._generations.node_ended()
        if exit_kind in (ExitKind.POWER, ExitKind.FAILED):
            self.records.power_lost(self._scheduler.now, is_all_lost=not self._is_fsync)
            if not self._is_fsync:
                self._generations.forgotten()
                self._assignment_log.forgotten()
                self._ownership.forgotten()
                self.commits.forgotten()
                self.deliveries.forgotten()

    def _records_lost(self, partition: TopicPartition) -> None:
        self.commits.records_lost(partition)
        self.deliveries.records_lost(partition)

    def _moved_back(self, group: str, partition: TopicPartition, offset: int) -> None:
        self.deliveries.moved_back(group, partition, offset)

    def check_responses(self, timeout_ms: int) -> None:
        self._responses.check_end(self._scheduler.now_ms, timeout_ms)


def _partitions_asked(request: Any) -> list[tuple[str, TopicPartition]]:
    return [
        (group.group_id, TopicPartition(topic.name, index))
        for group in request.groups
        for topic in group.topics or ()
        for index in topic.partition_indexes
    ]
