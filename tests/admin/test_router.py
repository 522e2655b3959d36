"""Requests to clusters of several brokers, some of which move, stall or disconnect."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kohort.admin import groups, offsets, topics
from kohort.admin.cluster_connection import Cluster, open_cluster
from kohort.admin.errors import ClusterUnreachable, InvalidRequest, TopicExists, UnsupportedCluster
from kohort.types import (
    BrokerId,
    ErrorCode,
    GroupId,
    Millis,
    Offset,
    Partition,
    Topic,
    TopicPartition,
)
from kohort.wire.api.k02_list_offsets import ListOffsetsRequest
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.api.k19_create_topics import CreateTopicsRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from tests.client import node_cluster
from tests.client.faulty_broker import (
    Exchange,
    FaultyBrokers,
    alter,
    disconnect,
    faulty_brokers,
    garble,
    no_response,
    oversized_frame,
    pass_through,
    truncate,
    wrong_correlation_id,
)


@pytest.fixture
def brokers(node: node_cluster.Cluster) -> Iterator[FaultyBrokers]:
    """Three brokers, each of which coordinates some groups."""
    with faulty_brokers(node.address, 3) as found:
        ports = [int(each.rpartition(":")[2]) for each in found.bootstrap_servers.split(",")]

        def spread_coordinators(exchange: Exchange) -> None:
            named = tuple(
                replace(each, node_id=BrokerId(broker_id), port=ports[broker_id - 1])
                for each in exchange.answer.coordinators
                for broker_id in [broker_of(each.key)]
            )
            exchange.answer = replace(exchange.answer, coordinators=named)
            pass_through(exchange)

        found.always(FindCoordinatorRequest, spread_coordinators)
        yield found


@pytest.fixture
def cluster_of_three(brokers: FaultyBrokers) -> Iterator[Cluster]:
    with open_cluster(brokers.bootstrap_servers, timeout_ms=Millis(10_000)) as cluster:
        yield cluster


def broker_of(group_id: str) -> int:
    return 1 + int(group_id.rpartition("-")[2]) % 3


def make_groups(node: node_cluster.Cluster, count: int) -> tuple[TopicPartition, list[GroupId]]:
    partition = TopicPartition(node.create_topic(), Partition(0))
    named = [GroupId(node.name_group()) for _ in range(count)]
    with open_cluster(node.bootstrap_servers) as cluster:
        for group_id in named:
            offsets.alter_offsets(cluster, group_id, {partition: Offset(0)})
    return partition, named


def each_group(code: ErrorCode) -> Any:
    """Replace the error code of all groups in a response."""

    def change(response: Any) -> Any:
        changed = tuple(replace(each, error_code=code) for each in response.groups)
        return replace(response, groups=changed)

    return alter(change)


def test_each_coordinator_gets_one_request_for_all_its_groups(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster
) -> None:
    partition, named = make_groups(node, 9)

    found = offsets.list_group_offsets(cluster_of_three, named)
    described = groups.describe_groups(cluster_of_three, named)

    assert {group_id: each[partition].offset for group_id, each in found.items()} == dict.fromkeys(
        named, 0
    )
    assert list(described) == sorted(named)
    for request, ids in ((OffsetFetchRequest, asked_for), (DescribeGroupsRequest, described_in)):
        asked = [(broker, ids(body)) for broker, body in brokers.asked(request)]
        assert sorted(broker for broker, _ in asked) == [1, 2, 3]
        assert all(broker_of(each) == broker for broker, groups_ in asked for each in groups_)


def asked_for(body: Any) -> list[str]:
    return [each.group_id for each in body.groups]


def described_in(body: Any) -> list[str]:
    return list(body.groups)


def test_the_lags_of_many_groups_take_few_requests(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster
) -> None:
    partition, named = make_groups(node, 30)
    node.produce(partition.topic, 4)

    lags = offsets.group_lags(cluster_of_three, named)

    assert {each.total for each in lags.values()} == {4}
    assert len(brokers.asked(OffsetFetchRequest)) == 3
    assert len(brokers.asked(FindCoordinatorRequest)) == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ],
)
def test_a_coordinator_that_is_not_ready_is_retried(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster, code: ErrorCode
) -> None:
    partition, (group_id,) = make_groups(node, 1)
    brokers.play(OffsetFetchRequest, each_group(code), each_group(code))

    found = offsets.list_group_offsets(cluster_of_three, [group_id])

    assert found[group_id][partition].offset == 0
    assert len(brokers.asked(FindCoordinatorRequest)) == 3


def test_a_commit_is_retried_while_the_coordinator_loads(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster
) -> None:
    partition, (group_id,) = make_groups(node, 1)
    node.produce(partition.topic, 5)

    def load(response: Any) -> Any:
        changed = tuple(
            replace(
                topic,
                partitions=tuple(
                    replace(each, error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                    for each in topic.partitions
                ),
            )
            for topic in response.topics
        )
        return replace(response, topics=changed)

    brokers.play(OffsetCommitRequest, alter(load))

    offsets.alter_offsets(cluster_of_three, group_id, {partition: Offset(3)})

    assert offsets.list_group_offsets(cluster_of_three, [group_id])[group_id][partition].offset == 3
    assert len(brokers.asked(OffsetCommitRequest)) == 2


@pytest.mark.parametrize(
    "trick", [disconnect, truncate, garble, wrong_correlation_id, oversized_frame]
)
def test_a_broken_response_is_retried(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster, trick: Any
) -> None:
    partition, (group_id,) = make_groups(node, 1)
    brokers.play(OffsetFetchRequest, trick, trick)

    found = offsets.list_group_offsets(cluster_of_three, [group_id])

    assert found[group_id][partition].offset == 0
    assert brokers.is_spent


def test_a_timeout_names_the_last_error(node: node_cluster.Cluster, brokers: FaultyBrokers) -> None:
    _, (group_id,) = make_groups(node, 1)
    brokers.always(OffsetFetchRequest, each_group(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))

    with (
        open_cluster(brokers.bootstrap_servers, timeout_ms=Millis(1_500)) as cluster_of_three,
        pytest.raises(ClusterUnreachable, match="COORDINATOR_LOAD_IN_PROGRESS"),
    ):
        offsets.list_group_offsets(cluster_of_three, [group_id])


def test_a_silent_broker_times_out(node: node_cluster.Cluster, brokers: FaultyBrokers) -> None:
    _, (group_id,) = make_groups(node, 1)
    brokers.always(DescribeGroupsRequest, no_response)

    with (
        open_cluster(brokers.bootstrap_servers, timeout_ms=Millis(1_500)) as cluster_of_three,
        pytest.raises(ClusterUnreachable, match="in time"),
    ):
        groups.describe_groups(cluster_of_three, [group_id])


def test_a_closed_connection_is_opened_again(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster
) -> None:
    topic = node.create_topic()
    topics.describe_topics(cluster_of_three, [topic])
    brokers.play(MetadataRequest, disconnect)

    found = topics.describe_topics(cluster_of_three, [topic])

    assert list(found) == [topic]
    assert brokers.is_spent


def test_one_unreachable_bootstrap_server_is_skipped(
    node: node_cluster.Cluster, brokers: FaultyBrokers
) -> None:
    topic = node.create_topic()

    with open_cluster(f"127.0.0.1:1,{brokers.bootstrap_servers}") as cluster_of_three:
        assert list(topics.describe_topics(cluster_of_three, [topic])) == [topic]


def test_an_unreachable_cluster_is_named() -> None:
    with pytest.raises(
        ClusterUnreachable, match=r"no broker answered at 127\.0\.0\.1:1 \(Connection refused\)"
    ):
        open_cluster("127.0.0.1:1")


def test_a_final_error_is_not_retried(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster
) -> None:
    _, (group_id,) = make_groups(node, 1)

    def refuse(response: Any) -> Any:
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return replace(
            response, results=tuple(replace(each, error_code=code) for each in response.results)
        )

    brokers.play(DeleteGroupsRequest, alter(refuse))

    results = groups.delete_groups(cluster_of_three, [group_id])

    assert "not authorized" in str(results[group_id])
    assert len(brokers.asked(DeleteGroupsRequest)) == 1


def test_a_missing_api_is_reported_as_unsupported(
    node: node_cluster.Cluster, brokers: FaultyBrokers
) -> None:
    def forget(response: Any) -> Any:
        kept = tuple(each for each in response.api_keys if each.api_key != 15)
        return replace(response, api_keys=kept)

    _, (group_id,) = make_groups(node, 1)
    brokers.always(ApiVersionsRequest, alter(forget))

    with (
        open_cluster(brokers.bootstrap_servers) as cluster_of_three,
        pytest.raises(UnsupportedCluster, match="DescribeGroups"),
    ):
        groups.describe_groups(cluster_of_three, [group_id])


# Leaders and controller


def test_each_leader_gets_one_request_for_all_its_partitions(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster
) -> None:
    topic = node.create_topic(6)
    node.produce(topic, 4)
    partitions = [TopicPartition(topic, Partition(each)) for each in range(6)]

    found = offsets.list_offsets(cluster_of_three, partitions, "latest")

    assert found == {each: 4 if each.partition == 0 else 0 for each in partitions}
    assert sorted(broker for broker, _ in brokers.asked(ListOffsetsRequest)) == [1, 2, 3]


def test_a_leader_that_moved_is_found_again(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster
) -> None:
    partition = TopicPartition(node.create_topic(), Partition(0))
    offsets.list_offsets(cluster_of_three, [partition], "latest")
    brokers.leads = lambda _: 3
    brokers.play(
        ListOffsetsRequest,
        each_partition(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        disconnect,
        pass_through,
    )

    assert offsets.list_offsets(cluster_of_three, [partition], "earliest") == {partition: 0}

    assert [broker for broker, _ in brokers.asked(ListOffsetsRequest)] == [1, 1, 3, 3]


def each_partition(code: ErrorCode) -> Any:
    def change(response: Any) -> Any:
        changed = tuple(
            replace(
                topic,
                partitions=tuple(replace(each, error_code=code) for each in topic.partitions),
            )
            for topic in response.topics
        )
        return replace(response, topics=changed)

    return alter(change)


def test_partitions_without_leader_are_omitted(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster
) -> None:
    topic = node.create_topic(2)
    brokers.leads = lambda partition: 1 if partition == 0 else -1
    there = TopicPartition(topic, Partition(0))
    partitions = [there, TopicPartition(topic, Partition(1)), TopicPartition(topic, Partition(7))]
    unknown = TopicPartition(Topic("never-made"), Partition(0))

    assert offsets.list_offsets(cluster_of_three, [*partitions, unknown], "latest") == {there: 0}


def test_the_leader_cache_forgets_a_deleted_topic(
    node: node_cluster.Cluster, cluster_of_three: Cluster
) -> None:
    partition = TopicPartition(node.create_topic(), Partition(0))
    assert offsets.list_offsets(cluster_of_three, [partition], "latest") == {partition: 0}
    topics.delete_topic(cluster_of_three, partition.topic)

    assert offsets.list_offsets(cluster_of_three, [partition], "latest") == {}


def test_not_controller_is_retried(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster
) -> None:
    def refuse(response: Any) -> Any:
        changed = tuple(
            replace(each, error_code=ErrorCode.NOT_CONTROLLER) for each in response.topics
        )
        return replace(response, topics=changed)

    def refuse_unmade(exchange: Exchange) -> None:
        exchange.answer = refuse(exchange.answer)
        pass_through(exchange)

    topics.create_topic(cluster_of_three, Topic(node.name_group()), partitions=1)
    brokers.play(CreateTopicsRequest, refuse_unmade)
    topic = Topic(node.name_group())

    # The real broker has created the topic, although the first response reported an error.
    with pytest.raises(TopicExists):
        topics.create_topic(cluster_of_three, topic, partitions=1)

    assert len(brokers.asked(CreateTopicsRequest)) == 3


def test_the_controller_is_found_once(
    node: node_cluster.Cluster, brokers: FaultyBrokers, cluster_of_three: Cluster
) -> None:
    topics.create_topic(cluster_of_three, Topic(node.name_group()), partitions=1)
    found = len(brokers.asked(MetadataRequest))

    topics.create_topic(cluster_of_three, Topic(node.name_group()), partitions=1)

    assert len(brokers.asked(MetadataRequest)) == found


def test_a_name_that_cannot_be_encoded_is_rejected(cluster: Cluster) -> None:
    with pytest.raises(InvalidRequest, match="cannot encode the request"):
        topics.create_topic(cluster, Topic("\udcff"))


def test_a_number_that_cannot_be_encoded_is_rejected(cluster: Cluster) -> None:
    with pytest.raises(InvalidRequest, match="cannot encode the request"):
        topics.create_topic(cluster, Topic("many"), partitions=2**40)
