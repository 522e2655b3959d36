"""confluent-kafka, the Python binding of librdkafka, which works on background threads."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
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

from tests.contract.clients.client_library import (
    HEARTBEAT_MS,
    METADATA_MS,
    CommittedOffset,
    ConsumedRecord,
    Limitation,
    ListenerCall,
    MemberOptions,
    NotSupported,
    ProducerRecord,
    RequestRejected,
    TopicAndPartition,
)
from tests.contract.clients.librdkafka_admin import LibrdkafkaAdmin
from tests.contract.clients.librdkafka_values import rejection_of, to_committed, to_partitions

_POLL_S = 0.02
_DEADLINE_S = 20

_RESETS = {"earliest": "earliest", "latest": "latest", "none": "error"}

_QUIET = {"error_cb": lambda _: None, "log_level": 0}
"""Brokers start and stop here; librdkafka would log that to the terminal."""


class LibrdkafkaMember:
    def __init__(self, bootstrap_servers: str, options: MemberOptions) -> None:
        settings: dict[str, Any] = {
            **_QUIET,
            "bootstrap.servers": bootstrap_servers,
            "group.id": options.group,
            "group.protocol": options.protocol,
            "auto.offset.reset": _RESETS[options.reset],
            "enable.auto.commit": options.auto_commit,
            "auto.commit.interval.ms": 100,
            "fetch.wait.max.ms": 50,
            "max.partition.fetch.bytes": options.max_partition_bytes,
            "max.poll.interval.ms": options.poll_interval_ms,
            "topic.metadata.refresh.interval.ms": METADATA_MS,
            "isolation.level": ("read_committed" if options.read_committed else "read_uncommitted"),
        }
        if options.protocol == "classic":
            settings |= {
                "partition.assignment.strategy": ",".join(options.assignors),
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "session.timeout.ms": options.session_ms,
            }
        if options.instance is not None:
            settings["group.instance.id"] = options.instance
        self.listener_calls: list[ListenerCall] = []
        self._consumer = _new_consumer(settings)
        if options.pattern is not None:
            self.subscribe(f"^{options.pattern.removeprefix('^')}")
        elif options.topics:
            self.subscribe(*options.topics)

    def stall(self) -> None:
        """Nothing to do: it has no background polling."""

    def subscribe(self, *topics: str) -> None:
        self._consumer.subscribe(
            list(topics),
            on_assign=partial(self._note, "assigned"),
            on_revoke=partial(self._note, "revoked"),
            on_lost=partial(self._note, "lost"),
        )

    def assign(self, *tps: TopicAndPartition) -> None:
        self._consumer.assign([TopicPartition(*tp) for tp in tps])

    def poll(self) -> list[ConsumedRecord]:
        messages = self._consumer.consume(500, _POLL_S)
        return [seen for message in messages if (seen := _to_consumed(message)) is not None]

    def assignment(self) -> set[TopicAndPartition]:
        return _tps(self._consumer.assignment())

    def commit(self, to_commit: Mapping[TopicAndPartition, CommittedOffset] | None = None) -> None:
        given = {} if to_commit is None else {"offsets": to_partitions(to_commit)}
        try:
            results = self._consumer.commit(**given, asynchronous=False) or []
        except KafkaException as error:
            raise rejection_of(error.args[0]) from error
        for each in results:
            if each.error is not None:
                raise rejection_of(each.error)

    def committed(self, tp: TopicAndPartition) -> CommittedOffset | None:
        (found,) = self._consumer.committed([TopicPartition(*tp)], _DEADLINE_S)
        return to_committed(found)

    def position(self, tp: TopicAndPartition) -> int:
        (found,) = self._consumer.position([TopicPartition(*tp)])
        return int(found.offset)

    def seek(self, tp: TopicAndPartition, offset: int) -> None:
        self._consumer.seek(TopicPartition(*tp, offset))

    def pause(self, *tps: TopicAndPartition) -> None:
        self._consumer.pause([TopicPartition(*tp) for tp in tps])

    def resume(self, *tps: TopicAndPartition) -> None:
        self._consumer.resume([TopicPartition(*tp) for tp in tps])

    def offset_range(self, tp: TopicAndPartition) -> tuple[int, int]:
        low, high = self._consumer.get_watermark_offsets(TopicPartition(*tp), _DEADLINE_S)
        return low, high

    def offset_for_time(self, tp: TopicAndPartition, timestamp_ms: int) -> int | None:
        asked = TopicPartition(*tp, timestamp_ms)
        (found,) = self._consumer.offsets_for_times([asked], _DEADLINE_S)
        return None if found.offset < 0 else found.offset

    def close(self) -> None:
        self._consumer.close()

    def _note(self, what: Any, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self.listener_calls.append(ListenerCall(what, frozenset(_tps(partitions))))


def _new_consumer(settings: dict[str, Any]) -> Consumer:
    try:
        return Consumer(settings)
    except KafkaException as error:
        message = error.args[0].str()
        if (
            "Unsupported partition.assignment.strategy" in message
            or "same protocol type" in message
        ):
            raise NotSupported(message) from error
        raise


def _tps(partitions: list[TopicPartition]) -> set[TopicAndPartition]:
    return {TopicAndPartition(each.topic, each.partition) for each in partitions}


def _to_consumed(message: Message) -> ConsumedRecord | None:
    error = message.error()
    if error is not None:
        if error.retriable() or error.name() == "UNKNOWN_TOPIC_OR_PART":
            return None
        raise rejection_of(error)
    kind, timestamp_ms = message.timestamp()
    assert kind in (TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME)
    return ConsumedRecord(
        tp=TopicAndPartition(_required(message.topic()), _required(message.partition())),
        offset=_required(message.offset()),
        key=message.key(),
        value=message.value(),
        headers=tuple((name, _required(text)) for name, text in _required(message.headers() or [])),
        timestamp_ms=timestamp_ms,
    )


def _required(found: Any) -> Any:
    """For values that the binding's types declare optional and that a delivered record has."""
    assert found is not None
    return found


