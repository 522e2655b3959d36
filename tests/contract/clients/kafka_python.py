"""kafka-python: does its work while it is polled, which it is on a thread of its own.

Each poll waits for long. Where a poll ends just when a join is completed, kafka-python 3.0.12
forgets that join and sends another: polled in short turns, a group may never come to rest. But no
poll waits for ever: what it has missed in one poll it does in the next.
"""

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import kafka
from kafka import (
    ConsumerRebalanceListener,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka.codec import has_snappy
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import (
    CommitFailedError,
    KafkaError,
    NoOffsetForPartitionError,
)

from kohort.types import ErrorCode
from tests.contract.clients.kafka_python_admin import KafkaPythonAdmin
from tests.contract.clients.kafka_python_sockets import Sockets
from tests.contract.clients.library import (
    HEARTBEAT_MS,
    METADATA_MS,
    Lack,
    Lacking,
    NoOffset,
    Place,
    Refused,
    Seen,
    Standing,
    Told,
    Wanted,
    Written,
)

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

_POLL_MS = 5_000
_DEADLINE_S = 20


def refusal_of(error: KafkaError) -> Exception:
    """One of our errors for one of its own."""
    code = getattr(error, "errno", None)
    if isinstance(error, NoOffsetForPartitionError) or code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return NoOffset(str(error))
    if isinstance(error, CommitFailedError):
        # It does not say which of the errors it was that a lost member gets.
        return Refused("UNKNOWN_MEMBER_ID", str(error))
    name = ErrorCode(code).name if code is not None else type(error).__name__
    return Refused(name, str(error))


class _Listener(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.told: list[Told] = []

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._note("assigned", assigned)

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._note("revoked", revoked)

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        self._note("lost", lost)

    def _note(
        self, what: Literal["assigned", "revoked", "lost"], partitions: Iterable[Any]
    ) -> None:
        if places := frozenset(Place(*each) for each in partitions):
            self.told.append(Told(what, places))


class KafkaPythonMember:
    def __init__(self, bootstrap_servers: str, wanted: Wanted) -> None:
        if wanted.protocol == "consumer":
            assert "group_protocol" not in KafkaConsumer.DEFAULT_CONFIG, "use it"
            raise Lacking("group_protocol")
        self._listener = _Listener()
        self._sockets = Sockets()
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            proxy_url=self._sockets.proxy_url,
            group_id=wanted.group,
            group_instance_id=wanted.instance,
            partition_assignment_strategy=[ASSIGNORS[name] for name in wanted.assignors],
            auto_offset_reset=wanted.reset,
            enable_auto_commit=wanted.commits_by_itself,
            auto_commit_interval_ms=100,
            heartbeat_interval_ms=HEARTBEAT_MS,
            session_timeout_ms=wanted.session_ms,
            max_poll_interval_ms=wanted.poll_interval_ms,
            max_partition_fetch_bytes=wanted.partition_bytes,
            isolation_level="read_committed" if wanted.is_reading_committed else "read_uncommitted",
            fetch_max_wait_ms=50,
            metadata_max_age_ms=METADATA_MS,
        )
        if wanted.pattern is not None:
            self._consumer.subscribe(pattern=wanted.pattern, listener=self._listener)
        elif wanted.topics:
            self.subscribe(*wanted.topics)
        self._come: deque[Seen] = deque()
        self._error: Exception | None = None
        self._is_closing = False
        self._is_free = threading.Event()
        self._thread = threading.Thread(target=self._keep_polling, daemon=True)
        if wanted.pattern is not None or wanted.topics:
            self.resume_polling()

    def resume_polling(self) -> None:
        self._is_free.set()
        if not self._thread.is_alive():
            self._thread.start()

    def stall(self) -> None:
        self._is_free.clear()

    def _keep_polling(self) -> None:
        try:
            while not self._is_closing:
                polled = self._consumer.poll(timeout_ms=_POLL_MS)
                self._come += [_see(record) for records in polled.values() for record in records]
                self._is_free.wait()
        except Exception as error:
            # Closed under its poll it complains in many ways, which is no news.
            self._error = None if self._is_closing else error

    @property
    def told(self) -> Sequence[Told]:
        return self._listener.told

    def subscribe(self, *topics: str) -> None:
        self._consumer.subscribe(list(topics), listener=self._listener)

    def assign(self, *places: Place) -> None:
        self._consumer.assign([TopicPartition(*place) for place in places])
        self.resume_polling()

    def poll(self) -> list[Seen]:
        self._raise_what_came()
        return [self._come.popleft() for _ in range(len(self._come))]

    def _raise_what_came(self) -> None:
        if isinstance(self._error, KafkaError):
            raise refusal_of(self._error)
        if self._error is not None:
            raise self._error

    def assignment(self) -> set[Place]:
        return {Place(*each) for each in self._consumer.assignment()}

    def commit(self, standings: Mapping[Place, Standing] | None = None) -> None:
        given = {} if standings is None else {"offsets": to_offsets(standings)}
        try:
            self._consumer.commit(**given)
        except KafkaError as error:
            raise refusal_of(error) from error

    def committed(self, place: Place) -> Standing | None:
        found = self._consumer.committed(TopicPartition(*place), metadata=True)
        return None if found is None else to_standing(found)

    def position(self, place: Place) -> int:
        return int(self._consumer.position(TopicPartition(*place)))

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(TopicPartition(*place), offset)

    def pause(self, *places: Place) -> None:
        self._consumer.pause(*(TopicPartition(*place) for place in places))

    def resume(self, *places: Place) -> None:
        self._consumer.resume(*(TopicPartition(*place) for place in places))

    def span(self, place: Place) -> tuple[int, int]:
        at = TopicPartition(*place)
        first = self._consumer.beginning_offsets([at])[at]
        return first, self._consumer.end_offsets([at])[at]

    def offset_for_time(self, place: Place, timestamp_ms: int) -> int | None:
        at = TopicPartition(*place)
        found = self._consumer.offsets_for_times({at: timestamp_ms})[at]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        self._is_closing = True
        self._is_free.set()
        self._consumer.close()
        if self._thread.is_alive():
            self._thread.join()
        self._sockets.close()


def to_offsets(standings: Mapping[Place, Standing]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition(*place): OffsetAndMetadata(
            standing.offset,
            standing.metadata,
            -1 if standing.leader_epoch is None else standing.leader_epoch,
        )
        for place, standing in standings.items()
    }


def to_standing(found: OffsetAndMetadata) -> Standing:
    return Standing(
        offset=found.offset,
        metadata=found.metadata or "",
        leader_epoch=None if found.leader_epoch in (None, -1) else found.leader_epoch,
    )


def _see(record: Any) -> Seen:
    return Seen(
        place=Place(record.topic, record.partition),
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=tuple(record.headers),
        timestamp_ms=record.timestamp,
    )


class KafkaPython:
    name = "kafka-python"
    version = kafka.__version__
    lacks: Mapping[str, Lack] = {
        "both-protocols": Lack(
            reason=(
                "A consumer takes eager or cooperative assignors, not both, so that a group cannot"
                " be moved from one to the other while it is in use."
            ),
            # Asked for it, it leaves half a client behind. To be looked at with every version.
            is_there=lambda: kafka.__version__ != "3.0.12",
        ),
        "snappy": Lack(
            reason="It leaves snappy to a library of its own, which is not installed here.",
            is_there=has_snappy,
        ),
        "consumer-protocol": Lack(reason="It has only the classic group protocol."),
    }

    def join(self, bootstrap_servers: str, wanted: Wanted) -> KafkaPythonMember:
        return KafkaPythonMember(bootstrap_servers, wanted)

    def administer(self, bootstrap_servers: str) -> KafkaPythonAdmin:
        return KafkaPythonAdmin(bootstrap_servers)

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[Written],
        *,
        codec: str = "none",
        is_idempotent: bool = False,
    ) -> list[int]:
        sockets = Sockets()
        producer = KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            proxy_url=sockets.proxy_url,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=is_idempotent,
            acks="all",
            linger_ms=5,
            max_request_size=10_000_000,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            return [future.get(_DEADLINE_S).offset for future in futures]
        except KafkaError as error:
            raise refusal_of(error) from error
        finally:
            producer.close()
            sockets.close()

    def produce_in_transactions(
        self, bootstrap_servers: str, topic: str, committed: bytes, aborted: bytes
    ) -> None:
        sockets = Sockets()
        producer = KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            proxy_url=sockets.proxy_url,
            transactional_id=topic,
        )
        try:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, aborted, partition=0).get(_DEADLINE_S)
            producer.abort_transaction()
            producer.begin_transaction()
            producer.send(topic, committed, partition=0)
            producer.commit_transaction()
        except KafkaError as error:
            raise refusal_of(error) from error
        finally:
            producer.close()
            sockets.close()
