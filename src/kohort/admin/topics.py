"""Lists, describes, creates and deletes topics; reads sizes and configs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import NoSuchTopic, error_from_code
from kohort.types import BrokerId, ErrorCode, Partition, Topic, TopicPartition, value
from kohort.wire.api.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.api.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.api.k35_describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kohort.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kohort.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

_INTERNAL_PREFIX: Final = "__"
_TOPIC_RESOURCE: Final = 2
_DYNAMIC_TOPIC_CONFIG: Final = 1
"""The config source of a topic override."""
_SET: Final = 0
_DELETE: Final = 1


@value
class TopicPartitionInfo:
    partition: Partition
    leader: BrokerId | None
    """None if there is no leader."""
    replicas: tuple[BrokerId, ...]
    in_sync: tuple[BrokerId, ...]


@value
class TopicDescription:
    topic: Topic
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]
    """Sorted."""

    @property
    def replication(self) -> int:
        return max((len(each.replicas) for each in self.partitions), default=0)


@value
class TopicConfigEntry:
    name: str
    content: str | None
    """None if it is sensitive."""
    is_default: bool
    """Whether the topic does not override it."""
    is_sensitive: bool


# Read


def list_topics(cluster: Cluster) -> tuple[TopicDescription, ...]:
    """All topics with their partitions, sorted by name."""
    response = cluster.router.send_to_any(
        MetadataRequest(topics=None, allow_auto_topic_creation=False)
    )
    topics = [each for each in response.topics if each.error_code == ErrorCode.NONE]
    return tuple(sorted(map(_read_topic, topics), key=lambda each: each.topic))


def describe_topics(cluster: Cluster, topics: Iterable[Topic]) -> dict[Topic, TopicDescription]:
    """The topics that exist, by name."""
    asked = tuple(MetadataRequestTopic(name=each) for each in sorted(set(topics)))
    if not asked:
        return {}
    response = cluster.router.send_to_any(
        MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    )
    found: dict[Topic, TopicDescription] = {}
    for each in response.topics:
        if each.error_code == ErrorCode.NONE:
            found[each.name] = _read_topic(each)
        elif each.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error_from_code(each.error_code, f"topic {each.name!r} cannot be described")
    return found


def get_topics(cluster: Cluster, topics: Iterable[Topic]) -> dict[Topic, TopicDescription]:
    """Like `describe_topics`, but raises NoSuchTopic with the missing names."""
    asked = tuple(topics)
    found = describe_topics(cluster, asked)
    missing = sorted({each for each in asked if each not in found})
    if missing:
        raise NoSuchTopic(f"there is no topic {', '.join(map(repr, missing))}")
    return found


def partitions_of(cluster: Cluster, topics: Iterable[Topic]) -> tuple[TopicPartition, ...]:
    """All partitions of these topics. Raises NoSuchTopic."""
    return tuple(
        TopicPartition(topic, each.partition)
        for topic, described in get_topics(cluster, topics).items()
        for each in described.partitions
    )


def partition_sizes(
    cluster: Cluster, topics: Iterable[Topic] | None = None
) -> dict[TopicPartition, int]:
    """The bytes on disk of the leader replicas, for all topics or some."""
    described = (
        {each.topic: each for each in list_topics(cluster)}
        if topics is None
        else describe_topics(cluster, topics)
    )
    by_leader: defaultdict[BrokerId, defaultdict[Topic, list[Partition]]]
    by_leader = defaultdict(lambda: defaultdict(list))
    for topic, each in described.items():
        for place in each.partitions:
            if place.leader is not None:
                by_leader[place.leader][topic].append(place.partition)
    found: dict[TopicPartition, int] = {}
    for broker in cluster.router.brokers():
        if led := by_leader.get(broker.broker_id):
            asked = tuple(
                DescribableLogDirTopic(topic=topic, partitions=tuple(numbers))
                for topic, numbers in led.items()
            )
            response = cluster.router.send(broker, DescribeLogDirsRequest(topics=asked))
            found |= _read_sizes(response, broker.broker_id)
    return found


def describe_config(cluster: Cluster, topic: Topic) -> tuple[TopicConfigEntry, ...]:
    """All configs of a topic, sorted by name, including defaults."""
    resource = DescribeConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=None
    )
    response = cluster.router.send_to_any(DescribeConfigsRequest(resources=(resource,)))
    (result,) = response.results
    _check(result, f"settings of topic {topic!r} cannot be read")
    return tuple(
        TopicConfigEntry(
            name=each.name,
            content=each.value,
            is_default=each.config_source != _DYNAMIC_TOPIC_CONFIG,
            is_sensitive=each.is_sensitive,
        )
        for each in sorted(result.configs, key=lambda each: each.name)
    )


# Write


def create_topic(
    cluster: Cluster,
    topic: Topic,
    *,
    partitions: int | None = None,
    replication: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    """None for partitions and replication means the cluster's default."""
    created = CreatableTopic(
        name=topic,
        num_partitions=-1 if partitions is None else partitions,
        replication_factor=-1 if replication is None else replication,
        configs=tuple(
            CreatableTopicConfig(name=name, value=content)
            for name, content in (settings or {}).items()
        ),
    )
    body = CreateTopicsRequest(topics=(created,), timeout_ms=cluster.timeout_ms)
    response = cluster.router.send_to_controller(body, lambda got: got.topics[0].error_code)
    _check(response.topics[0], f"topic {topic!r} cannot be created")


