"""The fast path for repeated requests changes no response and no record.

The same frames go through a connection that remembers and through new ones, which cannot: both
must be answered with the same bytes and keep the same records.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.node.repeated_commits import RepeatedCommit
from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    value,
)
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.envelope import decode_response, encode_request
from tests.node.broker_harness import BrokerHarness, name_of
from tests.node.fake_transport import FakeClient, RecordingLoop
from tests.node.group_setup import AT_ONCE, Member, join_alone, leave

TOPICS = ("t", "u")
GROUP = "g"
PARTITIONS = 3


@value
class Commit:
    version: int
    places: tuple[tuple[str, int], ...]
    numbers: tuple[int, ...]
    metadata: str | None = ""
    is_of_today: bool = True
    client_id: str | None = "c"


@value
class Beat:
    version: int
    is_of_today: bool = True
    is_known: bool = True
    instance_id: str | None = None


@value
class Change:
    """A state change that requests depend on."""

    what: str


Step = Commit | Beat | Change


class Stage:
    """A group, its topics, and two ways to ask for the same."""

    def __init__(self, directory: Path) -> None:
        self.harness = BrokerHarness(directory, AT_ONCE | {"offset.metadata.max.bytes": "10"})
        self.door = RecordingLoop(self.harness)
        self.attentive = FakeClient(self.door)
        self.member: Member | None = None
        self._number = 0
        for name in TOPICS:
            self.harness.create(name, PARTITIONS)
        self.change("join")

    def change(self, what: str) -> None:
        harness = self.harness
        match what:
            case "join":
                if self.member is not None:
                    leave(harness, self.member)
                self.member = join_alone(harness, GROUP)
            case "remake":
                harness.broker.delete_topics([harness.get_topic("u")], harness.now)
                harness.create("u", PARTITIONS)
            case "grow":
                topic = harness.broker.topics.find(Topic("u"))
                assert topic is not None
                harness.broker.topics.add_partitions(topic.name, topic.partition_count + 1)
            case _:
                harness.advance(1)

    def frame(self, step: Commit | Beat) -> bytes:
        self._number += 1
        body = self.commit(step) if isinstance(step, Commit) else self.beat(step)
        client_id = step.client_id if isinstance(step, Commit) else "c"
        return encode_request(body, step.version, self._number, client_id)

    def beat(self, step: Beat) -> HeartbeatRequest:
        assert self.member is not None
        return HeartbeatRequest(
            group_id=GroupId(GROUP),
            generation_id=Generation(self.member.generation - (not step.is_of_today)),
            member_id=self.member.member_id if step.is_known else MemberId("foreign"),
            group_instance_id=(
                None
                if step.version < 3 or step.instance_id is None
                else InstanceId(step.instance_id)
            ),
        )

    def commit(self, step: Commit) -> OffsetCommitRequest:
        assert self.member is not None
        numbers = iter(step.numbers)
        topics = []
        for name in dict.fromkeys(name for name, _ in step.places):
            partitions = [index for each, index in step.places if each == name]
            topics.append(
                OffsetCommitRequestTopic(
                    name=Topic(name),
                    topic_id=self.harness.id_of(name),
                    partitions=tuple(self._partition(step, numbers, each) for each in partitions),
                )
            )
        return OffsetCommitRequest(
            group_id=GroupId(GROUP),
            generation_id_or_member_epoch=Generation(
                self.member.generation - (not step.is_of_today)
            ),
            member_id=self.member.member_id,
            retention_time_ms=Millis(60_000 if step.version == 2 else -1),
            topics=tuple(topics),
        )

    @staticmethod
    def _partition(
        step: Commit, numbers: Iterator[int], index: int
    ) -> OffsetCommitRequestPartition:
        return OffsetCommitRequestPartition(
            partition_index=Partition(index),
            committed_offset=Offset(next(numbers)),
            committed_leader_epoch=next(numbers) % 1000 - 1,
            committed_metadata=step.metadata,
        )

    def kept_since(self, end: Offset) -> bytes:
        """The stored batch without its offset."""
        (log,) = self.harness.broker.topics.offsets_partitions()
        return log.read(end, 1 << 20, at_least_one=True)[8:] if log.end_offset > end else b""

    @property
    def end(self) -> Offset:
        (log,) = self.harness.broker.topics.offsets_partitions()
        return log.end_offset

    def ask(self, client: FakeClient, frame: bytes) -> tuple[bytes, bytes]:
        """The response and the stored batches."""
        end = self.end
        answer = client.ask(frame)
        return answer, self.kept_since(end)

    def ask_both(self, step: Commit | Beat) -> None:
        frame = self.frame(step)
        assert self.ask(self.attentive, frame) == self.ask(FakeClient(self.door), frame)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.harness.close()


places = st.sampled_from(
    [
        (("t", 0),),
        (("t", 0), ("t", 1), ("u", 2)),
        (("u", 0), ("t", 0)),
        (("t", 1), ("t", 1)),
        (("t", 0), ("t", PARTITIONS)),
    ]
)
commits = st.builds(
    Commit,
    version=st.sampled_from([2, 5, 6, 8, 9, 10]),
    places=places,
    numbers=st.lists(st.integers(0, 2**63 - 1), min_size=8, max_size=8).map(tuple),
    metadata=st.sampled_from(["", None, "m", "too long to be kept"]),
    is_of_today=st.sampled_from([True, True, True, False]),
    client_id=st.sampled_from(["c", "c", None]),
)
beats = st.builds(
    Beat,
    version=st.sampled_from([0, 3, 4]),
    is_of_today=st.sampled_from([True, True, True, False]),
    is_known=st.sampled_from([True, True, False]),
    instance_id=st.sampled_from([None, None, "i"]),
)
changes = st.builds(Change, what=st.sampled_from(["join", "remake", "grow", "time passes"]))


@settings(max_examples=50)  # each has its own broker on disk
@given(st.lists(st.tuples(commits | beats | changes, st.integers(1, 4)), max_size=12))
def test_fast_path_changes_no_response_and_no_record(steps: list[tuple[Step, int]]) -> None:
    with TemporaryDirectory() as directory:
        stage = Stage(Path(directory))

        for step, times in steps:
            for _ in range(times):
                if isinstance(step, Change):
                    stage.change(step.what)
                else:
                    stage.ask_both(step)
        stage.harness.close()


def a_commit(offset: int, *names: str, version: int = 8) -> Commit:
    numbers = tuple(offset for _ in range(8))
    return Commit(
        version=version, places=tuple((name, 1) for name in names or TOPICS), numbers=numbers
    )


def is_recognised(stage: Stage) -> bool:
    """Whether the last request took the fast path."""
    return isinstance(stage.door.taken[-1].body, RepeatedCommit)


@pytest.mark.parametrize("version", range(2, 11))
def test_third_similar_commit_is_recognised(stage: Stage, version: int) -> None:
    known = []
    for offset in (1, 2**62, 0, -1):
        stage.attentive.ask(stage.frame(a_commit(offset, version=version)))
        known.append(is_recognised(stage))

    assert known == [False, False, True, True]


def test_refusal_of_a_recognised_commit_has_every_partition(stage: Stage) -> None:
    for offset in range(3):
        stage.attentive.ask(stage.frame(a_commit(offset)))
    frame = stage.frame(a_commit(3))
    stage.change("join")

    answer = stage.attentive.ask(frame)

    assert is_recognised(stage)
    _, response = decode_response(answer[4:], 8, 8)
    assert isinstance(response, OffsetCommitResponse)
    errors = [each.error_code for topic in response.topics for each in topic.partitions]
    assert [name_of(error) for error in errors] == ["UNKNOWN_MEMBER_ID"] * 2


def test_failed_append_of_a_recognised_commit_is_reported(stage: Stage) -> None:
    commit = replace(a_commit(5), metadata="too long to be kept")

    answers = [stage.attentive.ask(stage.frame(commit)) for _ in range(3)]

    assert is_recognised(stage)
    assert len({answer[8:] for answer in answers}) == 1


@pytest.mark.parametrize("what", ["remake", "grow"])
def test_changed_topic_takes_the_plain_path(stage: Stage, what: str) -> None:
    for offset in range(3):
        stage.attentive.ask(stage.frame(a_commit(offset)))
    assert is_recognised(stage)

    stage.change(what)
    stage.attentive.ask(stage.frame(a_commit(3)))

    assert not is_recognised(stage)


def test_single_other_commit_does_not_drop_the_template(stage: Stage) -> None:
    for offset in range(3):
        stage.attentive.ask(stage.frame(a_commit(offset)))

    stage.attentive.ask(stage.frame(a_commit(3, "t")))
    assert not is_recognised(stage)
    stage.attentive.ask(stage.frame(a_commit(4)))

    assert is_recognised(stage)


def test_template_is_replaced_after_several_misses(stage: Stage) -> None:
    for offset in range(3):
        stage.attentive.ask(stage.frame(a_commit(offset)))

    for offset in range(20):
        stage.attentive.ask(stage.frame(a_commit(offset, "t")))

    assert is_recognised(stage)


def test_long_frames_are_not_remembered(stage: Stage) -> None:
    many = tuple(("t", 0) for _ in range(400))
    commit = Commit(version=8, places=many, numbers=tuple(range(800)))

    for _ in range(4):
        stage.attentive.ask(stage.frame(commit))

    assert not is_recognised(stage)


def test_repeated_heartbeat_reuses_the_request(stage: Stage) -> None:
    for _ in range(3):
        stage.attentive.ask(stage.frame(Beat(version=4)))

    first, second, third = stage.door.taken
    assert first is second is third


def test_repeated_heartbeat_is_refused_after_a_rebalance(stage: Stage) -> None:
    frame = stage.frame(Beat(version=4))
    stage.attentive.ask(frame)
    stage.change("join")

    answer = stage.attentive.ask(frame)

    _, response = decode_response(answer[4:], 12, 4)
    assert isinstance(response, HeartbeatResponse)
    assert name_of(response.error_code) == "UNKNOWN_MEMBER_ID"
    assert stage.harness.broker.metrics.errors[12, response.error_code] == 1


def test_repeated_heartbeats_are_counted(stage: Stage) -> None:
    metrics = stage.harness.broker.metrics

    for _ in range(5):
        stage.attentive.ask(stage.frame(Beat(version=4)))

    assert sum(metrics.requests[12].counts) == 5


def test_repeated_heartbeats_keep_a_member_alive(stage: Stage) -> None:
    frame = stage.frame(Beat(version=4))

    answers = []
    for _ in range(30):
        stage.door.run(5_000)
        answers.append(stage.attentive.ask(frame))

    assert decode_response(answers[-1][4:], 12, 4)[1] == HeartbeatResponse()


def test_heartbeat_behind_a_parked_request_is_answered_in_order(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, AT_ONCE, syncs=True)
    door = RecordingLoop(harness)
    client = FakeClient(door)
    beat = HeartbeatRequest(
        group_id=GroupId("unknown"), generation_id=Generation(1), member_id=MemberId("m")
    )
    frames = [encode_request(beat, 4, number, "c") for number in range(2)]
    commit = OffsetCommitRequest(
        group_id=GroupId("simple"),
        topics=(
            OffsetCommitRequestTopic(name=Topic("t"), partitions=(OffsetCommitRequestPartition(),)),
        ),
    )
    harness.create("t")
    assert client.ask(frames[0])
    assert client.ask(encode_request(commit, 8, 7, "c")) == b""

    assert client.ask(frames[1]) == b""
    harness.sync()
    door.iterate()

    numbers = [int.from_bytes(frame[:4]) for frame in client.frames()]
    assert numbers == [7, 1]
    harness.close()
