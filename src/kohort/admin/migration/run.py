"""Runs a migration and reports its progress to a callback.

Order: create topics, copy, read committed offsets, copy the rest (so that every committed offset
has been copied), verify the target, set the final topic configs, commit the groups' offsets.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from kohort.admin import offsets as offset_admin
from kohort.admin import topics as topic_admin
from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import AdminError, TopicExists
from kohort.admin.migration import config_sync
from kohort.admin.migration.cluster_reader import ClusterReader
from kohort.admin.migration.copier import Copier, ProducerIdAndEpoch
from kohort.admin.migration.idempotent_writer import IdempotentWriter
from kohort.admin.migration.migration_plan import (
    make_plan,
    partitions_of,
    read_cluster,
    read_topic_config,
)
from kohort.admin.migration.migration_state import MigrationState, TopicCheckpoint, open_state
from kohort.admin.migration.migration_types import (
    CopiedPartition,
    MigrationOptions,
    MigrationPlan,
    MigrationRefused,
    MigrationSummary,
    OnProgress,
    TopicPlan,
    TopicStep,
)
from kohort.admin.migration.offset_mover import OffsetMover
from kohort.admin.migration.verify import verify
from kohort.types import ZERO_UUID, Topic, TopicPartition, Uuid


def plan_migration(source: Cluster, target: Cluster, options: MigrationOptions) -> MigrationPlan:
    """The plan of a migration. Changes nothing and creates no file."""
    known = options.state if options.state.exists() else None
    with (
        open_state(known) as state,
        ClusterReader(source, options.stall_timeout_ms, is_committed_only=True) as source_reader,
        ClusterReader(target, options.stall_timeout_ms, is_committed_only=False) as target_reader,
    ):
        return make_plan(source_reader, target_reader, options, state)


def migrate(
    source: Cluster,
    target: Cluster,
    options: MigrationOptions,
    on_progress: OnProgress = lambda _: None,
) -> MigrationSummary:
    """Run or resume a migration. Raises MigrationRefused if it cannot start.

    After MigrationStopped it can be run again. VerificationFailed means that the target differs.
    """
    start, is_new = time.monotonic(), not options.state.exists()
    with (
        open_state(options.state) as state,
        ClusterReader(source, options.stall_timeout_ms, is_committed_only=True) as source_reader,
        ClusterReader(target, options.stall_timeout_ms, is_committed_only=False) as target_reader,
    ):
        plan = make_plan(source_reader, target_reader, options, state)
        if plan.refusals:
            if is_new:
                options.state.unlink()
            raise MigrationRefused(plan.refusals)
        run = _MigrationRun(
            source=source,
            target=target,
            options=options,
            on_progress=on_progress,
            state=state,
            source_reader=source_reader,
            target_reader=target_reader,
            writer=IdempotentWriter(target, options.stall_timeout_ms),
            plan=plan,
        )
        return run.run(start)


class _MigrationRun:
    def __init__(
        self,
        *,
        source: Cluster,
        target: Cluster,
        options: MigrationOptions,
        on_progress: OnProgress,
        state: MigrationState,
        source_reader: ClusterReader,
        target_reader: ClusterReader,
        writer: IdempotentWriter,
        plan: MigrationPlan,
    ) -> None:
        self._source, self._target = source, target
        self._options, self._on_progress, self._plan = options, on_progress, plan
        self._source_reader, self._target_reader = source_reader, target_reader
        self._state, self._writer = state, writer
        self._warnings = list(plan.warnings)

    def run(self, start: float) -> MigrationSummary:
        self._save_clusters()
        for each in self._plan.topics:
            self._prepare(each)
        partitions = [
            partition
            for each in self._plan.topics
            for partition in partitions_of(each.topic, each.partitions)
        ]
        copied_before = self._create_checkpoints(partitions)
        producer = self._get_producer()
        copier = self._make_copier(producer)
        copier.resolve_intents(partitions)
        copier.copy(self._source_reader.ends(partitions))
        # Read committed offsets before the last copy, so that each of them is copied.
        commits = offset_admin.list_group_offsets(
            self._source, [each.group_id for each in self._plan.groups]
        )
        copier.copy(self._source_reader.ends(partitions))
        verify(
            self._target_reader, self._state, producer.producer_id, partitions, self._on_progress
        )
        for each in self._plan.topics:
            self._restore_config(each.topic)
        mover = OffsetMover(
            target=self._target,
            state=self._state,
            source_reader=self._source_reader,
            target_reader=self._target_reader,
            is_replacing=self._options.is_replacing_offsets,
            on_progress=self._on_progress,
        )
        groups = mover.move(commits, partitions)
        return MigrationSummary(
            plan=self._plan,
            partitions=tuple(self._result(each, copied_before[each]) for each in partitions),
            groups=groups,
            warnings=(*self._warnings, *mover.warnings),
            failures=tuple(mover.failures),
            seconds=time.monotonic() - start,
        )

    def _save_clusters(self) -> None:
        self._state.save_fact("source", read_cluster(self._source).cluster_id)
        self._state.save_fact("target", read_cluster(self._target).cluster_id)

    def _get_producer(self) -> ProducerIdAndEpoch:
        known = self._state.find_producer()
        if known is None:
            known = self._writer.new_producer()
            self._state.save_producer(*known)
        producer_id, producer_epoch = known
        return ProducerIdAndEpoch(producer_id=producer_id, producer_epoch=producer_epoch)

    def _make_copier(self, producer: ProducerIdAndEpoch) -> Copier:
        return Copier(
            source=self._source_reader,
            target=self._target_reader,
            writer=self._writer,
            state=self._state,
            producer=producer,
            bytes_max={
                each.topic: config_sync.bytes_max(read_topic_config(self._target, each.topic))
                for each in self._plan.topics
            },
            on_progress=self._on_progress,
        )

    # Topics

    def _prepare(self, plan: TopicPlan) -> None:
        """Create the target topic or set the config that keeps all records."""
        if plan.step is TopicStep.CREATE:
            self._create(plan)
        elif plan.step is TopicStep.ADD:
            self._save_config(plan.topic)
        else:
            self._resume(plan)
        known = self._state.find_topic(plan.topic)
        if known is not None and known.is_held:
            self._alter(plan.topic, dict(self._config_during_copy(plan.topic)))

    def _create(self, plan: TopicPlan) -> None:
        topic = plan.topic
        source_id = self._topic_id(self._source, topic)
        intended = TopicCheckpoint(
            source_id=source_id, target_id=ZERO_UUID, after_copy={}, is_held=False
        )
        self._state.save_topic(topic, intended)
        # An earlier run may have created it; the plan has checked that no one else did.
        with _ignore_existing():
            topic_admin.create_topic(
                self._target,
                topic,
                partitions=plan.partitions,
                replication=self._options.replication,
            )
        self._target_reader.ends(partitions_of(topic, plan.partitions))
        after, unknown = config_sync.config_after_copy(
            read_topic_config(self._source, topic), read_topic_config(self._target, topic)
        )
        if unknown:
            self._warnings.append(
                f"topic {topic!r}: the target does not support {', '.join(unknown)}"
            )
        self._save_topic(topic, source_id, after)

    def _save_config(self, topic: Topic) -> None:
        after = config_sync.config_before_copy(
            read_topic_config(self._source, topic), read_topic_config(self._target, topic)
        )
        self._save_topic(topic, self._topic_id(self._source, topic), after)

    def _resume(self, plan: TopicPlan) -> None:
        known = self._state.find_topic(plan.topic)
        assert known is not None, "the plan says that an earlier run started it"
        existing = read_cluster(self._target).topics[plan.topic].partitions
        if existing < plan.partitions:
            topic_admin.add_partitions(self._target, plan.topic, plan.partitions)
        if not known.is_held and plan.offsets:
            self._save_config(plan.topic)

    def _save_topic(self, topic: Topic, source_id: Uuid, after: Mapping[str, str | None]) -> None:
        checkpoint = TopicCheckpoint(
            source_id=source_id,
            target_id=self._topic_id(self._target, topic),
            after_copy=dict(after),
            is_held=True,
        )
        self._state.save_topic(topic, checkpoint)

    def _config_during_copy(self, topic: Topic) -> Mapping[str, str]:
        return config_sync.config_during_copy(
            read_topic_config(self._source, topic), read_topic_config(self._target, topic)
        )

    def _restore_config(self, topic: Topic) -> None:
        known = self._state.find_topic(topic)
        if known is None or not known.is_held:
            return
        self._alter(topic, known.after_copy)
        self._state.save_topic(
            topic,
            TopicCheckpoint(
                source_id=known.source_id,
                target_id=known.target_id,
                after_copy=known.after_copy,
                is_held=False,
            ),
        )

    def _alter(self, topic: Topic, changes: Mapping[str, str | None]) -> None:
        """All at once; if the target rejects them, one by one, to find out which."""
        try:
            topic_admin.alter_config(self._target, topic, changes)
        except AdminError:
            for name, content in changes.items():
                try:
                    topic_admin.alter_config(self._target, topic, {name: content})
                except AdminError as error:
                    if name in config_sync.DEFAULTS:
                        raise
                    self._warnings.append(f"{name}: {error}")

    def _topic_id(self, cluster: Cluster, topic: Topic) -> Uuid:
        return read_cluster(cluster).topics[topic].topic_id

    # Partitions

    def _create_checkpoints(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The number of records that earlier runs copied, by partition."""
        known = {each: self._state.find_partition(each) for each in partitions}
        new = [each for each, checkpoint in known.items() if checkpoint is None]
        starts, ends = self._source_reader.starts(new), self._target_reader.ends(new)
        for each in new:
            self._state.create_partition(each, starts[each], ends[each])
        return {
            each: 0 if checkpoint is None else checkpoint.copied
            for each, checkpoint in known.items()
        }

    def _result(self, partition: TopicPartition, before: int) -> CopiedPartition:
        checkpoint = self._state.get_partition(partition)
        return CopiedPartition(
            partition=partition,
            copied=checkpoint.copied,
            copied_now=checkpoint.copied - before,
            checksum=checkpoint.checksum,
            source_next=checkpoint.source_next,
            target_next=checkpoint.target_next,
        )


@contextmanager
def _ignore_existing() -> Iterator[None]:
    try:
        yield
    except TopicExists:
        return
