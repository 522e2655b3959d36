"""Long requests: they are handled in slices, between which other connections are served."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.coordinator.coordinator import Coordinator
from kohort.node.connection import Connection
from kohort.node.request import ITEMS_PER_SLICE
from kohort.types import (
    BrokerId,
    ErrorCode,
    Generation,
    GroupId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    Uuid,
)
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from kohort.wire.api.k44_incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kohort.wire.batch import Codec, NewBatch, NewRecord, encode
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.frame import FrameReader
from tests.node.broker_harness import START, BrokerHarness, produce_request
from tests.node.fake_transport import FakeTransport, RecordingLoop

HEARTBEAT = HeartbeatRequest(
    group_id=GroupId("g"), generation_id=Generation(1), member_id=MemberId("m")
)

SETTINGS = {"kohort.request.items.max": "20000"}


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[BrokerHarness]:
    harness = BrokerHarness(tmp_path, SETTINGS)
    harness.create("t")
    yield harness
    harness.close()


@pytest.fixture
def loop(harness: BrokerHarness) -> RecordingLoop:
    return RecordingLoop(harness)


class Client:
    def __init__(self, loop: RecordingLoop) -> None:
        self._loop = loop
        self.transport = FakeTransport()
        connection = loop.connect(self.transport, "127.0.0.1", 1234)
        assert connection is not None
        self.connection: Connection = connection

    def send(self, *requests: tuple[object, int]) -> bool:
        """Return whether the next iteration is due at once."""
        frames = (encode_request(body, version, 7, "c") for body, version in requests)
        self.connection.feed(b"".join(frames))
        return self._loop.iterate([self.connection])

    def responses(self) -> list[bytes]:
        return FrameReader().feed(self.transport.written)


def run_until_answered(loop: RecordingLoop, client: Client) -> int:
    """The number of iterations."""
    iterations = 0
    while not client.responses() and not client.transport.is_gone:
        iterations += 1
        loop.iterate()
    return iterations


def many_unknown_topics(count: int) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=Topic(f"missing-{n}")) for n in range(count)),
        allow_auto_topic_creation=False,
    )


def many_records(count: int) -> bytes:
    record = NewRecord(key=b"k", value=None, timestamp=START)
    return encode(NewBatch(records=(record,) * count, codec=Codec.ZSTD))


def same_partition(times: int) -> FetchRequest:
    asked = FetchPartition(partition=Partition(0), fetch_offset=Offset(0), partition_max_bytes=100)
    topic = FetchTopic(topic=Topic("t"), partitions=(asked,) * times)
    return FetchRequest(max_wait_ms=Millis(0), topics=(topic,))


def commit_many(times: int) -> OffsetCommitRequest:
    asked = OffsetCommitRequestPartition(
        partition_index=Partition(0), committed_offset=Offset(1), committed_metadata=""
    )
    topic = OffsetCommitRequestTopic(name=Topic("t"), partitions=(asked,) * times)
    return OffsetCommitRequest(
        group_id=GroupId("g"), generation_id_or_member_epoch=Generation(-1), topics=(topic,)
    )


def commit_each(partitions: int, metadata: str) -> OffsetCommitRequest:
    asked = tuple(
        OffsetCommitRequestPartition(
            partition_index=Partition(each), committed_offset=Offset(1), committed_metadata=metadata
        )
        for each in range(partitions)
    )
    topic = OffsetCommitRequestTopic(name=Topic("wide"), partitions=asked)
    return OffsetCommitRequest(group_id=GroupId("g"), topics=(topic,))


def same_group(times: int) -> OffsetFetchRequest:
    """All offsets of one group."""
    group = OffsetFetchRequestGroup(group_id=GroupId("g"), topics=None)
    return OffsetFetchRequest(groups=(group,) * times)


def name_topics(count: int) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=Partition(0), timestamp=Millis(-1))
    return ListOffsetsRequest(
        replica_id=BrokerId(-1),
        topics=tuple(
            ListOffsetsTopic(name=Topic(f"missing-{n}"), partitions=(partition,))
            for n in range(count)
        ),
    )


def name_ids(count: int) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(
            MetadataRequestTopic(name=None, topic_id=Uuid(n.to_bytes(16, "big")))
            for n in range(1, count + 1)
        )
    )


def alter_missing_topics(count: int) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(resource_type=2, resource_name=f"missing-{n}", configs=())
            for n in range(count)
        )
    )


LONG = {
    "metadata": (many_unknown_topics(15_000), 9),
    "fetch": (same_partition(15_000), 12),
    "produce": (produce_request(many_records(50_000)), 9),
    "groups": (DescribeGroupsRequest(groups=tuple(GroupId(f"g{n}") for n in range(9_000))), 5),
    "commit": (commit_many(15_000), 8),
    "list-offsets": (name_topics(9_000), 7),
    "metadata-ids": (name_ids(15_000), 11),
    "find-coordinator": (FindCoordinatorRequest(coordinator_keys=("",) * 9_000), 4),
    "offset-fetch": (same_group(19_000), 8),
    "delete-groups": (
        DeleteGroupsRequest(groups_names=tuple(GroupId(f"g{n}") for n in range(9_000))),
        2,
    ),
    "delete-topics": (
        DeleteTopicsRequest(topic_names=tuple(Topic(f"missing-{n}") for n in range(15_000))),
        5,
    ),
    "alter-configs": (alter_missing_topics(5_000), 1),
}


@pytest.mark.parametrize("name", LONG)
def test_others_are_served_between_the_slices_of_a_long_request(
    loop: RecordingLoop, name: str
) -> None:
    busy, other = Client(loop), Client(loop)

    is_due = busy.send(LONG[name])
    other.send((HEARTBEAT, 4))

    assert is_due
    assert not busy.responses()
    assert len(other.responses()) == 1
    assert run_until_answered(loop, busy) > 0
    assert len(busy.responses()) == 1


def test_request_behind_long_work_waits_for_it(loop: RecordingLoop) -> None:
    client = Client(loop)

    client.send(LONG["metadata"], (HEARTBEAT, 4))
    handled_first = len(loop.taken)
    run_until_answered(loop, client)
    loop.iterate()

    assert handled_first == 1
    assert [len(frame) > 1000 for frame in client.responses()] == [True, False]


def test_work_of_many_connections_shares_the_slices_of_an_iteration(loop: RecordingLoop) -> None:
    alone = Client(loop)
    alone.send(LONG["metadata"])
    iterations_alone = run_until_answered(loop, alone)
    clients = [Client(loop) for _ in range(3)]

    for client in clients:
        client.send(LONG["metadata"])
    iterations = sum(run_until_answered(loop, client) for client in clients)

    assert iterations > 2 * iterations_alone


def test_long_work_of_a_disconnected_client_is_abandoned(loop: RecordingLoop) -> None:
    client = Client(loop)
    client.send(LONG["metadata"])

    client.connection.lost()

    assert not loop.iterate()


def test_produce_without_acks_is_finished_after_a_disconnect(
    harness: BrokerHarness, loop: RecordingLoop
) -> None:
    client = Client(loop)
    client.send((produce_request(many_records(50_000), acks=0), 9))

    client.connection.lost()
    while loop.iterate():
        pass

    log = harness.catalog.partition(Topic("t"), 0)
    assert log is not None
    assert log.end_offset == 50_000


def test_topic_deleted_while_its_batch_is_validated_refuses_the_batch(
    harness: BrokerHarness, loop: RecordingLoop
) -> None:
    client = Client(loop)
    client.send(LONG["produce"])

    harness.broker.delete_topics([harness.get_topic("t")], START)
    harness.create("t")
    run_until_answered(loop, client)

    _, body = decode_response(client.responses()[0], 0, 9)
    code = body.responses[0].partition_responses[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_hundred_topics_are_created_at_a_time(loop: RecordingLoop) -> None:
    client, other = Client(loop), Client(loop)
    names = tuple(MetadataRequestTopic(name=Topic(f"new-{n}")) for n in range(1_000))

    client.send((MetadataRequest(topics=names), 9))
    other.send((HEARTBEAT, 4))
    iterations = run_until_answered(loop, client)

    assert len(other.responses()) == 1
    assert iterations >= 7
    _, body = decode_response(client.responses()[0], 3, 9)
    assert [topic.error_code for topic in body.topics] == [0] * 1_000


def test_auto_creation_is_limited_per_request(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, {"num.partitions": "5000"})
    harness.create("a_b_c")
    # All of them collide with the topic, so that none is really created.
    names = tuple(MetadataRequestTopic(name=Topic(name)) for name in ("a.b_c", "a_b.c", "a.b.c"))

    answer = harness.answer(MetadataRequest(topics=names), 9)

    assert [ErrorCode(topic.error_code).name for topic in answer.topics] == [
        "INVALID_TOPIC_EXCEPTION",
        "INVALID_TOPIC_EXCEPTION",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]
    harness.close()


def test_request_with_too_many_items_closes_its_connection(loop: RecordingLoop) -> None:
    client, other = Client(loop), Client(loop)

    client.send((many_unknown_topics(20_001), 9))
    run_until_answered(loop, client)
    other.send((HEARTBEAT, 4))

    assert client.transport.is_gone
    assert len(other.responses()) == 1


def test_too_large_response_closes_the_connection(
    harness: BrokerHarness, loop: RecordingLoop
) -> None:
    client, other = Client(loop), Client(loop)
    harness.create("wide", 200)
    harness.answer(commit_each(200, "m" * 4_000), 8)

    client.send((same_group(100), 8))
    run_until_answered(loop, client)
    assert len(client.responses()[0]) > 80_000_000
    client.transport.written = b""
    client.send((same_group(150), 8))
    run_until_answered(loop, client)
    other.send((HEARTBEAT, 4))

    assert client.transport.is_gone
    assert len(other.responses()) == 1


RECREATED = CreateTopicsRequest(
    topics=(CreatableTopic(name=Topic("wide"), num_partitions=1, replication_factor=1),)
)


def delete_written_topic(harness: BrokerHarness) -> None:
    """The directories of its partitions are left."""
    harness.create("wide", 300)
    for partition in range(300):
        harness.produce(many_records(1), "wide", partition)
    harness.broker.delete_topics([harness.get_topic("wide")], START)


def test_deleted_topic_is_created_again_in_slices(
    harness: BrokerHarness, loop: RecordingLoop
) -> None:
    first, second = Client(loop), Client(loop)
    delete_written_topic(harness)

    first.send((RECREATED, 7))
    second.send((RECREATED, 7))
    iterations = run_until_answered(loop, first)

    assert iterations > 0
    codes = [
        decode_response(client.responses()[0], 19, 7)[1].topics[0].error_code
        for client in (first, second)
    ]
    assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]
    assert harness.get_topic("wide").partition_count == 1


def test_topic_of_an_abandoned_creation_can_be_created(
    harness: BrokerHarness, loop: RecordingLoop
) -> None:
    gone, client = Client(loop), Client(loop)
    delete_written_topic(harness)
    gone.send((RECREATED, 7))

    gone.connection.lost()
    client.send((RECREATED, 7))
    run_until_answered(loop, client)

    _, body = decode_response(client.responses()[0], 19, 7)
    assert body.topics[0].error_code == ErrorCode.NONE


def test_directories_may_be_removed_between_the_slices_of_a_creation(
    harness: BrokerHarness, loop: RecordingLoop
) -> None:
    client = Client(loop)
    delete_written_topic(harness)

    client.send((RECREATED, 7))
    harness.catalog.clean(START)
    run_until_answered(loop, client)

    _, body = decode_response(client.responses()[0], 19, 7)
    assert body.topics[0].error_code == ErrorCode.NONE
    assert harness.produce(many_records(1), "wide").base_offset == 0


def test_commit_that_cannot_fit_into_a_batch_is_refused_before_it_is_made(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, {"message.max.bytes": "20000"})
    harness.create("t")

    answer = harness.answer(commit_many(1_000), 8)

    codes = {partition.error_code for partition in answer.topics[0].partitions}
    assert codes == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    assert not harness.broker.coordinator.groups
    harness.close()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("bug")], ids=repr)
def test_error_in_one_request_ends_only_its_connection(
    loop: RecordingLoop, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> object:
        raise error

    client, other = Client(loop), Client(loop)
    client.send((ListGroupsRequest(), 5))
    monkeypatch.setattr(Coordinator, "decide", fail)

    client.send((ListGroupsRequest(), 5))
    monkeypatch.undo()
    other.send((HEARTBEAT, 4))

    assert client.transport.is_gone
    assert loop.internal_error is error
    assert len(other.responses()) == 1


def test_error_in_a_later_slice_ends_only_its_connection(
    harness: BrokerHarness, loop: RecordingLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    client, other = Client(loop), Client(loop)
    client.send(LONG["metadata"])

    monkeypatch.setattr(type(harness.broker.topics), "find", fail)
    run_until_answered(loop, client)
    monkeypatch.undo()
    other.send((HEARTBEAT, 4))

    assert client.transport.is_gone
    assert len(other.responses()) == 1


def test_fetch_of_many_partitions_answers_what_was_appended_meanwhile(
    harness: BrokerHarness, loop: RecordingLoop
) -> None:
    count = 20 * ITEMS_PER_SLICE
    harness.create("wide", count)
    asked = tuple(
        FetchPartition(partition=Partition(n), fetch_offset=Offset(0), partition_max_bytes=100)
        for n in range(count)
    )
    request = FetchRequest(
        max_wait_ms=Millis(500),
        min_bytes=1,
        topics=(FetchTopic(topic=Topic("wide"), partitions=asked),),
    )
    client = Client(loop)
    client.send((request, 12))

    harness.produce(many_records(1), "wide")
    run_until_answered(loop, client)

    assert len(harness.broker.purgatory) == 0
