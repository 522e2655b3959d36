"""From an assigned partition to a place to read from: committed, reset, or checked with a leader.

No socket, no thread, no clock. What the group has committed is asked of its coordinator, where a
partition begins or ends of its leader; and whether a new leader has what was read from the old one,
of the new one (KIP-320).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from kohort.client import diary
from kohort.client.backoff import Backoff
from kohort.client.errors import BrokerRefused, ConsumerError, OffsetNotValid
from kohort.client.fetching.lookups import BEGINNING, END, MOVED, Lookup, Lookups
from kohort.client.fetching.parcel import Place
from kohort.client.fetching.subscription import PartitionState, Stage, Subscription
from kohort.client.member.effects import Broker
from kohort.client.member.events import Loss, Position
from kohort.client.network.cluster import Cluster
from kohort.client.network.post import Post
from kohort.client.network.requests import Answer
from kohort.client.options import OffsetReset, Options
from kohort.client.refusals import named
from kohort.client.topic_partition import TopicPartition
from kohort.types import BrokerId, ErrorCode, Millis, Offset, Topic
from kohort.wire.api.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_CONSUMER: Final = BrokerId(-1)

_RESETS: Final = {OffsetReset.EARLIEST: BEGINNING, OffsetReset.LATEST: END}

OnCommitted: TypeAlias = Callable[
    [Mapping[TopicPartition, Position], ConsumerError | None, Millis], None
]
AskCommitted: TypeAlias = Callable[[frozenset[TopicPartition], OnCommitted, Millis], object]
"""Asks the coordinator; partitions without a commit are missing in what comes back."""

_Asked: TypeAlias = list[tuple[PartitionState, int]]
"""States with the era they were asked in: an answer to another era is of no use."""


class Positions:
    def __init__(
        self,
        *,
        options: Options,
        subscription: Subscription,
        cluster: Cluster,
        lookups: Lookups,
        post: Post,
        backoff: Backoff,
        ask_committed: AskCommitted | None,
    ) -> None:
        self._options = options
        self._subscription = subscription
        self._cluster = cluster
        self._lookups = lookups
        self._post = post
        self._backoff = backoff
        self._ask_committed = ask_committed
        self._resets: list[tuple[Lookup, _Asked]] = []

    def due(self) -> Millis | None:
        waiting = (
            state.retry_at
            for state in self._subscription.states.values()
            if state.stage not in (Stage.READY, Stage.FAULTY) and not state.is_asked
        )
        return min(waiting, default=None)

    def advance(self, now: Millis) -> None:
        self._advance_committed(now)
        self._advance_resets(now)
        self._advance_validations(now)

    def reset(self, state: PartitionState, why: str) -> None:
        """There is no place to go on from: begin where the program has said."""
        topic, number = state.partition
        to = _RESETS.get(self._options.auto_offset_reset)
        if to is None:
            fault = OffsetNotValid(
                f"{topic}-{number}: {why}, and auto.offset.reset is none; seek to where to go on"
            )
            self._subscription.complain(state, fault)
        else:
            diary.note("offset-reset", topic=topic, partition=number, reason=why)
            self._subscription.reset(state, to)

    def _ready(self, stage: Stage, now: Millis) -> _Asked:
        ready = [
            (state, state.era)
            for state in self._subscription.in_stage(stage)
            if not state.is_asked and now >= state.retry_at
        ]
        for state, _ in ready:
            state.is_asked = True
        return ready

    def _still(self, asked: _Asked) -> list[PartitionState]:
        """Those for which an answer is still of use; they wait for none now."""
        states = [state for state, era in asked if self._subscription.is_current(state, era)]
        for state in states:
            state.is_asked = False
        return states

    def _postpone(self, states: Iterable[PartitionState], now: Millis) -> None:
        for state in states:
            state.retry_at = self._backoff.after(now, 0)

    # What the group has committed

    def _advance_committed(self, now: Millis) -> None:
        asked = self._ready(Stage.COMMITTED, now)
        if not asked:
            return
        if self._ask_committed is None:
            for state in self._still(asked):
                self.reset(state, "nothing is committed without a group.id")
            return

        def then(
            found: Mapping[TopicPartition, Position], error: ConsumerError | None, now: Millis
        ) -> None:
            states = self._still(asked)
            if error is None:
                for state in states:
                    self._take_committed(state, found.get(state.partition))
            elif error.is_retriable:
                self._postpone(states, now)
            else:
                for state in states:
                    self._subscription.complain(state, error)

        self._ask_committed(frozenset(state.partition for state, _ in asked), then, now)

    def _take_committed(self, state: PartitionState, found: Position | None) -> None:
        if found is None:
            self.reset(state, "the group has committed nothing")
            return
        place = Place(offset=found.offset, leader_epoch=found.leader_epoch)
        self._subscription.stand(state, place)
        state.kept = found.offset

    # Where a partition begins and ends

    def _advance_resets(self, now: Millis) -> None:
        self._forget_resets()
        asked = self._ready(Stage.RESET, now)
        if not asked:
            return

        def then(lookup: Lookup, now: Millis) -> None:
            for state, era in asked:
                if self._subscription.is_current(state, era):
                    self._take_reset(state, lookup, now)

        lookup = self._lookups.begin({state.partition: _moment(state) for state, _ in asked}, then)
        self._resets.append((lookup, asked))

    def _take_reset(self, state: PartitionState, lookup: Lookup, now: Millis) -> None:
        if lookup.error is not None:
            self._subscription.complain(state, lookup.error)
        elif state.partition in lookup.found:
            found = lookup.found[state.partition]
            if found is None:  # a beginning and an end there always are, but who knows
                state.is_asked = False
                self._postpone((state,), now)
            else:
                place = Place(offset=found.offset, leader_epoch=found.leader_epoch)
                self._subscription.stand(state, place)

    def _forget_resets(self) -> None:
        """Those of partitions that have gone, or have been sent elsewhere, need no answer."""
        for lookup, asked in list(self._resets):
            for state, era in asked:
                if not self._subscription.is_current(state, era):
                    lookup.wanted.pop(state.partition, None)
            if not lookup.missing:
                self._lookups.withdraw(lookup)
                self._resets.remove((lookup, asked))

    # Whether a new leader has what was read

    def needs_validation(self, state: PartitionState) -> bool:
        """Whether the leader is another than the one that the place was last checked with."""
        epoch = self._cluster.leader_epoch(state.partition)
        if epoch <= state.leader_epoch:
            return False
        place = state.fetch_from
        if place is None or place.leader_epoch in (-1, epoch):
            state.leader_epoch = epoch
            return False
        return True

    def _advance_validations(self, now: Millis) -> None:
        by_leader: dict[BrokerId, _Asked] = defaultdict(list)
        for state, era in self._ready(Stage.VALIDATION, now):
            leader = self._cluster.find_leader(state.partition)
            if leader is None:
                self._cluster.doubt()
                self._postpone(self._still([(state, era)]), now)
            else:
                by_leader[leader.node_id].append((state, era))
        for broker_id, asked in by_leader.items():
            self._validate(self._cluster.brokers[broker_id], asked)

    def _validate(self, leader: Broker, asked: _Asked) -> None:
        by_topic: dict[Topic, list[OffsetForLeaderPartition]] = defaultdict(list)
        for state, _ in asked:
            assert state.place is not None
            by_topic[state.partition.topic].append(
                OffsetForLeaderPartition(
                    partition=state.partition.partition,
                    current_leader_epoch=self._cluster.leader_epoch(state.partition),
                    leader_epoch=state.place.leader_epoch,
                )
            )

        def then(answer: Answer, now: Millis) -> None:
            states = {state.partition: state for state in self._still(asked)}
            if isinstance(answer, Loss):
                self._cluster.doubt()
                self._postpone(states.values(), now)
                return
            assert isinstance(answer, OffsetForLeaderEpochResponse)
            for topic in answer.topics:
                for each in topic.partitions:
                    state = states.get(TopicPartition(topic.topic, each.partition))
                    if state is not None:
                        self._take_validation(state, each, now)

        body = OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER,
            topics=tuple(
                OffsetForLeaderTopic(topic=topic, partitions=tuple(partitions))
                for topic, partitions in by_topic.items()
            ),
        )
        self._post.send(body, leader, self._options.request_timeout_ms, then)

    def _take_validation(self, state: PartitionState, told: EpochEndOffset, now: Millis) -> None:
        assert state.place is not None
        if told.error_code in MOVED:
            self._cluster.doubt()
            self._postpone((state,), now)
        elif told.error_code != ErrorCode.NONE:
            topic, number = state.partition
            what = f"{topic}-{number} could not be compared with its new leader"
            fault = BrokerRefused(named(told.error_code), what)
            self._subscription.complain(state, fault)
        elif told.leader_epoch < 0 or told.end_offset < 0:
            self.reset(state, "the leader knows nothing that old")
        elif told.end_offset < state.place.offset:
            self._take_truncation(state, told)
        else:
            state.stage = Stage.READY
            state.leader_epoch = self._cluster.leader_epoch(state.partition)

    def _take_truncation(self, state: PartitionState, told: EpochEndOffset) -> None:
        """What was read is not what the new leader has: go back to where they agree."""
        assert state.place is not None
        if self._options.auto_offset_reset is OffsetReset.NONE:
            why = f"the new leader's log ends at {told.end_offset}, before {state.place.offset}"
            self.reset(state, why)
        else:
            place = Place(offset=Offset(told.end_offset), leader_epoch=told.leader_epoch)
            self._subscription.stand(state, place)


def _moment(state: PartitionState) -> Millis:
    assert state.reset_to is not None
    return state.reset_to
