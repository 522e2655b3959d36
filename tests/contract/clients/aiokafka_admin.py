"""aiokafka's admin client."""

from collections.abc import Collection, Mapping
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import for_code
from aiokafka.structs import TopicPartition

from tests.contract.clients.aiokafka_loop import rejection_of, run
from tests.contract.clients.client_library import (
    CommittedOffset,
    GroupDescription,
    MemberDescription,
    TopicAndPartition,
    not_supported,
)


class AiokafkaAdmin:
    def __init__(self, bootstrap_servers: str) -> None:
        self._client = run(self._start(bootstrap_servers))

    async def _start(self, bootstrap_servers: str) -> AIOKafkaAdminClient:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
        await client.start()
        return client

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        options = NewTopic(topic, partitions, 1, topic_configs=dict(settings))
        answer = run(self._client.create_topics([options]))
        _raise_any(answer.topic_errors)

    def grow_topic(self, topic: str, partitions: int) -> None:
        answer = run(self._client.create_partitions({topic: NewPartitions(partitions)}))
        _raise_any(answer.topic_errors)

    def delete_topic(self, topic: str) -> None:
        answer = run(self._client.delete_topics([topic]))
        _raise_any(answer.topic_error_codes)

    def topics(self) -> Collection[str]:
        return run(self._client.list_topics())

    def partitions(self, topic: str) -> int:
        (described,) = run(self._client.describe_topics([topic]))
        return len(described["partitions"])

    def brokers(self) -> Collection[str]:
        described = run(self._client.describe_cluster())
        return [f"{each['host']}:{each['port']}" for each in described["brokers"]]

    def setting(self, topic: str, name: str) -> str | None:
        asked = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = run(self._client.describe_configs([asked]))
        ((*_, entries),) = answer.resources
        return next((entry[1] for entry in entries if entry[0] == name), None)

    def set(self, topic: str, name: str, value: str | None) -> None:
        if value is None:
            raise not_supported(self._client, "incremental_alter_configs")
        change = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        (answer,) = run(self._client.alter_configs([change]))
        for code, *_ in answer.resources:
            _raise(code)

    def delete_records(self, tp: TopicAndPartition, before: int) -> int:
        at = TopicPartition(*tp)
        left = run(self._client.delete_records({at: RecordsToDelete(before_offset=before)}))
        return left[at]

    def latest_by_time(self, _place: TopicAndPartition) -> int:
        raise not_supported(self._client, "list_offsets")

    def describe_group(self, group: str) -> GroupDescription:
        (answer,) = run(self._client.describe_consumer_groups([group]))
        ((code, _, state, _, assignor, members, *_),) = answer.groups
        _raise(code)
        return GroupDescription(
            state=state,
            assignor=assignor,
            members=tuple(_describe(member) for member in members),
        )

    def groups(self) -> Collection[str]:
        return [each[0] for each in run(self._client.list_consumer_groups())]

    def delete_group(self, _group: str) -> None:
        raise not_supported(self._client, "delete_consumer_groups")

    def offsets(self, group: str) -> Mapping[TopicAndPartition, CommittedOffset]:
        found = run(self._client.list_consumer_group_offsets(group))
        return {
            TopicAndPartition(*at): CommittedOffset(
                offset=committed.offset, metadata=committed.metadata
            )
            for at, committed in found.items()
        }

    def alter_offsets(
        self, _group: str, _to_commit: Mapping[TopicAndPartition, CommittedOffset]
    ) -> None:
        raise not_supported(self._client, "alter_consumer_group_offsets")

    def delete_offsets(self, _group: str, *_tps: TopicAndPartition) -> None:
        raise not_supported(self._client, "delete_consumer_group_offsets")

    def remove_instance(self, _group: str, _instance: str) -> None:
        raise not_supported(self._client, "remove_members_from_consumer_group")

    def remove_all(self, _group: str) -> None:
        raise not_supported(self._client, "remove_members_from_consumer_group")

    def close(self) -> None:
        run(self._client.close())


def _raise_any(rows: Collection[tuple[Any, ...]]) -> None:
    """Rows of a name and an error code."""
    for _, code, *_ in rows:
        _raise(code)


def _raise(code: int) -> None:
    if code:
        raise rejection_of(for_code(code)())


def _describe(member: tuple[Any, ...]) -> MemberDescription:
    # The instance id exists since version 4, which aiokafka does not always use.
    assignment = ConsumerProtocol.ASSIGNMENT.decode(member[-1])
    return MemberDescription(
        instance=member[1] if len(member) > 5 else None,
        tps=frozenset(TopicAndPartition(*each) for each in assignment.partitions()),
    )
