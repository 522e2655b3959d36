"""ApiVersions, DescribeCluster, DescribeTopicPartitions and OffsetForLeaderEpoch."""

from typing import Any

import pytest

from kohort.node import dispatch
from kohort.types import BrokerId, Offset, Partition, Topic
from kohort.wire.api import find_api
from kohort.wire.api.k17_sasl_handshake import SaslHandshakeRequest
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.api.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kohort.wire.api.k60_describe_cluster import DescribeClusterRequest
from kohort.wire.api.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.errors import UnsupportedVersion
from tests.node.broker_harness import BrokerHarness, name_of, new_batch

# ApiVersions and what is served

UNFINISHED = {22: 6}
"""Versions that the wire can read, but Kafka does not offer yet; so neither do we."""


def test_served_versions_are_a_subset_of_the_wire_versions() -> None:
    for key, versions in dispatch.SERVED.items():
        api = find_api(key)
        assert api is not None
        end = UNFINISHED.get(key, api.versions[-1] + 1)
        assert versions == range(api.versions[0], end)


def test_every_served_api_has_a_handler(harness: BrokerHarness) -> None:
    for key, versions in dispatch.SERVED.items():
        api = find_api(key)
        assert api is not None
        harness.ask(api.request(), versions[-1])


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_the_served_apis(harness: BrokerHarness, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1.0")

    answer = harness.answer(request, version)

    returned = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert answer.error_code == 0
    assert set(returned) == set(dispatch.SERVED)
    assert returned[1] == (4, 18)
    # As Kafka does, for clients that take an unnamed version for a missing feature.
    assert returned[0] == (0, 13)


@pytest.mark.parametrize("name", ["", "-x", "a b", "x."])
def test_invalid_client_software_name_is_refused(harness: BrokerHarness, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")

    assert name_of(harness.answer(request, 3).error_code) == "INVALID_REQUEST"


def test_unsupported_api_versions_request_gets_a_version_0_response() -> None:
    frame = bytearray(encode_request(ApiVersionsRequest(), 4, 99, "newer")[4:])
    frame[2:4] = (77).to_bytes(2)

    answer = dispatch.answer_unsupported(bytes(frame))

    assert answer is not None
    correlation_id, body = decode_response(answer[4:], 18, 0)
    assert correlation_id == 99
    assert name_of(body.error_code) == "UNSUPPORTED_VERSION"
    assert [(k.api_key, k.min_version, k.max_version) for k in body.api_keys] == [(18, 0, 4)]


def test_unsupported_version_of_another_api_gets_no_response() -> None:
    assert dispatch.answer_unsupported(b"\0\3\0\x63" + bytes(8)) is None


def test_unsupported_api_is_refused(harness: BrokerHarness) -> None:
    with pytest.raises(UnsupportedVersion, match="API key 17"):
        harness.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)


# DescribeCluster


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster_returns_this_broker(harness: BrokerHarness, version: int) -> None:
    answer = harness.answer(DescribeClusterRequest(), version)

    (broker,) = answer.brokers
    assert (broker.broker_id, broker.host, broker.port) == (1, "node.example", 9092)
    assert (answer.cluster_id, answer.controller_id) == (harness.catalog.cluster_id, 1)
    assert answer.cluster_authorized_operations == -(2**31)


def test_cluster_id_survives_a_restart(harness: BrokerHarness) -> None:
    before = harness.answer(DescribeClusterRequest(), 2).cluster_id

    harness.restart()

    assert harness.answer(DescribeClusterRequest(), 2).cluster_id == before


def test_cluster_operations_are_returned_on_request(harness: BrokerHarness) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)

    assert harness.answer(request, 0).cluster_authorized_operations == 0b1_1111_1010_0000


