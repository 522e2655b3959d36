"""Kafka's own Java clients, driven in a process of their own."""

import base64
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from tests.apache.driver import Driver, JavaError
from tests.apache.jars import VERSION
from tests.contract.clients.library import (
    HEARTBEAT_MS,
    METADATA_MS,
    Described,
    DescribedMember,
    Lack,
    NoOffset,
    Place,
    Refused,
    Seen,
    Standing,
    Told,
    Wanted,
    Written,
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


@cache
def _driver() -> Driver:
    """One JVM for all of them. It ends when this process does, since then its input ends."""
    return Driver()


class _Thing:
    """A consumer, a producer or an administrator in the JVM."""

    def __init__(self, kind: str, config: Mapping[str, object]) -> None:
        self._driver = _driver()
        self._name = self._driver.make(kind, config)

    def ask(self, what: str, /, **arguments: Any) -> Any:
        try:
            return self._driver.ask(self._name, what, **arguments)
        except JavaError as error:
            if error.kind in _NO_OFFSET:
                raise NoOffset(str(error)) from error
            if error.kind == "CommitFailedException":
                # It does not say which of the errors it was that a lost member gets.
                raise Refused("UNKNOWN_MEMBER_ID", str(error)) from error
            raise Refused(error.error, str(error)) from error


class JavaMember:
    def __init__(self, bootstrap_servers: str, wanted: Wanted) -> None:
        config: dict[str, object] = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": wanted.group,
            "group.protocol": wanted.protocol,
            "auto.offset.reset": wanted.reset,
            "enable.auto.commit": str(wanted.commits_by_itself).lower(),
            "auto.commit.interval.ms": 100,
            "max.poll.interval.ms": wanted.poll_interval_ms,
            "max.partition.fetch.bytes": wanted.partition_bytes,
            "fetch.max.wait.ms": 50,
            "retry.backoff.ms": 20,
            "metadata.max.age.ms": METADATA_MS,
            "isolation.level": (
                "read_committed" if wanted.is_reading_committed else "read_uncommitted"
            ),
        }
        if wanted.protocol == "classic":
            config |= {
                "partition.assignment.strategy": ",".join(
                    map(ASSIGNORS.__getitem__, wanted.assignors)
                ),
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "session.timeout.ms": wanted.session_ms,
            }
        if wanted.instance is not None:
            config["group.instance.id"] = wanted.instance
        self._consumer = _Thing("consumer", config)
        if wanted.pattern is not None:
            self._consumer.ask("subscribe-pattern", pattern=wanted.pattern)
        elif wanted.topics:
            self.subscribe(*wanted.topics)

    @property
    def told(self) -> Sequence[Told]:
        found = self._consumer.ask("told")
        return [Told(what, frozenset(_places(places))) for what, places in found if places]

    def stall(self) -> None:
        """It is not polled unless somebody does."""

    def subscribe(self, *topics: str) -> None:
        self._consumer.ask("subscribe", topics=topics)

    def assign(self, *places: Place) -> None:
        self._consumer.ask("assign", places=places)

    def poll(self) -> list[Seen]:
        return [_see(record) for record in self._consumer.ask("poll", ms=_POLL_MS)]

    def assignment(self) -> set[Place]:
        return set(_places(self._consumer.ask("assignment")))

    def commit(self, standings: Mapping[Place, Standing] | None = None) -> None:
        self._consumer.ask("commit", offsets=None if standings is None else _offsets(standings))

    def committed(self, place: Place) -> Standing | None:
        found = self._consumer.ask("committed", place=place)
        return None if found is None else _standing(found)

    def position(self, place: Place) -> int:
        return int(self._consumer.ask("position", place=place))

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.ask("seek", place=place, offset=offset)

    def pause(self, *places: Place) -> None:
        self._consumer.ask("pause", places=places)

    def resume(self, *places: Place) -> None:
        self._consumer.ask("resume", places=places)

    def span(self, place: Place) -> tuple[int, int]:
        first, last = self._consumer.ask("span", place=place)
        return first, last

    def offset_for_time(self, place: Place, timestamp_ms: int) -> int | None:
        found: int | None = self._consumer.ask("offset-for-time", place=place, ms=timestamp_ms)
        return found

    def close(self) -> None:
        self._consumer.ask("close")


class JavaAdmin:
    def __init__(self, bootstrap_servers: str) -> None:
        self._admin = _Thing("admin", {"bootstrap.servers": bootstrap_servers})

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

    def delete_records(self, place: Place, before: int) -> int:
        return int(self._admin.ask("delete-records", place=place, offset=before))

    def latest_by_time(self, place: Place) -> int:
        return int(self._admin.ask("latest-by-time", place=place))

    def describe_group(self, group: str) -> Described:
        found = self._admin.ask("describe", group=group)
        members = [
            DescribedMember(instance=each["instance"], places=frozenset(_places(each["places"])))
            for each in found["members"]
        ]
        return Described(state=found["state"], assignor=found["assignor"], members=tuple(members))

    def groups(self) -> Collection[str]:
        found: dict[str, str] = self._admin.ask("groups")
        return list(found)

    def delete_group(self, group: str) -> None:
        self._admin.ask("delete", group=group)

    def offsets(self, group: str) -> Mapping[Place, Standing]:
        found = self._admin.ask("offsets", group=group)
        return {Place(*place): _standing(standing) for place, standing in found}

    def alter_offsets(self, group: str, standings: Mapping[Place, Standing]) -> None:
        self._admin.ask("alter-offsets", group=group, offsets=_offsets(standings))

    def delete_offsets(self, group: str, *places: Place) -> None:
        self._admin.ask("delete-offsets", group=group, places=places)

    def remove_instance(self, group: str, instance: str) -> None:
        self._admin.ask("remove-instance", group=group, instance=instance)

    def remove_all(self, group: str) -> None:
        self._admin.ask("remove-all", group=group)

    def close(self) -> None:
        self._admin.ask("close")


class Java:
    name = "Java kafka-clients"
    version = VERSION
    lacks: Mapping[str, Lack] = {}

    def join(self, bootstrap_servers: str, wanted: Wanted) -> JavaMember:
        return JavaMember(bootstrap_servers, wanted)

    def administer(self, bootstrap_servers: str) -> JavaAdmin:
        return JavaAdmin(bootstrap_servers)

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[Written],
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
        producer = _Thing("producer", config)
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
        producer = _Thing("producer", config)
        try:
            producer.ask("init-transactions")
            for value, ending in ((aborted, "abort"), (committed, "commit")):
                producer.ask("begin")
                producer.ask("produce", topic=topic, records=[_write(Written(value=value))])
                producer.ask(f"{ending}-transaction")
        finally:
            producer.ask("close")


def _places(found: Sequence[Any]) -> list[Place]:
    return [Place(*each) for each in found]


def _offsets(standings: Mapping[Place, Standing]) -> list[Any]:
    return [
        [place, [standing.offset, standing.metadata, standing.leader_epoch]]
        for place, standing in standings.items()
    ]


def _standing(found: Sequence[Any]) -> Standing:
    offset, metadata, leader_epoch = found
    return Standing(offset=offset, metadata=metadata, leader_epoch=leader_epoch)


def _see(record: Mapping[str, Any]) -> Seen:
    return Seen(
        place=Place(record["topic"], record["partition"]),
        offset=record["offset"],
        key=_decode(record["key"]),
        value=_decode(record["value"]),
        headers=tuple((name, _decode(text) or b"") for name, text in record["headers"]),
        timestamp_ms=record["timestamp_ms"],
    )


def _write(record: Written) -> dict[str, Any]:
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
