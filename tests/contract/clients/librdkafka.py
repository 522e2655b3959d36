"""librdkafka, by its Python binding: a C library whose threads work on their own."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.contract.clients.library import (
    HEARTBEAT_MS,
    METADATA_MS,
    Lack,
    Lacking,
    Place,
    Refused,
    Seen,
    Standing,
    Told,
    Wanted,
    Written,
)
from tests.contract.clients.librdkafka_admin import LibrdkafkaAdmin
from tests.contract.clients.librdkafka_errors import refusal_of
from tests.contract.clients.librdkafka_standings import to_partitions, to_standing

_POLL_S = 0.02
_DEADLINE_S = 20

_RESETS = {"earliest": "earliest", "latest": "latest", "none": "error"}

_SILENT = {"error_cb": lambda _: None, "log_level": 0}
"""Brokers come and go here, which it would write to the terminal."""


class LibrdkafkaMember:
    def __init__(self, bootstrap_servers: str, wanted: Wanted) -> None:
        settings: dict[str, Any] = {
            **_SILENT,
            "bootstrap.servers": bootstrap_servers,
            "group.id": wanted.group,
            "group.protocol": wanted.protocol,
            "auto.offset.reset": _RESETS[wanted.reset],
            "enable.auto.commit": wanted.commits_by_itself,
            "auto.commit.interval.ms": 100,
            "fetch.wait.max.ms": 50,
            "max.partition.fetch.bytes": wanted.partition_bytes,
            "max.poll.interval.ms": wanted.poll_interval_ms,
            "topic.metadata.refresh.interval.ms": METADATA_MS,
            "isolation.level": (
                "read_committed" if wanted.is_reading_committed else "read_uncommitted"
            ),
        }
        if wanted.protocol == "classic":
            settings |= {
                "partition.assignment.strategy": ",".join(wanted.assignors),
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "session.timeout.ms": wanted.session_ms,
            }
        if wanted.instance is not None:
            settings["group.instance.id"] = wanted.instance
        self.told: list[Told] = []
        self._consumer = _make(settings)
        if wanted.pattern is not None:
            self.subscribe(f"^{wanted.pattern.removeprefix('^')}")
        elif wanted.topics:
            self.subscribe(*wanted.topics)

    def stall(self) -> None:
        """It is not polled unless somebody does."""

    def subscribe(self, *topics: str) -> None:
        self._consumer.subscribe(
            list(topics),
            on_assign=partial(self._note, "assigned"),
            on_revoke=partial(self._note, "revoked"),
            on_lost=partial(self._note, "lost"),
        )

    def assign(self, *places: Place) -> None:
        self._consumer.assign([TopicPartition(*place) for place in places])

    def poll(self) -> list[Seen]:
        messages = self._consumer.consume(500, _POLL_S)
        return [seen for message in messages if (seen := _see(message)) is not None]

    def assignment(self) -> set[Place]:
        return _places(self._consumer.assignment())

    def commit(self, standings: Mapping[Place, Standing] | None = None) -> None:
        given = {} if standings is None else {"offsets": to_partitions(standings)}
        try:
            told = self._consumer.commit(**given, asynchronous=False) or []
        except KafkaException as error:
            raise refusal_of(error.args[0]) from error
        for each in told:
            if each.error is not None:
                raise refusal_of(each.error)

    def committed(self, place: Place) -> Standing | None:
        (found,) = self._consumer.committed([TopicPartition(*place)], _DEADLINE_S)
        return to_standing(found)

    def position(self, place: Place) -> int:
        (found,) = self._consumer.position([TopicPartition(*place)])
        return int(found.offset)

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(TopicPartition(*place, offset))

    def pause(self, *places: Place) -> None:
        self._consumer.pause([TopicPartition(*place) for place in places])

    def resume(self, *places: Place) -> None:
        self._consumer.resume([TopicPartition(*place) for place in places])

    def span(self, place: Place) -> tuple[int, int]:
        low, high = self._consumer.get_watermark_offsets(TopicPartition(*place), _DEADLINE_S)
        return low, high

    def offset_for_time(self, place: Place, timestamp_ms: int) -> int | None:
        asked = TopicPartition(*place, timestamp_ms)
        (found,) = self._consumer.offsets_for_times([asked], _DEADLINE_S)
        return None if found.offset < 0 else found.offset

    def close(self) -> None:
        self._consumer.close()

    def _note(self, what: Any, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self.told.append(Told(what, frozenset(_places(partitions))))


def _make(settings: dict[str, Any]) -> Consumer:
    try:
        return Consumer(settings)
    except KafkaException as error:
        told = error.args[0].str()
        if "Unsupported partition.assignment.strategy" in told or "same protocol type" in told:
            raise Lacking(told) from error
        raise


def _places(partitions: list[TopicPartition]) -> set[Place]:
    return {Place(each.topic, each.partition) for each in partitions}


def _see(message: Message) -> Seen | None:
    error = message.error()
    if error is not None:
        if error.retriable() or error.name() == "UNKNOWN_TOPIC_OR_PART":
            return None
        raise refusal_of(error)
    kind, timestamp_ms = message.timestamp()
    assert kind in (TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME)
    return Seen(
        place=Place(_sure(message.topic()), _sure(message.partition())),
        offset=_sure(message.offset()),
        key=message.key(),
        value=message.value(),
        headers=tuple((name, _sure(text)) for name, text in _sure(message.headers() or [])),
        timestamp_ms=timestamp_ms,
    )


def _sure(found: Any) -> Any:
    """What the binding says may be missing, and is not in a record that has come."""
    assert found is not None
    return found


class Librdkafka:
    name = "confluent-kafka"
    version = f"{confluent_kafka.__version__} (librdkafka {confluent_kafka.libversion()[0]})"
    lacks: Mapping[str, Lack] = {
        "metadata-written": Lack(
            reason="The binding commits metadata with a zero byte at its end.",
            raises=AssertionError,
        ),
        "metadata-read": Lack(
            reason="The binding reads metadata beyond its end, up to the next zero byte.",
            # What is there is a matter of chance. To be looked at with every version.
            is_there=lambda: confluent_kafka.__version__ != "2.16.1",
        ),
        "both-protocols": Lack(
            reason=(
                "A consumer takes eager or cooperative assignors, not both, so that a group cannot"
                " be moved from one to the other while it is in use."
            )
        ),
        "sticky": Lack(reason="librdkafka has no eager sticky assignor, only the cooperative one."),
        "delete-offsets": Lack(reason="The binding has no call for deleting a group's offsets."),
        "remove-members": Lack(reason="The binding has no call for removing members from a group."),
    }

    def join(self, bootstrap_servers: str, wanted: Wanted) -> LibrdkafkaMember:
        return LibrdkafkaMember(bootstrap_servers, wanted)

    def administer(self, bootstrap_servers: str) -> LibrdkafkaAdmin:
        return LibrdkafkaAdmin(bootstrap_servers)

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[Written],
        *,
        codec: str = "none",
        is_idempotent: bool = False,
    ) -> list[int]:
        producer = Producer(
            {
                **_SILENT,
                "bootstrap.servers": bootstrap_servers,
                "compression.type": codec,
                "enable.idempotence": is_idempotent,
                "acks": "all",
                "linger.ms": 5,
                "message.max.bytes": 10_000_000,
            }
        )
        offsets: dict[int, int] = {}
        errors: list[KafkaError] = []

        def note(index: int, error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets[index] = _sure(message.offset())

        for index, record in enumerate(records):
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                headers=list(record.headers),
                on_delivery=partial(note, index),
                # 0 stands for now.
                timestamp=record.timestamp_ms or 0,
            )
        assert producer.flush(_DEADLINE_S) == 0
        if errors:
            raise refusal_of(errors[0])
        return [offsets[index] for index in range(len(records))]

    def produce_in_transactions(
        self, bootstrap_servers: str, topic: str, committed: bytes, aborted: bytes
    ) -> None:
        settings = {"bootstrap.servers": bootstrap_servers, "transactional.id": topic}
        producer = Producer({**_SILENT, **settings})
        try:
            producer.init_transactions(_DEADLINE_S)
            producer.begin_transaction()
            producer.produce(topic, aborted, partition=0)
            producer.flush(_DEADLINE_S)
            producer.abort_transaction(_DEADLINE_S)
            producer.begin_transaction()
            producer.produce(topic, committed, partition=0)
            producer.commit_transaction(_DEADLINE_S)
        except KafkaException as error:
            raise Refused(error.args[0].name(), error.args[0].str()) from error
