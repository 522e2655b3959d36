"""All checkers, and who is told what.

Actors and the tap say here what they saw; which rule it may break is no concern of theirs.
"""

from collections.abc import Sequence
from typing import Any

from kohort.client.topic_partition import TopicPartition
from kohort.sim.checkers.answers import Answers
from kohort.sim.checkers.commits import Commits, Kept
from kohort.sim.checkers.dealings import Dealings
from kohort.sim.checkers.deliveries import Deliveries, Worker
from kohort.sim.checkers.generations import Generations
from kohort.sim.checkers.ownership import Belief, Ownership
from kohort.sim.checkers.records import Records
from kohort.sim.machine import Death
from kohort.sim.network import Link
from kohort.sim.node import Process
from kohort.sim.plan import Plan
from kohort.sim.tap import HEARTBEAT, JOIN_GROUP, OFFSET_COMMIT, OFFSET_FETCH, SYNC_GROUP, Exchange
from kohort.sim.timeline import Timeline

__all__ = ["Belief", "Court", "Worker"]


class Court:
    def __init__(self, timeline: Timeline, plan: Plan) -> None:
        self._timeline = timeline
        self._is_fsync = plan.durability == "fsync"
        idempotent = tuple(f"{each.name}:" for each in plan.producers if each.is_idempotent)
        self._answers = Answers()
        self._ownership = Ownership()
        self._generations = Generations()
        self._dealings = Dealings()
        self.records = Records(self._records_lost, lambda text: text.startswith(idempotent))
        self.commits = Commits(self._moved_back)
        self.deliveries = Deliveries(self.records.promised, is_orderly=plan.is_orderly)

    # What callers see

    def asked(self, link: Link, correlation_id: int) -> None:
        self._answers.asked(link, correlation_id, self._timeline.now_ms)

    def answered(self, link: Link, correlation_id: int) -> None:
        self._answers.answered(link, correlation_id)

    def unanswered(self, link: Link) -> None:
        self._answers.hung_up(link)

    # What members believe and do

    def believes(self, process: str, belief: Belief) -> None:
        self._ownership.believes(process, belief)

    def ended(self, process: str) -> None:
        self._ownership.ended(process)

    # What producers and readers are told

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

    # What the tap hears

    def question(self, exchange: Exchange) -> None:
        question = exchange.question
        if exchange.api_key in (OFFSET_COMMIT, HEARTBEAT, SYNC_GROUP):
            self._generations.heard(exchange, question.group_id, question.group_instance_id)
            if exchange.api_key == OFFSET_COMMIT:
                self._commit_arrived(exchange)
        elif exchange.api_key == OFFSET_FETCH:
            exchange.moment = {key: self.commits.find(*key) for key in _partitions_asked(question)}

    def answer(self, exchange: Exchange, answer: Any) -> None:
        question = exchange.question
        if exchange.api_key == OFFSET_COMMIT:
            self._commit_answered(exchange, answer)
        elif exchange.api_key == OFFSET_FETCH:
            self._offsets_shown(exchange, answer)
        elif answer.error_code:
            return
        elif exchange.api_key == JOIN_GROUP:
            self._generations.joined(question, answer)
        elif exchange.api_key in (HEARTBEAT, SYNC_GROUP):
            what = "a heartbeat" if exchange.api_key == HEARTBEAT else "a sync"
            self._generations.accepted(
                exchange, question.group_id, question.generation_id, question.member_id, what
            )
            if exchange.api_key == SYNC_GROUP:
                self._generations.synced(question)
                self._dealings.told(
                    question.group_id,
                    question.member_id,
                    question.generation_id,
                    answer.assignment,
                )

    def _commit_arrived(self, exchange: Exchange) -> None:
        question = exchange.question
        writer = (question.generation_id_or_member_epoch, question.member_id)
        for topic in question.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                kept = Kept(
                    order=exchange.order,
                    offset=part.committed_offset,
                    writer=writer,
                    dealt=self._dealings.find(question.group_id, question.member_id, partition),
                )
                self.commits.arrived(question.group_id, partition, kept)

    def _commit_answered(self, exchange: Exchange, answer: Any) -> None:
        question = exchange.question
        group, member_id = question.group_id, question.member_id
        generation = question.generation_id_or_member_epoch
        offsets = {
            (topic.name, part.partition_index): part.committed_offset
            for topic in question.topics
            for part in topic.partitions
        }
        for topic in answer.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                if part.error_code:
                    self.commits.refused(group, partition, exchange.order)
                    continue
                self._generations.accepted(exchange, group, generation, member_id, "a commit")
                self.commits.accepted(group, partition, exchange.order)
                self.deliveries.committed(
                    group, partition, offsets[partition], generation, member_id
                )

    def _offsets_shown(self, exchange: Exchange, answer: Any) -> None:
        for group in answer.groups:
            for topic in () if group.error_code else group.topics:
                for part in topic.partitions:
                    key = (group.group_id, TopicPartition(topic.name, part.partition_index))
                    before = exchange.moment.get(key, -1)
                    if not part.error_code:
                        self.commits.shown(*key, part.committed_offset, before)

    # What becomes of the node

    def node_started(self, _process: Process, /) -> None:
        self._generations.node_loaded()

    def node_ended(self, _process: Process, death: Death, /) -> None:
        self._generations.node_ended()
        if death in (Death.POWER, Death.FAILED):
            self.records.power_lost(self._timeline.now, is_all_lost=not self._is_fsync)
            if not self._is_fsync:
                self._generations.forgotten()
                self._dealings.forgotten()
                self._ownership.forgotten()
                self.commits.forgotten()
                self.deliveries.forgotten()

    def _records_lost(self, partition: TopicPartition) -> None:
        self.commits.disturbed(partition)
        self.deliveries.disturbed(partition)

    def _moved_back(self, group: str, partition: TopicPartition, offset: int) -> None:
        self.deliveries.moved_back(group, partition, offset)

    def check_answers(self, patience_ms: int) -> None:
        self._answers.check_end(self._timeline.now_ms, patience_ms)


def _partitions_asked(question: Any) -> list[tuple[str, TopicPartition]]:
    return [
        (group.group_id, TopicPartition(topic.name, index))
        for group in question.groups
        for topic in group.topics or ()
        for index in topic.partition_indexes
    ]
