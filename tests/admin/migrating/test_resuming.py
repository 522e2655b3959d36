"""A migration that was stopped at any moment goes on: nothing is lost, and nothing comes twice."""

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
from kohort.admin.cluster import open_cluster
from kohort.admin.migrating.copying import Copying, Producer
from kohort.admin.migrating.facts import ask_cluster
from kohort.admin.migrating.mapping import make_stretch
from kohort.admin.migrating.packing import Load, checksum, seal_load
from kohort.admin.migrating.reading import Reader
from kohort.admin.migrating.state import Intent, State, TopicState, open_state
from kohort.admin.migrating.wish import MigrationStopped, NotTheSame, Phase, Progress
from kohort.admin.migrating.writing import Writer
from kohort.types import ZERO_UUID, GroupId, Millis, Offset, Topic
from kohort.wire.compression import Codec
from kohort.wire.records import NewRecord, encode_records
from tests.admin.migrating.migrations import (
    NODE,
    Pair,
    assert_same,
    commit,
    committed,
    create,
    own_settings,
    read_all,
    read_next,
    various,
)
from tests.client.clusters import Cluster, Written, at
from tests.tidy.repository import ROOT
from tests.waiting import pause

PATIENCE = Millis(20_000)
SEED = int(os.environ.get("KOHORT_SEED") or os.getpid())

LATELY_MS = time.time_ns() // 1_000_000 - 60_000


class Enough(Exception):
    """Somebody pulled the plug."""


def end_of(cluster: Cluster, topic: Topic, partitions: int) -> int:
    """How many records there are; none where there is no topic."""
    with cluster.consumer(group_id=None) as consumer:
        if not consumer.partitions_for(topic):
            return 0
        return sum(consumer.end_offsets([at(topic, n) for n in range(partitions)]).values())


# Real kills


@pytest.mark.parametrize("kills", [8])
def test_kills_at_any_moment_neither_lose_nor_repeat_a_record(mixed_pair: Pair, kills: int) -> None:
    topic = create(mixed_pair.a, partitions=2)
    for _ in range(20):
        mixed_pair.a.produce(topic, various(600, 2), codec="lz4")
    group = mixed_pair.a.name_group()
    commit(mixed_pair.a, group, {at(topic): 5_000, at(topic, 1): 17})
    dice = random.Random(SEED)  # noqa: S311 - dice

    killed = sum(run_and_kill(mixed_pair, topic, group, dice) for _ in range(kills))
    ended = subprocess.run(
        words_of(mixed_pair, topic, group), capture_output=True, text=True, check=False, cwd=ROOT
    )

    seed = f"KOHORT_SEED={SEED}"
    assert ended.returncode == 0, (seed, ended.stderr)
    assert killed >= 1, seed
    assert_same(mixed_pair, topic, 2)
    assert committed(mixed_pair.b, group) == {at(topic): 5_000, at(topic, 1): 17}, seed
    assert len(read_next(mixed_pair.b, topic, group)) == 12_000 - 5_017, seed


def words_of(pair: Pair, topic: Topic, group: str) -> list[str]:
    where = ["--from", pair.a.bootstrap_servers, "--to", pair.b.bootstrap_servers]
    what = ["--topic", topic, "--group", group, "--state", str(pair.state)]
    return [sys.executable, "-m", "kohort", "migrate", *where, *what]