@pytest.mark.parametrize(
    ("kind", "error"), [(2, "MISMATCHED_ENDPOINT_TYPE"), (3, "UNSUPPORTED_ENDPOINT_TYPE")]
)
def test_describing_controllers_is_refused(harness: BrokerHarness, kind: int, error: str) -> None:
    answer = harness.answer(DescribeClusterRequest(endpoint_type=kind), 1)

    assert name_of(answer.error_code) == error
    assert answer.error_message


# DescribeTopicPartitions


def page(
    harness: BrokerHarness, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> Any:
    at = None
    if cursor is not None:
        at = Cursor(topic_name=Topic(cursor[0]), partition_index=Partition(cursor[1]))
    topics = tuple(TopicRequest(name=Topic(name)) for name in names)
    request = DescribeTopicPartitionsRequest(
        topics=topics, response_partition_limit=limit, cursor=at
    )
    return harness.answer(request, 0)


def returned(answer: Any) -> list[tuple[str, list[int]]]:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics]


def test_topics_are_described_in_order_with_all_partitions(harness: BrokerHarness) -> None:
    harness.create("b", 2)
    harness.create("a", 1)

    answer = page(harness, "b", "a", "missing")

    assert returned(answer) == [("a", [0]), ("b", [0, 1]), ("missing", [])]
    assert name_of(answer.topics[2].error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert answer.topics[0].topic_id == harness.id_of("a")
    assert answer.topics[1].partitions[1].leader_id == 1
    assert answer.next_cursor is None


def test_empty_topic_list_describes_all_topics(harness: BrokerHarness) -> None:
    harness.create("t")

    assert returned(page(harness)) == [("__consumer_offsets", [0]), ("t", [0])]


def test_pages_cover_every_partition_exactly_once(harness: BrokerHarness) -> None:
    harness.create("a", 3)
    harness.create("b", 3)

    pages = [page(harness, "a", "b", limit=2)]
    while (cursor := pages[-1].next_cursor) is not None:
        at = (cursor.topic_name, cursor.partition_index)
        pages.append(page(harness, "a", "b", limit=2, cursor=at))

    assert [returned(each) for each in pages] == [
        [("a", [0, 1])],
        [("a", [2]), ("b", [0])],
        [("b", [1, 2])],
    ]


def test_invalid_cursor_is_refused(harness: BrokerHarness) -> None:
    harness.create("a")

    for cursor in (("b", 0), ("a", -1)):
        answer = page(harness, "a", cursor=cursor)
        assert [name_of(each.error_code) for each in answer.topics] == ["INVALID_REQUEST"]


# OffsetForLeaderEpoch


def epoch_end(harness: BrokerHarness, epoch: int, *, believed: int = -1, partition: int = 0) -> Any:
    asked = OffsetForLeaderPartition(
        partition=Partition(partition), current_leader_epoch=believed, leader_epoch=epoch
    )
    topic = OffsetForLeaderTopic(topic=Topic("t"), partitions=(asked,))
    request = OffsetForLeaderEpochRequest(replica_id=BrokerId(-1), topics=(topic,))
    return harness.answer(request, 4).topics[0].partitions[0]


def test_leader_epoch_ends_at_the_log_end_offset(harness: BrokerHarness) -> None:
    harness.create("t")
    harness.produce(new_batch("a", "b"))

    end = epoch_end(harness, 0, believed=0)

    assert end == EpochEndOffset(partition=Partition(0), leader_epoch=0, end_offset=Offset(2))


@pytest.mark.parametrize("epoch", [-1, 1])
def test_unknown_epochs_have_no_end_offset(harness: BrokerHarness, epoch: int) -> None:
    harness.create("t")

    assert epoch_end(harness, epoch) == EpochEndOffset(partition=Partition(0))


def test_current_leader_epoch_is_checked(harness: BrokerHarness) -> None:
    harness.create("t")

    assert name_of(epoch_end(harness, 0, believed=1).error_code) == "UNKNOWN_LEADER_EPOCH"
    missing = epoch_end(harness, 0, partition=5)
    assert name_of(missing.error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
