"""kafka-python's admin client."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition, errors
from kafka.admin import ConfigResource, MemberToRemove, OffsetSpec
from kafka.errors import BrokerResponseError, NoError

from kohort.types import ErrorCode
from tests.contract.clients.client_library import (
    CommittedOffset,
    GroupDescription,
    MemberDescription,
    RequestRejected,
    TopicAndPartition,
)
from tests.contract.clients.kafka_python_sockets import Sockets

T = TypeVar("T")


class KafkaPythonAdmin:
    def __init__(self, bootstrap_servers: str) -> None:
        self._sockets = Sockets()
        self._client = KafkaAdminClient(
            bootstrap_servers=bootstrap_servers, proxy_url=self._sockets.proxy_url
        )

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        options = {
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": dict(settings),
        }
        _ask(lambda: self._client.create_topics({topic: options}))

    def grow_topic(self, topic: str, partitions: int) -> None:
        _ask(lambda: self._client.create_partitions({topic: partitions}))

    def delete_topic(self, topic: str) -> None:
        _ask(lambda: self._client.delete_topics([topic]))

    def topics(self) -> Collection[str]:
        return list(_ask(self._client.list_topics))

    def partitions(self, topic: str) -> int:
        (described,) = _ask(lambda: self._client.describe_topics([topic]))
        return len(described["partitions"])

    def brokers(self) -> Collection[str]:
        described = _ask(self._client.describe_cluster)
        return [f"{each['host']}:{each['port']}" for each in described["brokers"]]

    def setting(self, topic: str, name: str) -> str | None:
        asked = [ConfigResource("TOPIC", topic)]
        found = _ask(lambda: self._client.describe_configs(asked, config_filter="all"))
        entry = found["topic"][topic].get(name)
        return None if entry is None else entry["value"]

    def set(self, topic: str, name: str, value: str | None) -> None:
        if value is None:
            taken = [ConfigResource("TOPIC", topic, configs=[name])]
            _ask(lambda: self._client.reset_configs(taken))
        else:
            given = [ConfigResource("TOPIC", topic, configs={name: value})]
            _ask(lambda: self._client.alter_configs(given))

    def delete_records(self, tp: TopicAndPartition, before: int) -> int:
        at = TopicPartition(*tp)
        return int(_ask(lambda: self._client.delete_records({at: before}))[at]["low_watermark"])

    def latest_by_time(self, tp: TopicAndPartition) -> int:
        at = TopicPartition(*tp)
        asked = {at: OffsetSpec.MAX_TIMESTAMP}
        return int(_ask(lambda: self._client.list_partition_offsets(asked))[at].offset)

    def describe_group(self, group: str) -> GroupDescription:
        found = _ask(lambda: self._client.describe_groups([group]))[group]
        return GroupDescription(
            state=found["group_state"],
            assignor=found["protocol_data"],
            members=tuple(_describe(member) for member in found["members"]),
        )

    def groups(self) -> Collection[str]:
        return [each["group_id"] for each in _ask(self._client.list_groups)]

    def delete_group(self, group: str) -> None:
        result = _ask(lambda: self._client.delete_groups([group]))[group]
        if result != "OK":
            # It returns only the name of its exception class.
            raise RequestRejected(ErrorCode(getattr(errors, result).errno).name)

    def offsets(self, group: str) -> Mapping[TopicAndPartition, CommittedOffset]:
        found = _ask(lambda: self._client.list_group_offsets([group]))[group]
        return {
            TopicAndPartition(*at): CommittedOffset(
                offset=committed.offset,
                metadata=committed.metadata,
                leader_epoch=None if committed.leader_epoch == -1 else committed.leader_epoch,
            )
            for at, committed in found.items()
        }

    def alter_offsets(
        self, group: str, to_commit: Mapping[TopicAndPartition, CommittedOffset]
    ) -> None:
        offsets = {
            TopicPartition(*tp): OffsetAndMetadata(
                committed.offset,
                committed.metadata,
                -1 if committed.leader_epoch is None else committed.leader_epoch,
            )
            for tp, committed in to_commit.items()
        }
        _raise_any(_ask(lambda: self._client.alter_group_offsets(group, offsets)))

    def delete_offsets(self, group: str, *tps: TopicAndPartition) -> None:
        partitions = [TopicPartition(*tp) for tp in tps]
        _raise_any(_ask(lambda: self._client.delete_group_offsets(group, partitions)))

    def remove_instance(self, group: str, instance: str) -> None:
        self._remove(group, MemberToRemove(group_instance_id=instance))

    def remove_all(self, group: str) -> None:
        found = _ask(lambda: self._client.describe_groups([group]))[group]["members"]
        self._remove(group, *(MemberToRemove(member_id=each["member_id"]) for each in found))

    def _remove(self, group: str, *members: MemberToRemove) -> None:
        _raise_any(_ask(lambda: self._client.remove_group_members(group, list(members))))

    def close(self) -> None:
        self._client.close()
        self._sockets.close()


def _ask(call: Callable[[], T]) -> T:
    try:
        return call()
    except BrokerResponseError as error:
        raise RequestRejected(ErrorCode(error.errno).name, str(error)) from error


def _raise_any(results: Mapping[Any, Any]) -> None:
    for error in results.values():
        if error is not NoError:
            raise RequestRejected(ErrorCode(error.errno).name)


def _describe(member: dict[str, Any]) -> MemberDescription:
    assigned = member["member_assignment"]["assigned_partitions"]
    return MemberDescription(
        instance=member["group_instance_id"],
        tps=frozenset(
            TopicAndPartition(each["topic"], partition)
            for each in assigned
            for partition in each["partitions"]
        ),
    )
