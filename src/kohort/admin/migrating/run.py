"""A migration from its beginning to its end. It prints nothing; who watches is told how far it is.

Topics are made and copied, then what groups have committed is read, then the rest is copied: so
every committed offset is one that has been copied. B is compared, gets the settings of A, and last
the groups.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from kohort.admin import offsets as offset_admin
from kohort.admin import topics as topic_admin
from kohort.admin.cluster import Cluster
from kohort.admin.errors import AdminError, TopicExists
from kohort.admin.migrating import settings
from kohort.admin.migrating.copying import Copying, Producer
from kohort.admin.migrating.facts import ask_cluster, ask_settings
from kohort.admin.migrating.moving import Moving
from kohort.admin.migrating.planning import make_plan, partitions_of
from kohort.admin.migrating.reading import Reader
from kohort.admin.migrating.state import State, TopicState, open_state
from kohort.admin.migrating.verifying import verify
from kohort.admin.migrating.wish import (
    CopiedPartition,
    MigrationPlan,
    MigrationRefused,
    MigrationSummary,
    MigrationWish,
    TopicPlan,
    TopicStep,
    Watch,
)
from kohort.admin.migrating.writing import Writer
from kohort.client.topic_partition import TopicPartition
from kohort.types import ZERO_UUID, Topic, Uuid


def plan_migration(source: Cluster, target: Cluster, wish: MigrationWish) -> MigrationPlan:
    """What it would do. Nothing is changed, and no file is made."""
    known = wish.state if wish.state.exists() else None
    with (
        open_state(known) as state,
        Reader(source, wish.patience_ms, is_committed_only=True) as a,
        Reader(target, wish.patience_ms, is_committed_only=False) as b,
    ):
        return make_plan(a, b, wish, state)


def migrate(
    source: Cluster,
    target: Cluster,
    wish: MigrationWish,
    watch: Watch = lambda _: None,
) -> MigrationSummary:
    """Do it, or what is left of it. MigrationRefused where it cannot be begun.

    MigrationStopped and NotTheSame say that it did not come to its end; it may be run again.
    """
    began, is_new = time.monotonic(), not wish.state.exists()
    with (
        open_state(wish.state) as state,
        Reader(source, wish.patience_ms, is_committed_only=True) as a,
        Reader(target, wish.patience_ms, is_committed_only=False) as b,
        Writer(target, wish.patience_ms) as writer,
    ):
        plan = make_plan(a, b, wish, state)
        if plan.refusals:
            if is_new:
                wish.state.unlink()
            raise MigrationRefused(plan.refusals)
        run = _Run(
            source=source,
            target=target,
            wish=wish,
            watch=watch,
            state=state,
            a=a,
            b=b,
            writer=writer,
            plan=plan,
        )
        return run.run(began)


class _Run:
    def __init__(
        self,
        *,
        source: Cluster,
        target: Cluster,
        wish: MigrationWish,
        watch: Watch,
        state: State,
        a: Reader,
        b: Reader,
        writer: Writer,
        plan: MigrationPlan,
    ) -> None:
        self._source, self._target = source, target
        self._wish, self._watch, self._plan = wish, watch, plan
        self._state, self._a, self._b, self._writer = state, a, b, writer
        self._warnings = list(plan.warnings)

    def run(self, began: float) -> MigrationSummary:
        self._remember_clusters()
        for each in self._plan.topics:
            self._prepare(each)
        partitions = [
            partition
            for each in self._plan.topics
            for partition in partitions_of(each.topic, each.partitions)
        ]
        before = self._begin(partitions)
        producer = self._get_producer()
        copying = self._copying(producer)
        copying.settle(partitions)
        copying.copy(self._a.ends(partitions))
        # First what groups have read, then the end of what they may have read it from.
        commits = offset_admin.committed(
            self._source, [each.group_id for each in self._plan.groups]
        )
        copying.copy(self._a.ends(partitions))
        verify(self._b, self._state, producer.producer_id, partitions, self._watch)
        for each in self._plan.topics:
            self._release(each.topic)
        moving = Moving(
            target=self._target,
            state=self._state,
            a=self._a,
            b=self._b,
            is_replacing=self._wish.is_replacing_offsets,
            watch=self._watch,
        )
        groups = moving.move(commits, partitions)
        return MigrationSummary(
            plan=self._plan,
            partitions=tuple(self._tell(each, before[each]) for each in partitions),
            groups=groups,
            warnings=(*self._warnings, *moving.warnings),
            failures=tuple(moving.failures),
            seconds=time.monotonic() - began,
        )

    def _remember_clusters(self) -> None:
        self._state.remember_fact("source", ask_cluster(self._source).cluster_id)
        self._state.remember_fact("target", ask_cluster(self._target).cluster_id)

    def _get_producer(self) -> Producer:
        known = self._state.find_producer()
        if known is None:
            known = self._writer.new_producer()
            self._state.remember_producer(*known)
        producer_id, producer_epoch = known
        return Producer(producer_id=producer_id, producer_epoch=producer_epoch)

    def _copying(self, producer: Producer) -> Copying:
        return Copying(
            source=self._a,
            target=self._b,
            writer=self._writer,
            state=self._state,
            producer=producer,
            bytes_max={
                each.topic: settings.bytes_max(ask_settings(self._target, each.topic))
                for each in self._plan.topics
            },
            watch=self._watch,
        )

    # Topics

    def _prepare(self, plan: TopicPlan) -> None:
        """B has the topic, and keeps all that it is given."""
        if plan.step is TopicStep.CREATE:
            self._create(plan)
        elif plan.step is TopicStep.ADD:
            self._take_over(plan.topic)
        else:
            self._go_on(plan)
        known = self._state.find_topic(plan.topic)
        if known is not None and known.is_held:
            self._alter(plan.topic, dict(self._held(plan.topic)))

    def _create(self, plan: TopicPlan) -> None:
        topic = plan.topic
        source_id = self._topic_id(self._source, topic)
        intended = TopicState(
            source_id=source_id, target_id=ZERO_UUID, after_copy={}, is_held=False
        )
        self._state.remember_topic(topic, intended)
        # An earlier run may have come as far as this; the plan has looked that nobody else has.
        with _unless_there():
            topic_admin.create_topic(
                self._target,
                topic,
                partitions=plan.partitions,
                replication=self._wish.replication,
            )
        self._b.ends(partitions_of(topic, plan.partitions))
        after, unknown = settings.after_copy(
            ask_settings(self._source, topic), ask_settings(self._target, topic)
        )
        if unknown:
            self._warnings.append(f"topic {topic!r}: B has no setting {', '.join(unknown)}")
        self._remember(topic, source_id, after)

    def _take_over(self, topic: Topic) -> None:
        after = settings.before_copy(
            ask_settings(self._source, topic), ask_settings(self._target, topic)
        )
        self._remember(topic, self._topic_id(self._source, topic), after)

    def _go_on(self, plan: TopicPlan) -> None:
        known = self._state.find_topic(plan.topic)
        assert known is not None, "the plan says that it was begun"
        there = ask_cluster(self._target).topics[plan.topic].partitions
        if there < plan.partitions:
            topic_admin.add_partitions(self._target, plan.topic, plan.partitions)
        if not known.is_held and plan.offsets:
            self._take_over(plan.topic)

    def _remember(self, topic: Topic, source_id: Uuid, after: Mapping[str, str | None]) -> None:
        told = TopicState(
            source_id=source_id,
            target_id=self._topic_id(self._target, topic),
            after_copy=dict(after),
            is_held=True,
        )
        self._state.remember_topic(topic, told)

    def _held(self, topic: Topic) -> Mapping[str, str]:
        return settings.hold(ask_settings(self._source, topic), ask_settings(self._target, topic))

    def _release(self, topic: Topic) -> None:
        known = self._state.find_topic(topic)
        if known is None or not known.is_held:
            return
        self._alter(topic, known.after_copy)
        self._state.remember_topic(
            topic,
            TopicState(
                source_id=known.source_id,
                target_id=known.target_id,
                after_copy=known.after_copy,
                is_held=False,
            ),
        )

    def _alter(self, topic: Topic, changes: Mapping[str, str | None]) -> None:
        """All at once; where B refuses one of them, each by itself, to know which."""
        try:
            topic_admin.alter_settings(self._target, topic, changes)
        except AdminError:
            for name, content in changes.items():
                try:
                    topic_admin.alter_settings(self._target, topic, {name: content})
                except AdminError as error:
                    if name in settings.DEFAULTS:
                        raise
                    self._warnings.append(f"{name}: {error}")

    def _topic_id(self, cluster: Cluster, topic: Topic) -> Uuid:
        return ask_cluster(cluster).topics[topic].topic_id

    # Partitions

    def _begin(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """How much of each was copied before."""
        known = {each: self._state.find_partition(each) for each in partitions}
        new = [each for each, told in known.items() if told is None]
        starts, ends = self._a.starts(new), self._b.ends(new)
        for each in new:
            self._state.begin_partition(each, starts[each], ends[each])
        return {each: 0 if told is None else told.copied for each, told in known.items()}

    def _tell(self, partition: TopicPartition, before: int) -> CopiedPartition:
        told = self._state.get_partition(partition)
        return CopiedPartition(
            partition=partition,
            copied=told.copied,
            copied_now=told.copied - before,
            checksum=told.checksum,
            source_next=told.source_next,
            target_next=told.target_next,
        )


@contextmanager
def _unless_there() -> Iterator[None]:
    try:
        yield
    except TopicExists:
        return
