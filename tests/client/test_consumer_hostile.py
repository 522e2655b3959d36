"""Faulty brokers: the consumer recovers or raises a clear error."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kohort.client.errors import (
    BrokerResponseError,
    CorruptRecordError,
    KafkaTimeoutError,
    UnsupportedVersionError,
)
from kohort.types import ErrorCode
from kohort.wire.api.k01_fetch import FetchRequest, FetchResponse
from kohort.wire.api.k02_list_offsets import ListOffsetsRequest
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k11_join_group import JoinGroupRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k13_leave_group import LeaveGroupRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest
from kohort.wire.api.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from tests.client.faulty_broker import (
    Fault,
    FaultyBrokers,
    alter,
    disconnect,
    faulty_brokers,
    garble,
    hold,
    no_response,
    oversized_frame,
    repeat,
    truncate,
    wrong_correlation_id,
)
from tests.client.node_cluster import Cluster, at, offsets, poll_until, read
from tests.wait import wait_until

ASKED_FOR_BY_A_GROUP = (
    ApiVersionsRequest,
    MetadataRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    SyncGroupRequest,
    OffsetFetchRequest,
    ListOffsetsRequest,
    FetchRequest,
    HeartbeatRequest,
    OffsetCommitRequest,
)


@pytest.fixture
def broker(cluster: Cluster) -> Iterator[FaultyBrokers]:
    with faulty_brokers(cluster.address) as brokers:
        yield brokers


def through(brokers: FaultyBrokers) -> Cluster:
    return Cluster(bootstrap_servers=brokers.bootstrap_servers)


def error_in(path: str, code: ErrorCode) -> Fault:
    """The same response with this error code at a path of fields, in all list items."""

    def change(answer: Any, names: list[str]) -> Any:
        if not names:
            return replace(answer, error_code=int(code))
        parts = getattr(answer, names[0])
        return replace(answer, **{names[0]: tuple(change(each, names[1:]) for each in parts)})

    return alter(lambda answer: change(answer, path.split(".") if path else []))


# Broken connections


@pytest.mark.parametrize(
    "fault",
    [disconnect, truncate, garble, wrong_correlation_id, oversized_frame, repeat],
    ids=lambda fault: fault.__name__,
)
@pytest.mark.parametrize(
    "request_type", ASKED_FOR_BY_A_GROUP, ids=lambda each: each.__name__.removesuffix("Request")
)
def test_a_group_recovers_from_broken_responses(
    cluster: Cluster, broker: FaultyBrokers, request_type: type, fault: Fault
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 5)
    broker.play(request_type, fault)
    if fault is not repeat:
        broker.play(request_type, fault)

    with through(broker).consumer(auto_commit_interval_ms=50) as consumer:
        consumer.subscribe([topic])
        assert offsets(read(consumer, 5)) == [0, 1, 2, 3, 4]
        poll_until(consumer, lambda: broker.is_spent, "all faults played")
        cluster.produce(topic, 2)
        assert offsets(read(consumer, 2)) == [5, 6]
        consumer.commit()

        found = consumer.committed(at(topic))
    assert found is not None
    assert found.offset == 7


@pytest.mark.parametrize(
    "fault", [disconnect, garble, no_response], ids=lambda fault: fault.__name__
)
def test_close_ends_even_if_leave_group_fails(
    cluster: Cluster, broker: FaultyBrokers, fault: Fault
) -> None:
    topic = cluster.create_topic()
    broker.always(LeaveGroupRequest, fault)
    consumer = through(broker).open_consumer(request_timeout_ms=400)
    consumer.subscribe([topic])
    poll_until(consumer, consumer.assignment)

    consumer.close(timeout_ms=2_000)

    assert broker.asked(LeaveGroupRequest)


@pytest.mark.parametrize("request_type", [MetadataRequest, FetchRequest, OffsetFetchRequest])
def test_a_silent_broker_is_given_up_after_the_request_timeout(
    cluster: Cluster, broker: FaultyBrokers, request_type: type
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)
    broker.play(request_type, no_response)

    with through(broker).consumer(request_timeout_ms=300) as consumer:
        consumer.subscribe([topic])

        assert offsets(read(consumer, 3)) == [0, 1, 2]


def test_a_slow_fetch_does_not_delay_heartbeats(cluster: Cluster, broker: FaultyBrokers) -> None:
    topic = cluster.create_topic()
    gate = threading.Event()
    broker.play(FetchRequest, hold(gate))

    with through(broker).consumer() as consumer:
        consumer.subscribe([topic])
        poll_until(consumer, lambda: broker.asked(FetchRequest))
        beats = len(broker.asked(HeartbeatRequest))
        poll_until(consumer, lambda: len(broker.asked(HeartbeatRequest)) > beats + 2)
        consumer.commit({at(topic): 0})
        gate.set()

        assert len(consumer.rebalances()) == 1


def test_a_restarted_broker_is_reconnected(cluster: Cluster, broker: FaultyBrokers) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 2)

    with through(broker).consumer() as consumer:
        consumer.assign([at(topic)])
        assert offsets(read(consumer, 2)) == [0, 1]
        for request in (FetchRequest, MetadataRequest, ApiVersionsRequest):
            broker.always(request, disconnect)
        cluster.produce(topic, 1)
        assert consumer.poll(200) == {}
        with pytest.raises(KafkaTimeoutError):
            consumer.topics(timeout_ms=200)
        broker.relent()

        assert offsets(read(consumer, 1)) == [2]


# Retriable errors


@pytest.mark.parametrize(
    ("request_type", "path"),
    [
        (HeartbeatRequest, ""),
        (JoinGroupRequest, ""),
        (SyncGroupRequest, ""),
        (OffsetCommitRequest, "topics.partitions"),
        (OffsetFetchRequest, "groups"),
        (FindCoordinatorRequest, "coordinators"),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
@pytest.mark.parametrize("code", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"])
def test_a_group_recovers_from_repeated_coordinator_loss(
    cluster: Cluster, broker: FaultyBrokers, request_type: type, path: str, code: str
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 4)
    broker.play(request_type, *[error_in(path, ErrorCode[code])] * 8)

    with through(broker).consumer(auto_commit_interval_ms=30) as consumer:
        consumer.subscribe([topic])
        records = read(consumer, 4)
        wait_until(lambda: (consumer.poll(20), broker.is_spent)[1], 20, "the storm passed")
        consumer.commit()

        assert {each.offset for each in records} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "code",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "INCONSISTENT_TOPIC_ID",
        "KAFKA_STORAGE_ERROR",
        "REPLICA_NOT_AVAILABLE",
        "OFFSET_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "UNKNOWN_SERVER_ERROR",
    ],
)
def test_a_partition_is_read_after_temporary_leader_errors(
    cluster: Cluster, broker: FaultyBrokers, code: str
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)
    broker.play(FetchRequest, *[error_in("responses.partitions", ErrorCode[code])] * 3)
    if code != "UNKNOWN_SERVER_ERROR":
        broker.play(ListOffsetsRequest, *[error_in("topics.partitions", ErrorCode[code])] * 3)

    with through(broker).consumer() as consumer:
        consumer.assign([at(topic)])

        assert offsets(read(consumer, 3)) == [0, 1, 2]
        assert broker.is_spent


@pytest.mark.parametrize("code", ["LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION"])
def test_a_topic_without_a_leader_is_retried(
    cluster: Cluster, broker: FaultyBrokers, code: str
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)
    broker.play(MetadataRequest, *[error_in("topics", ErrorCode[code])] * 3)

    with through(broker).consumer() as consumer:
        consumer.subscribe([topic])

        assert offsets(read(consumer, 3)) == [0, 1, 2]


# Fatal errors


@pytest.mark.parametrize(
    ("request_type", "path"),
    [
        (FetchRequest, "responses.partitions"),
        (ListOffsetsRequest, "topics.partitions"),
        (MetadataRequest, "topics"),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
def test_a_topic_authorization_error_is_raised(
    cluster: Cluster, broker: FaultyBrokers, request_type: type, path: str
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 1)
    broker.always(request_type, error_in(path, ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    with through(broker).consumer() as consumer:
        consumer.assign([at(topic)])
        with pytest.raises(BrokerResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
            read(consumer, 1)


def test_poll_raises_if_the_group_rejects_the_member(
    cluster: Cluster, broker: FaultyBrokers
) -> None:
    topic = cluster.create_topic()
    broker.always(JoinGroupRequest, error_in("", ErrorCode.GROUP_MAX_SIZE_REACHED))

    with through(broker).consumer() as consumer:
        consumer.subscribe([topic])
        with pytest.raises(Exception, match=r"group\.max\.size"):
            read(consumer, 1)


def without(api_key: int, answer: ApiVersionsResponse) -> ApiVersionsResponse:
    kept = tuple(each for each in answer.api_keys if each.api_key != api_key)
    return replace(answer, api_keys=kept)


def test_a_missing_api_is_named_in_the_error(cluster: Cluster, broker: FaultyBrokers) -> None:
    topic = cluster.create_topic()
    broker.always(ApiVersionsRequest, alter(lambda answer: without(10, answer)))

    with through(broker).consumer() as consumer:
        consumer.subscribe([topic])
        with pytest.raises(
            UnsupportedVersionError, match=r"FindCoordinator is needed .* not at all"
        ):
            read(consumer, 1)


def test_an_old_broker_is_named_with_its_versions(cluster: Cluster, broker: FaultyBrokers) -> None:
    topic = cluster.create_topic()

    def age(answer: ApiVersionsResponse) -> ApiVersionsResponse:
        old = ApiVersion(api_key=1, min_version=0, max_version=10)
        return replace(answer, api_keys=(*without(1, answer).api_keys, old))

    broker.always(ApiVersionsRequest, alter(age))

    with through(broker).consumer() as consumer:
        consumer.assign([at(topic)])
        with pytest.raises(UnsupportedVersionError, match=r"Fetch .* in versions 0 to 10"):
            read(consumer, 1)


def test_api_versions_falls_back_to_the_version_of_the_broker(
    cluster: Cluster, broker: FaultyBrokers
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 2)

    def refuse(exchange: Any) -> None:
        exchange.answer = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=(ApiVersion(api_key=18, min_version=0, max_version=2),),
        )
        exchange.version = 0
        exchange.client.sendall(exchange.frame())

    broker.play(ApiVersionsRequest, refuse)

    with through(broker).consumer() as consumer:
        consumer.assign([at(topic)])

        assert offsets(read(consumer, 2)) == [0, 1]


# Corrupt records


def damaged(answer: FetchResponse, spoil: Any) -> FetchResponse:
    def partitions(topic: Any) -> Any:
        return tuple(
            replace(each, records=spoil(each.records)) if each.records else each
            for each in topic.partitions
        )

    responses = tuple(replace(each, partitions=partitions(each)) for each in answer.responses)
    return replace(answer, responses=responses)


def flip(records: bytes) -> bytes:
    return records[:70] + bytes((records[70] ^ 1,)) + records[71:]


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (flip, "crc"),
        (lambda records: b"\x00" * len(records), "magic"),
        (lambda records: records[:40], "40 bytes are not a complete batch"),
        (lambda records: records[:22] + b"\x07" + records[23:], "attributes|crc"),
    ],
    ids=["flipped", "zeroed", "truncate", "codec"],
)
def test_a_corrupt_batch_raises_and_can_be_skipped(
    cluster: Cluster, broker: FaultyBrokers, spoil: Any, complaint: str
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 2)
    broker.always(FetchRequest, alter(lambda answer: damaged(answer, spoil)))

    with through(broker).consumer() as consumer:
        consumer.assign([at(topic)])
        with pytest.raises(CorruptRecordError, match=complaint):
            read(consumer, 1)
        with pytest.raises(CorruptRecordError) as caught:
            consumer.poll(1000)
        assert (caught.value.partition, caught.value.offset) == (at(topic), 0)
        broker.relent()
        consumer.seek(at(topic), 1)

        assert offsets(read(consumer, 1)) == [1]


def test_records_before_a_corrupt_batch_are_returned_first(
    cluster: Cluster, broker: FaultyBrokers
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)
    cluster.produce(topic, 2)

    def spoil_the_second(records: bytes) -> bytes:
        first = 12 + int.from_bytes(records[8:12])
        return records[:first] + flip(records[first:])

    broker.always(FetchRequest, alter(lambda answer: damaged(answer, spoil_the_second)))

    with through(broker).consumer() as consumer:
        consumer.assign([at(topic)])
        assert offsets(read(consumer, 3)) == [0, 1, 2]
        with pytest.raises(CorruptRecordError, match="offset 3"):
            consumer.poll(5000)
        assert consumer.position(at(topic)) == 3


def test_a_wrong_checksum_is_ignored_without_check_crcs(
    cluster: Cluster, broker: FaultyBrokers
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 1)

    def spoil_checksum(records: bytes) -> bytes:
        return records[:17] + b"\x00\x00\x00\x00" + records[21:]

    broker.always(FetchRequest, alter(lambda answer: damaged(answer, spoil_checksum)))

    with through(broker).consumer(check_crcs=False) as consumer:
        consumer.assign([at(topic)])

        assert [each.value for each in read(consumer, 1)] == [b"0"]
