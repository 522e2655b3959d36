"""Administration with real clients: topics, settings, groups, offsets and records."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource as AioResource
from aiokafka.admin.config_resource import ConfigResourceType
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.structs import TopicPartition as AioPartition
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import admin as rdkafka
from kafka import KafkaAdminClient, OffsetAndMetadata
from kafka import TopicPartition as PythonPartition
from kafka.admin import ConfigResource, OffsetSpec
from kafka.errors import NoError, TopicAlreadyExistsError

from tests.node.clients.conftest import Cluster
from tests.node.clients.kafka_python import KafkaPython
from tests.node.clients.library import Wanted, Written
from tests.waiting import wait_until


@pytest.fixture
def librdkafka(cluster: Cluster) -> rdkafka.AdminClient:
    return rdkafka.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


@pytest.fixture
def python(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    yield client
    client.close()


def result_of(futures: dict[Any, Any]) -> Any:
    """The one answer of librdkafka's many, or its exception."""
    (future,) = futures.values()
    return future.result(20)


def fill(cluster: Cluster, topic: str, count: int) -> None:
    KafkaPython().produce(cluster.bootstrap_servers, topic, [Written()] * count)


@contextmanager
def member_of(cluster: Cluster, topic: str, group: str) -> Iterator[None]:
    """A group that is in use."""
    member = KafkaPython().join(cluster.bootstrap_servers, Wanted(topic=topic, group=group))
    try:
        wait_until(member.assignment, 20, "an assignment")
        yield
    finally:
        member.close()


# librdkafka


def test_librdkafka_makes_grows_and_deletes_topics(
    cluster: Cluster, librdkafka: rdkafka.AdminClient
) -> None:
    name = f"{cluster.create_topic()}-made"
    result_of(librdkafka.create_topics([rdkafka.NewTopic(name, 2, 1)]))
    with pytest.raises(KafkaException) as refused:
        result_of(librdkafka.create_topics([rdkafka.NewTopic(name, 2, 1)]))
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS

    result_of(librdkafka.create_partitions([rdkafka.NewPartitions(name, 5)]))
    described = result_of(librdkafka.describe_topics(TopicCollection([name])))
    assert [each.id for each in described.partitions] == [0, 1, 2, 3, 4]

    result_of(librdkafka.delete_topics([name]))
    assert name not in librdkafka.list_topics(timeout=20).topics


def test_librdkafka_reads_and_changes_settings(
    cluster: Cluster, librdkafka: rdkafka.AdminClient
) -> None:
    topic = cluster.create_topic()
    change = rdkafka.ConfigEntry(
        "retention.ms", "5000", incremental_operation=rdkafka.AlterConfigOpType.SET
    )
    kind = rdkafka.ConfigResource.Type.TOPIC
    altered = rdkafka.ConfigResource(kind, topic, incremental_configs=[change])

    result_of(librdkafka.incremental_alter_configs([altered]))

    described = result_of(librdkafka.describe_configs([rdkafka.ConfigResource(kind, topic)]))
    assert described["retention.ms"].value == "5000"
    assert not described["retention.ms"].is_default
    assert described["cleanup.policy"].value == "delete"


def test_librdkafka_reads_changes_and_deletes_groups(
    cluster: Cluster, librdkafka: rdkafka.AdminClient
) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    fill(cluster, topic, 10)
    standing = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 7)])
    result_of(librdkafka.alter_consumer_group_offsets([standing]))

    asked = ConsumerGroupTopicPartitions(group)
    found = result_of(librdkafka.list_consumer_group_offsets([asked]))
    assert [(each.topic, each.offset) for each in found.topic_partitions] == [(topic, 7)]
    listed = librdkafka.list_consumer_groups().result(20)
    assert group in [each.group_id for each in listed.valid]
    with member_of(cluster, topic, group):
        described = result_of(librdkafka.describe_consumer_groups([group]))
        assert described.state is ConsumerGroupState.STABLE
        (member,) = described.members
        assert [each.partition for each in member.assignment.topic_partitions] == [0]
        with pytest.raises(KafkaException) as refused:
            result_of(librdkafka.delete_consumer_groups([group]))
        assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP

    result_of(librdkafka.delete_consumer_groups([group]))
    listed = librdkafka.list_consumer_groups().result(20)
    assert group not in [each.group_id for each in listed.valid]


def test_librdkafka_deletes_records_and_finds_what_is_left(
    cluster: Cluster, librdkafka: rdkafka.AdminClient
) -> None:
    topic = cluster.create_topic()
    fill(cluster, topic, 10)

    deleted = result_of(librdkafka.delete_records([TopicPartition(topic, 0, 4)]))
    assert deleted.low_watermark == 4

    at = TopicPartition(topic, 0)
    specs = (rdkafka.OffsetSpec.earliest(), rdkafka.OffsetSpec.latest())
    offsets = [result_of(librdkafka.list_offsets({at: spec})).offset for spec in specs]
    assert offsets == [4, 10]


