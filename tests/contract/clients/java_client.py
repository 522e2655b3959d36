"""Kafka's Java clients, in a JVM of their own; see tests/apache/driver.py."""

import base64
import threading
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from tests.apache.driver import Driver, JavaError
from tests.apache.jars import VERSION
from tests.contract.clients.client_library import (
    HEARTBEAT_MS,
    METADATA_MS,
    CommittedOffset,
    ConsumedRecord,
    GroupDescription,
    Limitation,
    ListenerCall,
    MemberDescription,
    MemberOptions,
    NoValidOffset,
    ProducerRecord,
    RequestRejected,
    TopicAndPartition,
)

_PACKAGE = "org.apache.kafka.clients.consumer"

ASSIGNORS = {
    "range": f"{_PACKAGE}.RangeAssignor",
    "roundrobin": f"{_PACKAGE}.RoundRobinAssignor",
    "sticky": f"{_PACKAGE}.StickyAssignor",
    "cooperative-sticky": f"{_PACKAGE}.CooperativeStickyAssignor",
}

_POLL_MS = 20

_NO_OFFSET = ("NoOffsetForPartitionException", "OffsetOutOfRangeException")


_LOCK = threading.Lock()
"""Cells run in threads, and `cache` alone would let two of them start a JVM each."""


@cache
def _driver() -> Driver:
    """One JVM for all clients. It exits at the end of its input, with this process."""
    return Driver()


class _JavaObject:
    """A consumer, producer or admin client in the JVM."""

    def __init__(self, kind: str, config: Mapping[str, object]) -> None:
        with _LOCK:
            self._driver = _driver()
        self._name = self._driver.make(kind, config)

    def ask(self, what: str, /, **arguments: Any) -> Any:
        try:
            return self._driver.ask(self._name, what, **arguments)
        except JavaError as error:
            if error.kind in _NO_OFFSET:
                raise NoValidOffset(str(error)) from error
            if error.kind == "CommitFailedException":
                # The library does not report which error code the removed member received.
                raise RequestRejected("UNKNOWN_MEMBER_ID", str(error)) from error
            raise RequestRejected(error.error, str(error)) from error


class JavaMember:
    def __init__(self, bootstrap_servers: str, options: MemberOptions) -> None:
        config: dict[str, object] = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": options.group,
            "group.protocol": options.protocol,
            "auto.offset.reset": options.reset,
            "enable.auto.commit": str(options.auto_commit).lower(),
            "auto.commit.interval.ms": 100,
            "max.poll.interval.ms": options.poll_interval_ms,
            "max.partition.fetch.bytes": options.max_partition_bytes,
            "fetch.max.wait.ms": 50,
            "retry.backoff.ms": 20,
            "metadata.max.age.ms": METADATA_MS,
            "isolation.level": ("read_committed" if options.read_committed else "read_uncommitted"),
        }
        if options.protocol == "classic":
            config |= {
                "partition.assignment.strategy": ",".join(
                    map(ASSIGNORS.__getitem__, options.assignors)
                ),
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "session.timeout.ms": options.session_ms,
            }
        if options.instance is not None:
            config["group.instance.id"] = options.instance
        self._consumer = _JavaObject("consumer", config)
        if options.pattern is not None:
            self._consumer.ask("subscribe-pattern", pattern=options.pattern)
        elif options.topics:
            self.subscribe(*options.topics)

    @property
    def listener_calls(self) -> Sequence[ListenerCall]:
        found = self._consumer.ask("listener-calls")
        return [ListenerCall(what, frozenset(_tps(tps))) for what, tps in found if tps]

    def stall(self) -> None:
        """Nothing to do: it has no background polling."""

    def subscribe(self, *topics: str) -> None:
        self._consumer.ask("subscribe", topics=topics)

    def assign(self, *tps: TopicAndPartition) -> None:
        self._consumer.ask("assign", tps=tps)

    def poll(self) -> list[ConsumedRecord]:
        return [_to_consumed(record) for record in self._consumer.ask("poll", ms=_POLL_MS)]

    def assignment(self) -> set[TopicAndPartition]:
        return set(_tps(self._consumer.ask("assignment")))

    def commit(self, to_commit: Mapping[TopicAndPartition, CommittedOffset] | None = None) -> None:
        self._consumer.ask("commit", offsets=None if to_commit is None else _offsets(to_commit))

    def committed(self, tp: TopicAndPartition) -> CommittedOffset | None:
        found = self._consumer.ask("committed", tp=tp)
        return None if found is None else _committed(found)

    def position(self, tp: TopicAndPartition) -> int:
        return int(self._consumer.ask("position", tp=tp))

    def seek(self, tp: TopicAndPartition, offset: int) -> None:
        self._consumer.ask("seek", tp=tp, offset=offset)

    def pause(self, *tps: TopicAndPartition) -> None:
        self._consumer.ask("pause", tps=tps)

    def resume(self, *tps: TopicAndPartition) -> None:
        self._consumer.ask("resume", tps=tps)

    def offset_range(self, tp: TopicAndPartition) -> tuple[int, int]:
        first, last = self._consumer.ask("span", tp=tp)
        return first, last

    def offset_for_time(self, tp: TopicAndPartition, timestamp_ms: int) -> int | None:
        found: int | None = self._consumer.ask("offset-for-time", tp=tp, ms=timestamp_ms)
        return found

    def close(self) -> None:
        self._consumer.ask("close")


