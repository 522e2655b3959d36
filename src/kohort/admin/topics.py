"""Topics as an operator sees them: which there are, their partitions, sizes and settings."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kohort.admin.cluster import Cluster
from kohort.admin.errors import NoSuchTopic, refusal
from kohort.client.topic_partition import TopicPartition
from kohort.types import BrokerId, ErrorCode, Partition, Topic, value
from kohort.wire.api.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kohort.wire.api.k35_describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

_INTERNAL_PREFIX: Final = "__"


@value
class PartitionPlace:
    partition: Partition
    leader: BrokerId | None
    """None while it has none."""
    replicas: tuple[BrokerId, ...]
    in_sync: tuple[BrokerId, ...]


@value
class DescribedTopic:
    topic: Topic
    is_internal: bool
    partitions: tuple[PartitionPlace, ...]
    """In order."""

    @property
    def replication(self) -> int:
        return max((len(each.replicas) for each in self.partitions), default=0)


@value
class Setting:
    name: str
    content: str | None
    """None where it is a secret."""
    is_default: bool
    """Whether it is as it is for every topic that says nothing about it."""
    is_sensitive: bool


# Asking


def list_topics(cluster: Cluster) -> tuple[DescribedTopic, ...]:
    """All there are, by their names, with their partitions."""
    answer = cluster.caller.ask_any(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    told = [each for each in answer.topics if each.error_code == ErrorCode.NONE]
    return tuple(sorted(map(_read_topic, told), key=lambda each: each.topic))


def describe_topics(cluster: Cluster, topics: Iterable[Topic]) -> dict[Topic, DescribedTopic]:
    """Those of the topics that exist, by their names."""
    asked = tuple(MetadataRequestTopic(name=each) for each in sorted(set(topics)))
    if not asked:
        return {}
    answer = cluster.caller.ask_any(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    found: dict[Topic, DescribedTopic] = {}
    for each in answer.topics:
        if each.error_code == ErrorCode.NONE:
            found[each.name] = _read_topic(each)
        elif each.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise refusal(each.error_code, f"topic {each.name!r} cannot be described")
    return found


def get_topics(cluster: Cluster, topics: Iterable[Topic]) -> dict[Topic, DescribedTopic]:
    """The same, where all of them must be there: NoSuchTopic names those that are not."""
    asked = tuple(topics)
    found = describe_topics(cluster, asked)
    missing = sorted({each for each in asked if each not in found})
    if missing:
        raise NoSuchTopic(f"there is no topic {', '.join(map(repr, missing))}")
    return found


def partitions_of(cluster: Cluster, topics: Iterable[Topic]) -> tuple[TopicPartition, ...]:
    """Every partition of topics that must be there."""
    return tuple(
        TopicPartition(topic, each.partition)
        for topic, described in get_topics(cluster, topics).items()
        for each in described.partitions
    )


def sizes(cluster: Cluster, topics: Iterable[Topic] | None = None) -> dict[TopicPartition, int]:
    """The bytes that the leaders of partitions keep on disk; of all topics, or of some."""
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
    for broker in cluster.caller.brokers():
        if led := by_leader.get(broker.broker_id):
            asked = tuple(
                DescribableLogDirTopic(topic=topic, partitions=tuple(numbers))
                for topic, numbers in led.items()
            )
            answer = cluster.caller.ask(broker, DescribeLogDirsRequest(topics=asked))
            found |= _read_sizes(answer, broker.broker_id)
    return found


def settings(cluster: Cluster, topic: Topic) -> tuple[Setting, ...]:
    """Every setting of a topic, by name, those that nobody has set too."""
    from confluent_kafka.admin import ConfigResource, ConfigSource  # noqa: PLC0415  # seldom used

    told = cluster.ask_one(
        f"settings of topic {topic!r} cannot be read",
        lambda: cluster.client.describe_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, topic)], request_timeout=cluster.timeout_s
        ),
        topic,
    )
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return tuple(
        Setting(
            name=each.name,
            content=each.value,
            is_default=each.source != own,
            is_sensitive=bool(each.is_sensitive),
        )
        for each in sorted(told.values(), key=lambda each: each.name)
    )


# Changing


def create_topic(
    cluster: Cluster,
    topic: Topic,
    *,
    partitions: int | None = None,
    replication: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    """What is not said is as the cluster is set up."""
    from confluent_kafka.admin import NewTopic  # noqa: PLC0415  # as above

    given = dict(settings or {})
    cluster.ask_one(
        f"topic {topic!r} cannot be created",
        lambda: cluster.client.create_topics(
            [
                NewTopic(
                    topic,
                    -1 if partitions is None else partitions,
                    -1 if replication is None else replication,
                    config=given,
                )
            ],
            **_times(cluster),
        ),
        topic,
        *given.keys(),
        *given.values(),
    )


def add_partitions(cluster: Cluster, topic: Topic, count: int) -> None:
    """So that there are as many. Their number never shrinks: records have their partition."""
    from confluent_kafka.admin import NewPartitions  # noqa: PLC0415  # as above

    cluster.ask_one(
        f"topic {topic!r} cannot have {count} partitions",
        lambda: cluster.client.create_partitions([NewPartitions(topic, count)], **_times(cluster)),
        topic,
    )


def alter_settings(cluster: Cluster, topic: Topic, changes: Mapping[str, str | None]) -> None:
    """Set what has a value, and let go of what has none, so that it is as everywhere again."""
    from confluent_kafka.admin import ConfigResource  # noqa: PLC0415  # as above

    cluster.ask_one(
        f"settings of topic {topic!r} cannot be changed",
        lambda: cluster.client.incremental_alter_configs(
            [
                ConfigResource(
                    ConfigResource.Type.TOPIC, topic, incremental_configs=_entries(changes)
                )
            ],
            request_timeout=cluster.timeout_s,
        ),
        topic,
        *changes.keys(),
        *(content for content in changes.values() if content is not None),
    )


def _entries(changes: Mapping[str, str | None]) -> list[Any]:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry  # noqa: PLC0415  # as above

    kinds = AlterConfigOpType
    return [
        ConfigEntry(
            name, content, incremental_operation=kinds.DELETE if content is None else kinds.SET
        )
        for name, content in changes.items()
    ]


def delete_topic(cluster: Cluster, topic: Topic) -> None:
    cluster.ask_one(
        f"topic {topic!r} cannot be deleted",
        lambda: cluster.client.delete_topics([topic], **_times(cluster)),
        topic,
    )


def _times(cluster: Cluster) -> dict[str, float]:
    return {"operation_timeout": cluster.timeout_s, "request_timeout": cluster.timeout_s}


# The messages


def _read_topic(told: MetadataResponseTopic) -> DescribedTopic:
    assert told.name is not None, "it was asked for by its name"
    return DescribedTopic(
        topic=told.name,
        is_internal=told.is_internal or told.name.startswith(_INTERNAL_PREFIX),
        partitions=tuple(
            sorted(map(_read_partition, told.partitions), key=lambda each: each.partition)
        ),
    )


def _read_partition(told: MetadataResponsePartition) -> PartitionPlace:
    return PartitionPlace(
        partition=told.partition_index,
        leader=None if told.leader_id < 0 else told.leader_id,
        replicas=told.replica_nodes,
        in_sync=told.isr_nodes,
    )


def _read_sizes(answer: Any, broker_id: BrokerId) -> dict[TopicPartition, int]:
    if answer.error_code != ErrorCode.NONE:
        raise refusal(answer.error_code, f"sizes on broker {broker_id} cannot be read")
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_size
        for directory in answer.results
        for topic in directory.topics
        for each in topic.partitions
        # A copy that is being moved to another disk is not the partition yet.
        if not each.is_future_key
    }
