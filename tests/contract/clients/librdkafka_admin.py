"""The admin client of confluent-kafka."""

from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicCollection,
    TopicPartition,
    admin,
)

from tests.contract.clients.client_library import (
    CommittedOffset,
    GroupDescription,
    MemberDescription,
    TopicAndPartition,
    not_supported,
)
from tests.contract.clients.librdkafka_values import rejection_of, to_committed, to_partitions

_DEADLINE_S = 20


class LibrdkafkaAdmin:
    def __init__(self, bootstrap_servers: str) -> None:
        self._client = admin.AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        options = admin.NewTopic(topic, partitions, 1, config=dict(settings))
        _result_of(self._client.create_topics([options]))

    def grow_topic(self, topic: str, partitions: int) -> None:
        _result_of(self._client.create_partitions([admin.NewPartitions(topic, partitions)]))

    def delete_topic(self, topic: str) -> None:
        _result_of(self._client.delete_topics([topic]))

    def topics(self) -> Collection[str]:
        return list(self._client.list_topics(timeout=_DEADLINE_S).topics)

    def partitions(self, topic: str) -> int:
        described = _result_of(self._client.describe_topics(TopicCollection([topic])))
        return len(described.partitions)

    def brokers(self) -> Collection[str]:
        described = _result(self._client.describe_cluster())
        return [f"{node.host}:{node.port}" for node in described.nodes]

    def setting(self, topic: str, name: str) -> str | None:
        resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic)
        found = _result_of(self._client.describe_configs([resource])).get(name)
        return None if found is None else found.value

    def set(self, topic: str, name: str, value: str | None) -> None:
        kinds = admin.AlterConfigOpType
        change = admin.ConfigEntry(
            name, value, incremental_operation=kinds.DELETE if value is None else kinds.SET
        )
        altered = admin.ConfigResource(
            admin.ConfigResource.Type.TOPIC, topic, incremental_configs=[change]
        )
        _result_of(self._client.incremental_alter_configs([altered]))

    def delete_records(self, tp: TopicAndPartition, before: int) -> int:
        asked = [TopicPartition(*tp, before)]
        return int(_result_of(self._client.delete_records(asked)).low_watermark)

    def latest_by_time(self, tp: TopicAndPartition) -> int:
        asked = {TopicPartition(*tp): admin.OffsetSpec.max_timestamp()}
        return int(_result_of(self._client.list_offsets(asked)).offset)

    def describe_group(self, group: str) -> GroupDescription:
        found = _result_of(self._client.describe_consumer_groups([group]))
        return GroupDescription(
            # librdkafka writes PREPARING_REBALANCE.
            state=found.state.name.title().replace("_", ""),
            assignor=found.partition_assignor,
            members=tuple(_describe(member) for member in found.members),
        )

    def groups(self) -> Collection[str]:
        return [each.group_id for each in _result(self._client.list_consumer_groups()).valid]

    def delete_group(self, group: str) -> None:
        _result_of(self._client.delete_consumer_groups([group]))

    def offsets(self, group: str) -> Mapping[TopicAndPartition, CommittedOffset]:
        asked = [ConsumerGroupTopicPartitions(group)]
        found = _result_of(self._client.list_consumer_group_offsets(asked))
        return {
            TopicAndPartition(each.topic, each.partition): committed
            for each in found.topic_partitions
            if (committed := to_committed(each)) is not None
        }

    def alter_offsets(
        self, group: str, to_commit: Mapping[TopicAndPartition, CommittedOffset]
    ) -> None:
        asked = [ConsumerGroupTopicPartitions(group, to_partitions(to_commit))]
        result = _result_of(self._client.alter_consumer_group_offsets(asked))
        for each in result.topic_partitions:
            if each.error is not None:
                raise rejection_of(each.error)

    def delete_offsets(self, _group: str, *_tps: TopicAndPartition) -> None:
        raise not_supported(self._client, "delete_consumer_group_offsets")

    def remove_instance(self, _group: str, _instance: str) -> None:
        raise not_supported(self._client, "remove_members_from_consumer_group")

    def remove_all(self, _group: str) -> None:
        raise not_supported(self._client, "remove_members_from_consumer_group")

    def close(self) -> None:
        """The binding has no close(); the client closes when it is garbage-collected."""


def _result_of(futures: dict[Any, Any]) -> Any:
    """The result of a call for one resource."""
    (future,) = futures.values()
    return _result(future)


def _result(future: Any) -> Any:
    try:
        return future.result(_DEADLINE_S)
    except KafkaException as error:
        raise rejection_of(error.args[0]) from error


def _describe(member: Any) -> MemberDescription:
    tps = member.assignment.topic_partitions
    return MemberDescription(
        instance=member.group_instance_id,
        tps=frozenset(TopicAndPartition(each.topic, each.partition) for each in tps),
    )