class JavaAdmin:
    def __init__(self, bootstrap_servers: str) -> None:
        self._admin = _JavaObject("admin", {"bootstrap.servers": bootstrap_servers})

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        self._admin.ask("create-topic", topic=topic, partitions=partitions, settings=settings)

    def grow_topic(self, topic: str, partitions: int) -> None:
        self._admin.ask("grow-topic", topic=topic, partitions=partitions)

    def delete_topic(self, topic: str) -> None:
        self._admin.ask("delete-topic", topic=topic)

    def topics(self) -> Collection[str]:
        found: list[str] = self._admin.ask("topics")
        return found

    def partitions(self, topic: str) -> int:
        return int(self._admin.ask("partitions", topic=topic))

    def brokers(self) -> Collection[str]:
        found: list[str] = self._admin.ask("brokers")
        return found

    def setting(self, topic: str, name: str) -> str | None:
        found: str | None = self._admin.ask("settings", topic=topic).get(name)
        return found

    def set(self, topic: str, name: str, value: str | None) -> None:
        self._admin.ask("set", topic=topic, name=name, value=value)

    def delete_records(self, tp: TopicAndPartition, before: int) -> int:
        return int(self._admin.ask("delete-records", tp=tp, offset=before))

    def latest_by_time(self, tp: TopicAndPartition) -> int:
        return int(self._admin.ask("latest-by-time", tp=tp))

    def describe_group(self, group: str) -> GroupDescription:
        found = self._admin.ask("describe", group=group)
        members = [
            MemberDescription(instance=each["instance"], tps=frozenset(_tps(each["tps"])))
            for each in found["members"]
        ]
        return GroupDescription(
            state=found["state"], assignor=found["assignor"], members=tuple(members)
        )

    def groups(self) -> Collection[str]:
        found: dict[str, str] = self._admin.ask("groups")
        return list(found)

    def delete_group(self, group: str) -> None:
        self._admin.ask("delete", group=group)

    def offsets(self, group: str) -> Mapping[TopicAndPartition, CommittedOffset]:
        found = self._admin.ask("offsets", group=group)
        return {TopicAndPartition(*tp): _committed(committed) for tp, committed in found}

    def alter_offsets(
        self, group: str, to_commit: Mapping[TopicAndPartition, CommittedOffset]
    ) -> None:
        self._admin.ask("alter-offsets", group=group, offsets=_offsets(to_commit))

    def delete_offsets(self, group: str, *tps: TopicAndPartition) -> None:
        self._admin.ask("delete-offsets", group=group, tps=tps)

    def remove_instance(self, group: str, instance: str) -> None:
        self._admin.ask("remove-instance", group=group, instance=instance)

    def remove_all(self, group: str) -> None:
        self._admin.ask("remove-all", group=group)

    def close(self) -> None:
        self._admin.ask("close")


class JavaLibrary:
    name = "Java kafka-clients"
    version = VERSION
    limitations: Mapping[str, Limitation] = {}

    def join(self, bootstrap_servers: str, options: MemberOptions) -> JavaMember:
        return JavaMember(bootstrap_servers, options)

    def administer(self, bootstrap_servers: str) -> JavaAdmin:
        return JavaAdmin(bootstrap_servers)

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[ProducerRecord],
        *,
        codec: str = "none",
        is_idempotent: bool = False,
    ) -> list[int]:
        config = {
            "bootstrap.servers": bootstrap_servers,
            "compression.type": codec,
            "enable.idempotence": str(is_idempotent).lower(),
            "acks": "all",
            "linger.ms": 5,
            "max.request.size": 10_000_000,
        }
        producer = _JavaObject("producer", config)
        try:
            written = [_write(record) for record in records]
            offsets: list[int] = producer.ask("produce", topic=topic, records=written)
        finally:
            producer.ask("close")
        return offsets

    def produce_in_transactions(
        self, bootstrap_servers: str, topic: str, committed: bytes, aborted: bytes
    ) -> None:
        config = {"bootstrap.servers": bootstrap_servers, "transactional.id": topic}
        producer = _JavaObject("producer", config)
        try:
            producer.ask("init-transactions")
            for value, ending in ((aborted, "abort"), (committed, "commit")):
                producer.ask("begin")
                producer.ask("produce", topic=topic, records=[_write(ProducerRecord(value=value))])
                producer.ask(f"{ending}-transaction")
        finally:
            producer.ask("close")


def _tps(found: Sequence[Any]) -> list[TopicAndPartition]:
    return [TopicAndPartition(*each) for each in found]


def _offsets(to_commit: Mapping[TopicAndPartition, CommittedOffset]) -> list[Any]:
    return [
        [tp, [committed.offset, committed.metadata, committed.leader_epoch]]
        for tp, committed in to_commit.items()
    ]


def _committed(found: Sequence[Any]) -> CommittedOffset:
    offset, metadata, leader_epoch = found
    return CommittedOffset(offset=offset, metadata=metadata, leader_epoch=leader_epoch)


def _to_consumed(record: Mapping[str, Any]) -> ConsumedRecord:
    return ConsumedRecord(
        tp=TopicAndPartition(record["topic"], record["partition"]),
        offset=record["offset"],
        key=_decode(record["key"]),
        value=_decode(record["value"]),
        headers=tuple((name, _decode(text) or b"") for name, text in record["headers"]),
        timestamp_ms=record["timestamp_ms"],
    )


def _write(record: ProducerRecord) -> dict[str, Any]:
    return {
        "partition": record.partition,
        "key": _encode(record.key),
        "value": _encode(record.value),
        "headers": [[name, _encode(text)] for name, text in record.headers],
        "timestamp_ms": record.timestamp_ms,
    }


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
