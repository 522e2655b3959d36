"""A migration resumes after a kill at any time: each record is copied exactly once."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import kohort
from kohort.admin.cluster_connection import open_cluster
from kohort.admin.migration.cluster_reader import ClusterReader
from kohort.admin.migration.copier import Copier, ProducerIdAndEpoch
from kohort.admin.migration.idempotent_writer import IdempotentWriter
from kohort.admin.migration.migration_plan import read_cluster
from kohort.admin.migration.migration_state import (
    BatchIntent,
    MigrationState,
    TopicCheckpoint,
    open_state,
)
from kohort.admin.migration.migration_types import (
    MigrationPhase,
    MigrationProgress,
    MigrationStopped,
    VerificationFailed,
)
from kohort.admin.migration.offset_map import map_range
from kohort.admin.migration.rebatch import OutgoingBatch, checksum, seal_batch
from kohort.types import ZERO_UUID, GroupId, Millis, Offset, Topic
from kohort.wire.compression import Codec
from kohort.wire.records import NewRecord, encode_records
from tests.admin.migration.cluster_pair import (
    NODE,
    ClusterPair,
    assert_same,
    commit,
    committed,
    create,
    own_settings,
    read_all,
    read_next,
    various,
)
from tests.client.node_cluster import Cluster, ProducedRecord, at
from tests.tidy.repository import ROOT
from tests.wait import pause

STALL_TIMEOUT_MS = Millis(20_000)
SEED = int(os.environ.get("KOHORT_SEED") or os.getpid())

A_MINUTE_AGO_MS = time.time_ns() // 1_000_000 - 60_000


class Interrupted(Exception):
    """Simulates a kill."""


def end_of(cluster: Cluster, topic: Topic, partitions: int) -> int:
    """The number of records; 0 if the topic does not exist."""
    with cluster.consumer(group_id=None) as consumer:
        if not consumer.partitions_for_topic(topic):
            return 0
        return sum(consumer.end_offsets([at(topic, n) for n in range(partitions)]).values())


# Killed processes


@pytest.mark.full
@pytest.mark.parametrize("kills", [8])
def test_kills_at_any_time_neither_lose_nor_repeat_a_record(
    mixed_pair: ClusterPair, kills: int
) -> None:
    topic = create(mixed_pair.source, partitions=2)
    for _ in range(20):
        mixed_pair.source.produce(topic, various(600, 2), codec="lz4")
    group = mixed_pair.source.name_group()
    commit(mixed_pair.source, group, {at(topic): 5_000, at(topic, 1): 17})
    rng = random.Random(SEED)  # noqa: S311  # not for secrets

    killed = sum(run_and_kill(mixed_pair, topic, group, rng) for _ in range(kills))
    ended = subprocess.run(
        command_of(mixed_pair, topic, group), capture_output=True, text=True, check=False, cwd=ROOT
    )

    seed = f"KOHORT_SEED={SEED}"
    assert ended.returncode == 0, (seed, ended.stderr)
    assert killed >= 1, seed
    assert_same(mixed_pair, topic, 2)
    assert committed(mixed_pair.target, group) == {at(topic): 5_000, at(topic, 1): 17}, seed
    assert len(read_next(mixed_pair.target, topic, group)) == 12_000 - 5_017, seed


def command_of(pair: ClusterPair, topic: Topic, group: str) -> list[str]:
    where = ["--from", pair.source.bootstrap_servers, "--to", pair.target.bootstrap_servers]
    what = ["--topic", topic, "--group", group, "--state", str(pair.state)]
    return [sys.executable, "-m", "kohort", "migrate", *where, *what]


def run_and_kill(pair: ClusterPair, topic: Topic, group: str, rng: random.Random) -> bool:
    """Whether the process was killed before it ended."""
    with subprocess.Popen(
        command_of(pair, topic, group),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        # The first line means that the copy starts; a run killed before has done nothing.
        process.stderr.readline()
        pause(rng.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


def test_an_interrupted_run_is_resumed(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source, settings={"retention.ms": "123456789"})
    for _ in range(10):
        node_pair.source.produce(topic, 500)

    def stop_half_way(progress: MigrationProgress) -> None:
        if progress.phase is MigrationPhase.VERIFYING:
            raise Interrupted

    with pytest.raises(Interrupted):
        node_pair.migrate(stop_half_way)
    during_copy = own_settings(node_pair.target, topic)
    node_pair.migrate()

    assert during_copy["retention.ms"] == "-1"
    assert own_settings(node_pair.target, topic)["retention.ms"] == "123456789"
    assert_same(node_pair, topic)


# Between two steps: the state that a kill leaves behind


class SingleSteps:
    """A migration of one partition, step by step."""

    def __init__(
        self, pair: ClusterPair, topic: Topic, state: MigrationState, stack: ExitStack
    ) -> None:
        a = stack.enter_context(open_cluster(pair.source.bootstrap_servers))
        b = stack.enter_context(open_cluster(pair.target.bootstrap_servers))
        self.pair = pair
        self.state = state
        self.partition = at(topic)
        self.source = stack.enter_context(
            ClusterReader(a, STALL_TIMEOUT_MS, is_committed_only=True)
        )
        target = stack.enter_context(ClusterReader(b, STALL_TIMEOUT_MS, is_committed_only=False))
        self.writer = IdempotentWriter(b, STALL_TIMEOUT_MS)
        known = state.find_producer() or self.writer.new_producer()
        state.save_producer(*known)
        self.producer = ProducerIdAndEpoch(producer_id=known[0], producer_epoch=known[1])
        self.copier = Copier(
            source=self.source,
            target=target,
            writer=self.writer,
            state=state,
            producer=self.producer,
            bytes_max={topic: 1_000_000},
            on_progress=lambda _: None,
        )
        if state.find_partition(self.partition) is None:
            state.create_partition(self.partition, Offset(0), Offset(0))

    def plan(self, first: int, count: int) -> tuple[BatchIntent, bytes]:
        """The intent and the batch that a run would store and send for these records."""
        (source_records,) = read_all(self.pair.source, self.partition.topic, 1)
        records = source_records[first : first + count]
        new = [
            NewRecord(key=each.key, value=each.value, timestamp=each.timestamp) for each in records
        ]
        body = encode_records(enumerate(new), base_timestamp=new[0].timestamp)
        outgoing_batch = OutgoingBatch(codec=Codec.NONE, records=records, body=body)
        before = self.state.get_partition(self.partition)
        intent = BatchIntent(
            partition=self.partition,
            copied=first,
            source_next=Offset(first + count),
            mapped=map_range(outgoing_batch.offsets, Offset(-1)),
            checksum=checksum(records, before.checksum),
        )
        sealed = seal_batch(
            outgoing_batch,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            number=first,
        )
        return intent, sealed

    def copy_all(self) -> None:
        self.copier.resolve_intents([self.partition])
        self.copier.copy(self.source.ends([self.partition]))


@contextmanager
def single_steps(pair: ClusterPair, topic: Topic) -> Iterator[SingleSteps]:
    with open_state(pair.state) as state, ExitStack() as stack:
        yield SingleSteps(pair, topic, state, stack)


def topic_in_both(pair: ClusterPair, count: int) -> Topic:
    topic = create(pair.source)
    pair.target.create_topic(1, topic)
    pair.source.produce(
        topic,
        [ProducedRecord(value=b"%d" % n, timestamp_ms=A_MINUTE_AGO_MS + n) for n in range(count)],
    )
    return topic


def numbers_in_target(pair: ClusterPair, topic: Topic) -> list[int]:
    (records,) = read_all(pair.target, topic, 1)
    return [int(each.value) for each in records]


def test_a_written_batch_without_a_checkpoint_is_found(node_pair: ClusterPair) -> None:
    topic = topic_in_both(node_pair, 30)
    with single_steps(node_pair, topic) as killed:
        intent, sealed = killed.plan(0, 12)
        killed.state.save_intents([intent])
        killed.writer.write({killed.partition: sealed})

    with single_steps(node_pair, topic) as steps:
        steps.copy_all()

        assert numbers_in_target(node_pair, topic) == [*range(30)]
        assert steps.state.translate(steps.partition, Offset(20)) == 20


def test_an_intent_that_was_not_sent_is_sent(node_pair: ClusterPair) -> None:
    topic = topic_in_both(node_pair, 30)
    with single_steps(node_pair, topic) as killed:
        intent, _ = killed.plan(0, 12)
        killed.state.save_intents([intent])

    with single_steps(node_pair, topic) as steps:
        steps.copy_all()

        assert numbers_in_target(node_pair, topic) == [*range(30)]


@pytest.mark.parametrize("count", [12, 30])
def test_a_delayed_batch_is_neither_lost_nor_repeated(mixed_pair: ClusterPair, count: int) -> None:
    """The last request of a killed run may arrive after the next run has read the target."""
    topic = topic_in_both(mixed_pair, 30)
    with single_steps(mixed_pair, topic) as killed:
        intent, sealed = killed.plan(0, count)
        killed.state.save_intents([intent])

    with single_steps(mixed_pair, topic) as steps:
        steps.copier.resolve_intents([steps.partition])
        steps.writer.write({steps.partition: sealed})
        steps.copier.copy(steps.source.ends([steps.partition]))

        assert numbers_in_target(mixed_pair, topic) == [*range(30)]
        assert steps.state.get_partition(steps.partition).copied == 30


def test_an_older_state_file_repeats_nothing(node_pair: ClusterPair, tmp_path: Path) -> None:
    topic = create(node_pair.source)
    node_pair.source.produce(topic, 100)
    node_pair.migrate()
    old = tmp_path / "old.db"
    shutil.copy(node_pair.state, old)
    node_pair.source.produce(topic, 50)
    node_pair.migrate()
    shutil.copy(old, node_pair.state)

    node_pair.migrate()

    assert_same(node_pair, topic)


def test_a_much_older_state_file_is_detected(node_pair: ClusterPair, tmp_path: Path) -> None:
    topic = create(node_pair.source)
    node_pair.source.produce(topic, 100)
    node_pair.migrate()
    old = tmp_path / "old.db"
    shutil.copy(node_pair.state, old)
    # A broker keeps the last five batches of a producer for deduplication.
    for _ in range(7):
        node_pair.source.produce(topic, 50)
        node_pair.migrate()
    shutil.copy(old, node_pair.state)

    with pytest.raises(MigrationStopped, match="not in its state file"):
        node_pair.migrate()

    (records,) = read_all(node_pair.target, topic, 1)
    assert len(records) == 450


def test_a_topic_that_was_only_created_is_resumed(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source, settings={"cleanup.policy": "compact"})
    node_pair.source.produce(topic, [ProducedRecord(key=b"key", value=b"value")])
    with (
        open_cluster(node_pair.source.bootstrap_servers) as a,
        open_cluster(node_pair.target.bootstrap_servers) as b,
        open_state(node_pair.state) as state,
    ):
        source_info = read_cluster(a)
        state.save_fact("source", source_info.cluster_id)
        state.save_fact("target", read_cluster(b).cluster_id)
        state.save_topic(
            topic,
            TopicCheckpoint(
                source_id=source_info.topics[topic].topic_id,
                target_id=ZERO_UUID,
                after_copy={},
                is_held=False,
            ),
        )
    node_pair.target.create_topic(1, topic)

    node_pair.migrate()

    assert own_settings(node_pair.target, topic)["cleanup.policy"] == "compact"
    assert_same(node_pair, topic)


def test_offsets_that_a_group_committed_in_the_target_are_kept(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.source.produce(topic, 50)
    commit(node_pair.source, "billing", {at(topic): 10})
    node_pair.migrate()
    commit(node_pair.target, "billing", {at(topic): 30})

    summary = node_pair.migrate()
    forced = node_pair.migrate(is_replacing_offsets=True, groups=(GroupId("billing"),))

    assert any("not overwritten" in warning for warning in summary.warnings)
    assert [each.offsets[0].target for each in forced.groups] == [10]


# Outages


@pytest.mark.parametrize("which", ["A", "B"])
def test_a_restart_of_a_cluster_is_tolerated(tmp_path: Path, which: str) -> None:
    nodes = {name: kohort.Node(data=tmp_path / name, settings=NODE).start() for name in "AB"}
    ports = {name: int(each.bootstrap_servers.rpartition(":")[2]) for name, each in nodes.items()}
    a, b = (Cluster(bootstrap_servers=each.bootstrap_servers) for each in nodes.values())
    pair = ClusterPair(source=a, target=b, state=tmp_path / "state.db")
    topic = create(a, partitions=2)
    for _ in range(10):
        a.produce(topic, various(500, 2))
    restarts: list[MigrationPhase] = []

    def restart(progress: MigrationProgress) -> None:
        """Once during the copy and once during verification."""
        if progress.phase not in restarts:
            restarts.append(progress.phase)
            nodes[which].stop()
            again = kohort.Node(port=ports[which], data=tmp_path / which, settings=NODE)
            nodes[which] = again.start()

    try:
        pair.migrate(restart)

        assert MigrationPhase.COPYING in restarts
        assert_same(pair, topic, 2)
    finally:
        for node in nodes.values():
            node.stop()


def test_lost_records_are_detected_before_groups_are_moved(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.source.produce(topic, 50)
    commit(node_pair.source, "billing", {at(topic): 10})

    def lose(progress: MigrationProgress) -> None:
        if progress.phase is MigrationPhase.COPYING and end_of(node_pair.target, topic, 1) == 50:
            node_pair.target.delete_before(at(topic), 3)

    with pytest.raises(VerificationFailed, match=r"has 47 records .* expected 50"):
        node_pair.migrate(lose)

    assert committed(node_pair.target, "billing") == {}
