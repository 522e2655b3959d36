"""Questions about groups on clusters of several brokers, some of which move, stall or hang up."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kohort.admin import groups, offsets, topics
from kohort.admin.cluster import Cluster, open_cluster
from kohort.admin.errors import ClusterUnreachable, UnsupportedCluster
from kohort.client.topic_partition import TopicPartition
from kohort.types import BrokerId, ErrorCode, GroupId, Millis, Offset, Partition
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from tests.client import clusters
from tests.client.lying import (
    Exchange,
    Liars,
    alter,
    boast,
    cut,
    garble,
    hang_up,
    liars,
    misnumber,
    swallow,
    tell,
)


@pytest.fixture
def brokers(node: clusters.Cluster) -> Iterator[Liars]:
    """Three, of which each has the coordinators of some groups."""
    with liars(node.address, 3) as found:
        ports = [int(each.rpartition(":")[2]) for each in found.bootstrap_servers.split(",")]

        def share_out(exchange: Exchange) -> None:
            named = tuple(
                replace(each, node_id=BrokerId(home), port=ports[home - 1])
                for each in exchange.answer.coordinators
                for home in [home_of(each.key)]
            )
            exchange.answer = replace(exchange.answer, coordinators=named)
            tell(exchange)

        found.always(FindCoordinatorRequest, share_out)
        yield found


@pytest.fixture
def through(brokers: Liars) -> Iterator[Cluster]:
    with open_cluster(brokers.bootstrap_servers, timeout_ms=Millis(10_000)) as cluster:
        yield cluster


def home_of(group_id: str) -> int:
    return 1 + int(group_id.rpartition("-")[2]) % 3


def make_groups(node: clusters.Cluster, count: int) -> tuple[TopicPartition, list[GroupId]]:
    place = TopicPartition(node.create_topic(), Partition(0))
    named = [GroupId(node.name_group()) for _ in range(count)]
    with open_cluster(node.bootstrap_servers) as cluster:
        for group_id in named:
            offsets.alter_offsets(cluster, group_id, {place: Offset(0)})
    return place, named


def each_group(code: ErrorCode) -> Any:
    """A lie about all groups of an answer."""

    def change(answer: Any) -> Any:
        told = tuple(replace(each, error_code=code) for each in answer.groups)
        return replace(answer, groups=told)

    return alter(change)


def test_each_coordinator_is_asked_once_about_all_its_groups(
    node: clusters.Cluster, brokers: Liars, through: Cluster
) -> None:
    place, named = make_groups(node, 9)

    found = offsets.committed(through, named)
    described = groups.describe_groups(through, named)

    assert {group_id: each[place].offset for group_id, each in found.items()} == dict.fromkeys(
        named, 0
    )
    assert list(described) == sorted(named)
    for request, ids in ((OffsetFetchRequest, asked_for), (DescribeGroupsRequest, described_in)):
        asked = [(broker, ids(body)) for broker, body in brokers.asked(request)]
        assert sorted(broker for broker, _ in asked) == [1, 2, 3]
        assert all(home_of(each) == broker for broker, groups_ in asked for each in groups_)


def asked_for(body: Any) -> list[str]:
    return [each.group_id for each in body.groups]


def described_in(body: Any) -> list[str]:
    return list(body.groups)


def test_lags_of_many_groups_take_few_questions(
    node: clusters.Cluster, brokers: Liars, through: Cluster
) -> None:
    place, named = make_groups(node, 30)
    node.produce(place.topic, 4)

    lags = offsets.lags(through, named)

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
def test_a_coordinator_that_is_not_ready_is_asked_again(
    node: clusters.Cluster, brokers: Liars, through: Cluster, code: ErrorCode
) -> None:
    place, (group_id,) = make_groups(node, 1)
    brokers.play(OffsetFetchRequest, each_group(code), each_group(code))

    found = offsets.committed(through, [group_id])

    assert found[group_id][place].offset == 0
    assert len(brokers.asked(FindCoordinatorRequest)) == 3


def test_a_commit_waits_for_a_coordinator_that_loads(
    node: clusters.Cluster, brokers: Liars, through: Cluster
) -> None:
    place, (group_id,) = make_groups(node, 1)
    node.produce(place.topic, 5)

    def load(answer: Any) -> Any:
        told = tuple(
            replace(
                topic,
                partitions=tuple(
                    replace(each, error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                    for each in topic.partitions
                ),
            )
            for topic in answer.topics
        )
        return replace(answer, topics=told)

    brokers.play(OffsetCommitRequest, alter(load))

    offsets.alter_offsets(through, group_id, {place: Offset(3)})

    assert offsets.committed(through, [group_id])[group_id][place].offset == 3
    assert len(brokers.asked(OffsetCommitRequest)) == 2


@pytest.mark.parametrize("trick", [hang_up, cut, garble, misnumber, boast])
def test_a_broken_answer_is_asked_for_again(
    node: clusters.Cluster, brokers: Liars, through: Cluster, trick: Any
) -> None:
    place, (group_id,) = make_groups(node, 1)
    brokers.play(OffsetFetchRequest, trick, trick)

    found = offsets.committed(through, [group_id])

    assert found[group_id][place].offset == 0
    assert brokers.is_spent


def test_time_runs_out_with_a_sentence(node: clusters.Cluster, brokers: Liars) -> None:
    _, (group_id,) = make_groups(node, 1)
    brokers.always(OffsetFetchRequest, each_group(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))

    with (
        open_cluster(brokers.bootstrap_servers, timeout_ms=Millis(1_500)) as through,
        pytest.raises(ClusterUnreachable, match="COORDINATOR_LOAD_IN_PROGRESS"),
    ):
        offsets.committed(through, [group_id])


def test_a_silent_broker_is_not_waited_for_for_ever(node: clusters.Cluster, brokers: Liars) -> None:
    _, (group_id,) = make_groups(node, 1)
    brokers.always(DescribeGroupsRequest, swallow)

    with (
        open_cluster(brokers.bootstrap_servers, timeout_ms=Millis(1_500)) as through,
        pytest.raises(ClusterUnreachable, match="in time"),
    ):
        groups.describe_groups(through, [group_id])


def test_a_connection_that_was_closed_meanwhile_is_made_anew(
    node: clusters.Cluster, brokers: Liars, through: Cluster
) -> None:
    topic = node.create_topic()
    topics.describe_topics(through, [topic])
    brokers.play(MetadataRequest, hang_up)

    found = topics.describe_topics(through, [topic])

    assert list(found) == [topic]
    assert brokers.is_spent


def test_one_broker_that_is_down_does_not_matter(node: clusters.Cluster, brokers: Liars) -> None:
    topic = node.create_topic()

    with open_cluster(f"127.0.0.1:1,{brokers.bootstrap_servers}") as through:
        assert list(topics.describe_topics(through, [topic])) == [topic]


def test_a_cluster_that_is_not_there_is_named() -> None:
    with pytest.raises(ClusterUnreachable, match=r"127\.0\.0\.1:1: Connection refused"):
        open_cluster("127.0.0.1:1")


def test_what_is_refused_for_good_is_not_tried_again(
    node: clusters.Cluster, brokers: Liars, through: Cluster
) -> None:
    _, (group_id,) = make_groups(node, 1)

    def refuse(answer: Any) -> Any:
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return replace(
            answer, results=tuple(replace(each, error_code=code) for each in answer.results)
        )

    brokers.play(DeleteGroupsRequest, alter(refuse))

    results = groups.delete_groups(through, [group_id])

    assert "does not allow" in str(results[group_id])
    assert len(brokers.asked(DeleteGroupsRequest)) == 1


def test_an_older_broker_is_told_apart_from_a_broken_one(
    node: clusters.Cluster, brokers: Liars
) -> None:
    def forget(answer: Any) -> Any:
        kept = tuple(each for each in answer.api_keys if each.api_key != 15)
        return replace(answer, api_keys=kept)

    _, (group_id,) = make_groups(node, 1)
    brokers.always(ApiVersionsRequest, alter(forget))

    with (
        open_cluster(brokers.bootstrap_servers) as through,
        pytest.raises(UnsupportedCluster, match="DescribeGroups"),
    ):
        groups.describe_groups(through, [group_id])
