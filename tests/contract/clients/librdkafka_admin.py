"""Administration by librdkafka's Python binding."""

from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicCollection,
    TopicPartition,
    admin,
)

from tests.contract.clients.library import (
    Described,
    DescribedMember,
    Place,
    Standing,
    lacking,
)
from tests.contract.clients.librdkafka_errors import refusal_of
from tests.contract.clients.librdkafka_standings import to_partitions, to_standing

_DEADLINE_S = 20


class LibrdkafkaAdmin:
    def __init__(self, bootstrap_servers: str) -> None:
        self._client = admin.AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        wanted = admin.NewTopic(topic, partitions, 1, config=dict(settings))
        _result_of(self._client.create_topics([wanted]))

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

    def delete_records(self, place: Place, before: int) -> int:
        asked = [TopicPartition(*place, before)]
        return int(_result_of(self._client.delete_records(asked)).low_watermark)

    def latest_by_time(self, place: Place) -> int:
        asked = {TopicPartition(*place): admin.OffsetSpec.max_timestamp()}
        return int(_result_of(self._client.list_offsets(asked)).offset)

    def describe_group(self, group: str) -> Described:
        found = _result_of(self._client.describe_consumer_groups([group]))
        return Described(
            # librdkafka's own spelling: PREPARING_REBALANCE.
            state=found.state.name.title().replace("_", ""),
            assignor=found.partition_assignor,
            members=tuple(_describe(member) for member in found.members),
        )

    def groups(self) -> Collection[str]:
        return [each.group_id for each in _result(self._client.list_consumer_groups()).valid]

    def delete_group(self, group: str) -> None:
        _result_of(self._client.delete_consumer_groups([group]))

    def offsets(self, group: str) -> Mapping[Place, Standing]:
        asked = [ConsumerGroupTopicPartitions(group)]
        found = _result_of(self._client.list_consumer_group_offsets(asked))
        return {
            Place(each.topic, each.partition): standing
            for each in found.topic_partitions
            if (standing := to_standing(each)) is not None
        }

    def alter_offsets(self, group: str, standings: Mapping[Place, Standing]) -> None:
        asked = [ConsumerGroupTopicPartitions(group, to_partitions(standings))]
        told = _result_of(self._client.alter_consumer_group_offsets(asked))
        for each in told.topic_partitions:
            if each.error is not None:
                raise refusal_of(each.error)

    def delete_offsets(self, _group: str, *_places: Place) -> None:
        raise lacking(self._client, "delete_consumer_group_offsets")

    def remove_instance(self, _group: str, _instance: str) -> None:
        raise lacking(self._client, "remove_members_from_consumer_group")

    def remove_all(self, _group: str) -> None:
        raise lacking(self._client, "remove_members_from_consumer_group")

    def close(self) -> None:
        """It goes when nobody has it any more."""


def _result_of(futures: dict[Any, Any]) -> Any:
    """The one answer of its many."""
    (future,) = futures.values()
    return _result(future)


def _result(future: Any) -> Any:
    try:
        return future.result(_DEADLINE_S)
    except KafkaException as error:
        raise refusal_of(error.args[0]) from error


def _describe(member: Any) -> DescribedMember:
    places = member.assignment.topic_partitions
    return DescribedMember(
        instance=member.group_instance_id,
        places=frozenset(Place(each.topic, each.partition) for each in places),
    )