class LibrdkafkaLibrary:
    name = "confluent-kafka"
    version = f"{confluent_kafka.__version__} (librdkafka {confluent_kafka.libversion()[0]})"
    limitations: Mapping[str, Limitation] = {
        "metadata-written": Limitation(
            reason="The binding commits metadata with a zero byte at its end.",
            raises=AssertionError,
        ),
        "metadata-read": Limitation(
            reason="The binding reads metadata beyond its end, up to the next zero byte.",
            # The bytes there are random. Check this again with every version.
            is_there=lambda: confluent_kafka.__version__ != "2.16.1",
        ),
        "both-protocols": Limitation(
            reason=(
                "A consumer takes eager or cooperative assignors, not both, so that a rolling"
                " restart cannot migrate a group from one to the other."
            )
        ),
        "sticky": Limitation(
            reason="librdkafka has no eager sticky assignor, only the cooperative one."
        ),
        "delete-offsets": Limitation(
            reason="The binding has no call for deleting a group's offsets."
        ),
        "remove-members": Limitation(
            reason="The binding has no call for removing members from a group."
        ),
    }

    def join(self, bootstrap_servers: str, options: MemberOptions) -> LibrdkafkaMember:
        return LibrdkafkaMember(bootstrap_servers, options)

    def administer(self, bootstrap_servers: str) -> LibrdkafkaAdmin:
        return LibrdkafkaAdmin(bootstrap_servers)

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[ProducerRecord],
        *,
        codec: str = "none",
        is_idempotent: bool = False,
    ) -> list[int]:
        settings = {
            **_QUIET,
            "bootstrap.servers": bootstrap_servers,
            "compression.type": codec,
            "enable.idempotence": is_idempotent,
            "acks": "all",
            "linger.ms": 5,
            "message.max.bytes": 10_000_000,
        }
        offsets: dict[int, int] = {}
        errors: list[KafkaError] = []

        def on_delivery(index: int, error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets[index] = _required(message.offset())

        # Not a `with` block: after an exception, __exit__ of 2.16.1 raises SystemError.
        producer = Producer(settings)
        try:
            for index, record in enumerate(records):
                producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    on_delivery=partial(on_delivery, index),
                    # 0 means now.
                    timestamp=record.timestamp_ms or 0,
                )
            assert producer.flush(_DEADLINE_S) == 0
        finally:
            producer.close()
        if errors:
            raise rejection_of(errors[0])
        return [offsets[index] for index in range(len(records))]

    def produce_in_transactions(
        self, bootstrap_servers: str, topic: str, committed: bytes, aborted: bytes
    ) -> None:
        settings = {"bootstrap.servers": bootstrap_servers, "transactional.id": topic}
        producer = Producer({**_QUIET, **settings})
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
            raise RequestRejected(error.args[0].name(), error.args[0].str()) from error
        finally:
            # After a fatal error close() raises that error again.
            with suppress(KafkaException):
                producer.close()
            del producer