def run_and_kill(pair: Pair, topic: Topic, group: str, dice: random.Random) -> bool:
    """Whether it was killed before it had ended."""
    with subprocess.Popen(
        words_of(pair, topic, group),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        # It says so when it begins to copy; a run that is killed before has done nothing.
        process.stderr.readline()
        pause(dice.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


def test_a_run_that_is_stopped_while_it_copies_goes_on(node_pair: Pair) -> None:
    topic = create(node_pair.a, settings={"retention.ms": "123456789"})
    for _ in range(10):
        node_pair.a.produce(topic, 500)

    def stop_half_way(progress: Progress) -> None:
        if progress.phase is Phase.VERIFYING:
            raise Enough

    with pytest.raises(Enough):
        node_pair.migrate(stop_half_way)
    held = own_settings(node_pair.b, topic)
    node_pair.migrate()

    assert held["retention.ms"] == "-1"
    assert own_settings(node_pair.b, topic)["retention.ms"] == "123456789"
    assert_same(node_pair, topic)


# Between one step and the next: what a kill leaves behind


class Stage:
    """A migration of one partition with its parts laid open."""

    def __init__(self, pair: Pair, topic: Topic, state: State, stack: ExitStack) -> None:
        a = stack.enter_context(open_cluster(pair.a.bootstrap_servers))
        b = stack.enter_context(open_cluster(pair.b.bootstrap_servers))
        self.pair = pair
        self.state = state
        self.place = at(topic)
        self.source = stack.enter_context(Reader(a, PATIENCE, is_committed_only=True))
        target = stack.enter_context(Reader(b, PATIENCE, is_committed_only=False))
        self.writer = stack.enter_context(Writer(b, PATIENCE))
        known = state.find_producer() or self.writer.new_producer()
        state.remember_producer(*known)
        self.producer = Producer(producer_id=known[0], producer_epoch=known[1])
        self.copying = Copying(
            source=self.source,
            target=target,
            writer=self.writer,
            state=state,
            producer=self.producer,
            bytes_max={topic: 1_000_000},
            watch=lambda _: None,
        )
        if state.find_partition(self.place) is None:
            state.begin_partition(self.place, Offset(0), Offset(0))

    def plan(self, first: int, count: int) -> tuple[Intent, bytes]:
        """What a run would remember and send of records that have their number for a value."""
        (ours,) = read_all(self.pair.a, self.place.topic, 1)
        records = ours[first : first + count]
        new = [
            NewRecord(key=each.key, value=each.value, timestamp=each.timestamp) for each in records
        ]
        body = encode_records(enumerate(new), base_timestamp=new[0].timestamp)
        load = Load(codec=Codec.NONE, records=records, body=body)
        before = self.state.get_partition(self.place)
        intent = Intent(
            partition=self.place,
            copied=first,
            source_next=Offset(first + count),
            stretch=make_stretch(load.offsets, Offset(-1)),
            checksum=checksum(records, before.checksum),
        )
        sealed = seal_load(
            load,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            number=first,
        )
        return intent, sealed

    def copy_all(self) -> None:
        self.copying.settle([self.place])
        self.copying.copy(self.source.ends([self.place]))


@contextmanager
def stage_of(pair: Pair, topic: Topic) -> Iterator[Stage]:
    with open_state(pair.state) as state, ExitStack() as stack:
        yield Stage(pair, topic, state, stack)


def topic_in_both(pair: Pair, count: int) -> Topic:
    topic = create(pair.a)
    pair.b.create_topic(1, topic)
    pair.a.produce(
        topic, [Written(value=b"%d" % n, timestamp_ms=LATELY_MS + n) for n in range(count)]
    )
    return topic


def numbers_in_b(pair: Pair, topic: Topic) -> list[int]:
    (records,) = read_all(pair.b, topic, 1)
    return [int(each.value) for each in records]


def test_what_arrived_without_anybody_knowing_is_found(node_pair: Pair) -> None:
    topic = topic_in_both(node_pair, 30)
    with stage_of(node_pair, topic) as killed:
        intent, sealed = killed.plan(0, 12)
        killed.state.intend([intent])
        killed.writer.write({killed.place: sealed})

    with stage_of(node_pair, topic) as stage:
        stage.copy_all()

        assert numbers_in_b(node_pair, topic) == [*range(30)]
        assert stage.state.translate(stage.place, Offset(20)) == 20


def test_what_never_left_is_sent(node_pair: Pair) -> None:
    topic = topic_in_both(node_pair, 30)
    with stage_of(node_pair, topic) as killed:
        intent, _ = killed.plan(0, 12)
        killed.state.intend([intent])

    with stage_of(node_pair, topic) as stage:
        stage.copy_all()

        assert numbers_in_b(node_pair, topic) == [*range(30)]


@pytest.mark.parametrize("count", [12, 30])
def test_what_arrives_late_is_neither_lost_nor_repeated(mixed_pair: Pair, count: int) -> None:
    """The last request of a killed run may still be on its way when another run has looked."""
    topic = topic_in_both(mixed_pair, 30)
    with stage_of(mixed_pair, topic) as killed:
        intent, sealed = killed.plan(0, count)
        killed.state.intend([intent])

    with stage_of(mixed_pair, topic) as stage:
        stage.copying.settle([stage.place])
        stage.writer.write({stage.place: sealed})
        stage.copying.copy(stage.source.ends([stage.place]))

        assert numbers_in_b(mixed_pair, topic) == [*range(30)]
        assert stage.state.get_partition(stage.place).copied == 30


def test_a_state_that_is_older_than_b_repeats_nothing(node_pair: Pair, tmp_path: Path) -> None:
    topic = create(node_pair.a)
    node_pair.a.produce(topic, 100)
    node_pair.migrate()
    old = tmp_path / "old.db"
    shutil.copy(node_pair.state, old)
    node_pair.a.produce(topic, 50)
    node_pair.migrate()
    shutil.copy(old, node_pair.state)

    node_pair.migrate()

    assert_same(node_pair, topic)


def test_a_state_that_is_much_older_than_b_is_noticed(node_pair: Pair, tmp_path: Path) -> None:
    topic = create(node_pair.a)
    node_pair.a.produce(topic, 100)
    node_pair.migrate()
    old = tmp_path / "old.db"
    shutil.copy(node_pair.state, old)
    # A broker remembers the last five batches of a producer.
    for _ in range(7):
        node_pair.a.produce(topic, 50)
        node_pair.migrate()
    shutil.copy(old, node_pair.state)

    with pytest.raises(MigrationStopped, match="its state does not know them"):
        node_pair.migrate()

    (records,) = read_all(node_pair.b, topic, 1)
    assert len(records) == 450


def test_a_topic_that_was_made_and_no_more_is_taken_up(node_pair: Pair) -> None:
    topic = create(node_pair.a, settings={"cleanup.policy": "compact"})
    node_pair.a.produce(topic, [Written(key=b"key", value=b"value")])
    with (
        open_cluster(node_pair.a.bootstrap_servers) as a,
        open_cluster(node_pair.b.bootstrap_servers) as b,
        open_state(node_pair.state) as state,
    ):
        told = ask_cluster(a)
        state.remember_fact("source", told.cluster_id)
        state.remember_fact("target", ask_cluster(b).cluster_id)
        state.remember_topic(
            topic,
            TopicState(
                source_id=told.topics[topic].topic_id,
                target_id=ZERO_UUID,
                after_copy={},
                is_held=False,
            ),
        )
    node_pair.b.create_topic(1, topic)

    node_pair.migrate()

    assert own_settings(node_pair.b, topic)["cleanup.policy"] == "compact"
    assert_same(node_pair, topic)


def test_a_group_is_not_moved_back_once_it_has_gone_on_in_b(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.a.produce(topic, 50)
    commit(node_pair.a, "billing", {at(topic): 10})
    node_pair.migrate()
    commit(node_pair.b, "billing", {at(topic): 30})

    summary = node_pair.migrate()
    forced = node_pair.migrate(is_replacing_offsets=True, groups=(GroupId("billing"),))

    assert any("left there" in warning for warning in summary.warnings)
    assert [each.offsets[0].target for each in forced.groups] == [10]


# Clusters that fail


@pytest.mark.parametrize("which", ["A", "B"])
def test_a_cluster_that_goes_away_for_a_while_is_waited_for(tmp_path: Path, which: str) -> None:
    nodes = {name: kohort.Node(data=tmp_path / name, settings=NODE).start() for name in "AB"}
    ports = {name: int(each.bootstrap_servers.rpartition(":")[2]) for name, each in nodes.items()}
    a, b = (Cluster(bootstrap_servers=each.bootstrap_servers) for each in nodes.values())
    pair = Pair(a=a, b=b, state=tmp_path / "state.db")
    topic = create(a, partitions=2)
    for _ in range(10):
        a.produce(topic, various(500, 2))
    restarts: list[Phase] = []

    def restart(progress: Progress) -> None:
        """Once while it copies, and once while it compares."""
        if progress.phase not in restarts:
            restarts.append(progress.phase)
            nodes[which].stop()
            again = kohort.Node(port=ports[which], data=tmp_path / which, settings=NODE)
            nodes[which] = again.start()

    try:
        pair.migrate(restart)

        assert Phase.COPYING in restarts
        assert_same(pair, topic, 2)
    finally:
        for node in nodes.values():
            node.stop()


def test_what_b_has_lost_is_noticed_before_groups_are_moved(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.a.produce(topic, 50)
    commit(node_pair.a, "billing", {at(topic): 10})

    def lose(progress: Progress) -> None:
        if progress.phase is Phase.COPYING and end_of(node_pair.b, topic, 1) == 50:
            node_pair.b.delete_before(at(topic), 3)

    with pytest.raises(NotTheSame, match=r"has 47 records .* should have 50"):
        node_pair.migrate(lose)

    assert committed(node_pair.b, "billing") == {}