def test_librdkafka_describes_the_cluster(
    cluster: Cluster, librdkafka: rdkafka.AdminClient
) -> None:
    described = librdkafka.describe_cluster().result(20)

    assert described.cluster_id
    (node,) = described.nodes
    assert f"{node.host}:{node.port}" == cluster.bootstrap_servers


# kafka-python


def test_kafka_python_makes_grows_and_deletes_topics(
    cluster: Cluster, python: KafkaAdminClient
) -> None:
    name = f"{cluster.create_topic()}-made"
    python.create_topics({name: {"num_partitions": 2, "replication_factor": 1}})
    with pytest.raises(TopicAlreadyExistsError):
        python.create_topics({name: {"num_partitions": 2, "replication_factor": 1}})

    python.create_partitions({name: 5})
    (described,) = python.describe_topics([name])
    assert len(described["partitions"]) == 5

    python.delete_topics([name])
    assert name not in python.list_topics()


def test_kafka_python_reads_changes_and_resets_settings(
    cluster: Cluster, python: KafkaAdminClient
) -> None:
    topic = cluster.create_topic()

    def describe() -> dict[str, Any]:
        described = python.describe_configs([ConfigResource("TOPIC", topic)])["topic"][topic]
        return {name: entry["value"] for name, entry in described.items()}

    python.alter_configs([ConfigResource("TOPIC", topic, configs={"retention.ms": "5000"})])
    assert describe() == {"retention.ms": "5000"}

    python.reset_configs([ConfigResource("TOPIC", topic, configs=["retention.ms"])])
    assert describe() == {}


def test_kafka_python_reads_changes_and_deletes_groups(
    cluster: Cluster, python: KafkaAdminClient
) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    fill(cluster, topic, 10)
    at = PythonPartition(topic, 0)
    standing = OffsetAndMetadata(7, "by hand", -1)
    assert python.alter_group_offsets(group, {at: standing}) == {at: NoError}
    assert python.list_group_offsets([group])[group] == {at: standing}
    assert python.reset_group_offsets(group, {at: OffsetSpec.EARLIEST})[at]["offset"] == 0

    with member_of(cluster, topic, group):
        described = python.describe_groups([group])[group]
        assert (described["group_state"], len(described["members"])) == ("Stable", 1)
        assert "NonEmptyGroup" in str(python.delete_groups([group])[group])

    assert python.delete_group_offsets(group, [at]) == {at: NoError}
    assert python.list_group_offsets([group])[group] == {}
    assert python.delete_groups([group]) == {group: "OK"}
    assert group not in [each["group_id"] for each in python.list_groups()]
    assert "GroupIdNotFound" in str(python.delete_groups([group])[group])


def test_kafka_python_deletes_records_and_finds_what_is_left(
    cluster: Cluster, python: KafkaAdminClient
) -> None:
    topic = cluster.create_topic()
    fill(cluster, topic, 10)
    at = PythonPartition(topic, 0)

    assert python.delete_records({at: 4})[at]["low_watermark"] == 4

    assert python.list_partition_offsets({at: OffsetSpec.EARLIEST})[at].offset == 4
    assert python.list_partition_offsets({at: OffsetSpec.LATEST})[at].offset == 10


# aiokafka


def test_aiokafka_administers_what_it_knows_how_to(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    fill(cluster, topic, 10)

    async def administer() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        await client.start()
        try:
            await _administer(client, topic, f"{topic}-made")
        finally:
            await client.close()

    asyncio.run(administer())


async def _administer(client: AIOKafkaAdminClient, topic: str, made: str) -> None:
    await client.create_topics([NewTopic(made, 2, 1)])
    await client.create_partitions({made: NewPartitions(5)})
    (described,) = await client.describe_topics([made])
    assert len(described["partitions"]) == 5
    await client.delete_topics([made])
    assert made not in await client.list_topics()

    at = AioPartition(topic, 0)
    left = await client.delete_records({at: RecordsToDelete(before_offset=4)})
    assert left == {at: 4}
    (answer,) = await client.describe_configs([AioResource(ConfigResourceType.TOPIC, topic)])
    assert answer.resources[0][0] == 0
    # It knows only the way of changing settings that Kafka has replaced, which is not served here.
    change = AioResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "5000"})
    with pytest.raises(IncompatibleBrokerVersion):
        await client.alter_configs([change])
