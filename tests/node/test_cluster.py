"""What the node says of itself: its APIs, its address, its partitions and their only leader."""

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
from tests.node.asking import Scene, name_of, new_batch

# ApiVersions and what is served

UNFINISHED = {22: 6}
"""Versions that the wire can read, but Kafka does not offer yet; so neither do we."""


def test_the_table_names_what_the_wire_can_read() -> None:
    for key, versions in dispatch.SERVED.items():
        api = find_api(key)
        assert api is not None
        end = UNFINISHED.get(key, api.versions[-1] + 1)
        assert versions == range(api.versions[0], end)


def test_every_api_served_has_a_handler(scene: Scene) -> None:
    for key, versions in dispatch.SERVED.items():
        api = find_api(key)
        assert api is not None
        scene.ask(api.request(), versions[-1])


@pytest.mark.parametrize("version", range(5))
def test_a_client_is_told_what_is_served(scene: Scene, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1.0")

    answer = scene.answer(request, version)

    told = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert answer.error_code == 0
    assert set(told) == set(dispatch.SERVED)
    assert told[1] == (4, 18)
    # As Kafka does, for clients that take an unnamed version for a missing feature.
    assert told[0] == (0, 13)


@pytest.mark.parametrize("name", ["", "-x", "a b", "x."])
def test_a_client_without_a_proper_name_is_refused(scene: Scene, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")

    assert name_of(scene.answer(request, 3).error_code) == "INVALID_REQUEST"


def test_a_newer_api_versions_is_answered_in_version_0() -> None:
    frame = bytearray(encode_request(ApiVersionsRequest(), 4, 99, "newer")[4:])
    frame[2:4] = (77).to_bytes(2)

    answer = dispatch.answer_unsupported(bytes(frame))

    assert answer is not None
    correlation_id, body = decode_response(answer[4:], 18, 0)
    assert correlation_id == 99
    assert name_of(body.error_code) == "UNSUPPORTED_VERSION"
    assert [(k.api_key, k.min_version, k.max_version) for k in body.api_keys] == [(18, 0, 4)]


def test_any_other_unknown_version_has_no_answer() -> None:
    assert dispatch.answer_unsupported(b"\0\3\0\x63" + bytes(8)) is None


def test_an_api_that_is_not_served_is_refused(scene: Scene) -> None:
    with pytest.raises(UnsupportedVersion, match="API key 17"):
        scene.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)


# DescribeCluster


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_this_node(scene: Scene, version: int) -> None:
    answer = scene.answer(DescribeClusterRequest(), version)

    (broker,) = answer.brokers
    assert (broker.broker_id, broker.host, broker.port) == (1, "node.example", 9092)
    assert (answer.cluster_id, answer.controller_id) == (scene.catalog.cluster_id, 1)
    assert answer.cluster_authorized_operations == -(2**31)


def test_the_cluster_keeps_its_id(scene: Scene) -> None:
    before = scene.answer(DescribeClusterRequest(), 2).cluster_id

    scene.restart()

    assert scene.answer(DescribeClusterRequest(), 2).cluster_id == before


def test_the_operations_on_the_cluster_are_told_to_whoever_asks(scene: Scene) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)

    assert scene.answer(request, 0).cluster_authorized_operations == 0b1_1111_1010_0000


@pytest.mark.parametrize(
    ("kind", "error"), [(2, "MISMATCHED_ENDPOINT_TYPE"), (3, "UNSUPPORTED_ENDPOINT_TYPE")]
)
def test_there_are_no_controllers_to_describe(scene: Scene, kind: int, error: str) -> None:
    answer = scene.answer(DescribeClusterRequest(endpoint_type=kind), 1)

    assert name_of(answer.error_code) == error
    assert answer.error_message


# DescribeTopicPartitions


def page(
    scene: Scene, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> Any:
    at = None
    if cursor is not None:
        at = Cursor(topic_name=Topic(cursor[0]), partition_index=Partition(cursor[1]))
    topics = tuple(TopicRequest(name=Topic(name)) for name in names)
    request = DescribeTopicPartitionsRequest(
        topics=topics, response_partition_limit=limit, cursor=at
    )
    return scene.answer(request, 0)


def told(answer: Any) -> list[tuple[str, list[int]]]:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics]


def test_topics_come_in_order_with_all_their_partitions(scene: Scene) -> None:
    scene.create("b", 2)
    scene.create("a", 1)

    answer = page(scene, "b", "a", "missing")

    assert told(answer) == [("a", [0]), ("b", [0, 1]), ("missing", [])]
    assert name_of(answer.topics[2].error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert answer.topics[0].topic_id == scene.id_of("a")
    assert answer.topics[1].partitions[1].leader_id == 1
    assert answer.next_cursor is None


def test_asking_for_no_topic_asks_for_all(scene: Scene) -> None:
    scene.create("t")

    assert told(page(scene)) == [("__consumer_offsets", [0]), ("t", [0])]


def test_pages_follow_each_other_without_gap_or_repetition(scene: Scene) -> None:
    scene.create("a", 3)
    scene.create("b", 3)

    pages = [page(scene, "a", "b", limit=2)]
    while (cursor := pages[-1].next_cursor) is not None:
        at = (cursor.topic_name, cursor.partition_index)
        pages.append(page(scene, "a", "b", limit=2, cursor=at))

    assert [told(each) for each in pages] == [
        [("a", [0, 1])],
        [("a", [2]), ("b", [0])],
        [("b", [1, 2])],
    ]


def test_a_cursor_that_cannot_be_is_refused(scene: Scene) -> None:
    scene.create("a")

    for cursor in (("b", 0), ("a", -1)):
        answer = page(scene, "a", cursor=cursor)
        assert [name_of(each.error_code) for each in answer.topics] == ["INVALID_REQUEST"]


# OffsetForLeaderEpoch


def epoch_end(scene: Scene, epoch: int, *, believed: int = -1, partition: int = 0) -> Any:
    asked = OffsetForLeaderPartition(
        partition=Partition(partition), current_leader_epoch=believed, leader_epoch=epoch
    )
    topic = OffsetForLeaderTopic(topic=Topic("t"), partitions=(asked,))
    request = OffsetForLeaderEpochRequest(replica_id=BrokerId(-1), topics=(topic,))
    return scene.answer(request, 4).topics[0].partitions[0]


def test_the_only_epoch_ends_where_the_log_does(scene: Scene) -> None:
    scene.create("t")
    scene.produce(new_batch("a", "b"))

    end = epoch_end(scene, 0, believed=0)

    assert end == EpochEndOffset(partition=Partition(0), leader_epoch=0, end_offset=Offset(2))


@pytest.mark.parametrize("epoch", [-1, 1])
def test_of_other_epochs_nothing_is_known(scene: Scene, epoch: int) -> None:
    scene.create("t")

    assert epoch_end(scene, epoch) == EpochEndOffset(partition=Partition(0))


def test_an_epoch_is_only_told_to_whoever_believes_in_the_leader(scene: Scene) -> None:
    scene.create("t")

    assert name_of(epoch_end(scene, 0, believed=1).error_code) == "UNKNOWN_LEADER_EPOCH"
    missing = epoch_end(scene, 0, partition=5)
    assert name_of(missing.error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