def add_partitions(cluster: Cluster, topic: Topic, count: int) -> None:
    """Increase the number of partitions to `count`."""
    grown = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    body = CreatePartitionsRequest(topics=(grown,), timeout_ms=cluster.timeout_ms)
    response = cluster.router.send_to_controller(body, lambda got: got.results[0].error_code)
    _check(response.results[0], f"topic {topic!r} cannot have {count} partitions")


def alter_config(cluster: Cluster, topic: Topic, changes: Mapping[str, str | None]) -> None:
    """Set these configs; None removes the topic's override."""
    configs = tuple(
        AlterableConfig(
            name=name, config_operation=_SET if content is not None else _DELETE, value=content
        )
        for name, content in changes.items()
    )
    resource = AlterConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=configs
    )
    body = IncrementalAlterConfigsRequest(resources=(resource,))
    response = cluster.router.send_to_controller(body, lambda got: got.responses[0].error_code)
    _check(response.responses[0], f"settings of topic {topic!r} cannot be changed")


def delete_topic(cluster: Cluster, topic: Topic) -> None:
    body = DeleteTopicsRequest(
        topics=(DeleteTopicState(name=topic),), timeout_ms=cluster.timeout_ms
    )
    response = cluster.router.send_to_controller(body, lambda got: got.responses[0].error_code)
    _check(response.responses[0], f"topic {topic!r} cannot be deleted")


def _check(result: Any, what: str) -> None:
    if result.error_code != ErrorCode.NONE:
        raise error_from_code(result.error_code, what, result.error_message)


# Messages


def _read_topic(topic: MetadataResponseTopic) -> TopicDescription:
    assert topic.name is not None, "requested by name"
    return TopicDescription(
        topic=topic.name,
        is_internal=topic.is_internal or topic.name.startswith(_INTERNAL_PREFIX),
        partitions=tuple(
            sorted(map(_read_partition, topic.partitions), key=lambda each: each.partition)
        ),
    )


def _read_partition(partition: MetadataResponsePartition) -> TopicPartitionInfo:
    return TopicPartitionInfo(
        partition=partition.partition_index,
        leader=None if partition.leader_id < 0 else partition.leader_id,
        replicas=partition.replica_nodes,
        in_sync=partition.isr_nodes,
    )


def _read_sizes(response: Any, broker_id: BrokerId) -> dict[TopicPartition, int]:
    if response.error_code != ErrorCode.NONE:
        raise error_from_code(response.error_code, f"log dirs of broker {broker_id} cannot be read")
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_size
        for directory in response.results
        for topic in directory.topics
        for each in topic.partitions
        # A future replica is a copy in progress between two log dirs.
        if not each.is_future_key
    }
