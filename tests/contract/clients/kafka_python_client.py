"""kafka-python's consumer and producer. It works while it is polled, here on its own thread.

Poll timeouts are long. If a poll ends exactly when a join completes, kafka-python 3.0.12 forgets
that join and sends another one: with short polls a group may never become stable.
"""

import threading
from collections import deque
from collections.abc import Mapping, Sequence

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
from tests.contract.clients.client_library import (
    CommittedOffset,
    ConsumedRecord,
    Limitation,
    MemberOptions,
    NotSupported,
    NoValidOffset,
    ProducerRecord,
    RequestRejected,
    TopicAndPartition,
)
from tests.contract.clients.kafka_python_admin import KafkaPythonAdmin
from tests.contract.clients.kafka_python_sockets import Sockets
from tests.contract.clients.python_member import (
    PythonMember,
    RebalanceRecorder,
    consumer_options,
    to_consumed,
)

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

_POLL_MS = 5_000
_DEADLINE_S = 20


def rejection_of(error: KafkaError) -> Exception:
    """Translates an error of the library."""
    code = getattr(error, "errno", None)
    if isinstance(error, NoOffsetForPartitionError) or code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return NoValidOffset(str(error))
    if isinstance(error, CommitFailedError):
        # The library does not report which error code the removed member received.
        return RequestRejected("UNKNOWN_MEMBER_ID", str(error))
    name = ErrorCode(code).name if code is not None else type(error).__name__
    return RequestRejected(name, str(error))


class _Listener(RebalanceRecorder, ConsumerRebalanceListener):
    pass


class KafkaPythonMember(PythonMember):
    partition_type = TopicPartition

    def __init__(self, bootstrap_servers: str, options: MemberOptions) -> None:
        if options.protocol == "consumer":
            assert "group_protocol" not in KafkaConsumer.DEFAULT_CONFIG, "use it"
            raise NotSupported("group_protocol")
        self._listener = _Listener()
        self._sockets = Sockets()
        self._consumer = KafkaConsumer(
            **consumer_options(bootstrap_servers, options),
            proxy_url=self._sockets.proxy_url,
            partition_assignment_strategy=[ASSIGNORS[name] for name in options.assignors],
        )
        self.subscribe_from(options)
        self._received: deque[ConsumedRecord] = deque()
        self._error: Exception | None = None
        self._is_closing = False
        self._may_poll = threading.Event()
        self._thread = threading.Thread(target=self._poll_forever, daemon=True)
        if options.pattern is not None or options.topics:
            self.resume_polling()

    def resume_polling(self) -> None:
        self._may_poll.set()
        if not self._thread.is_alive():
            self._thread.start()

    def stall(self) -> None:
        self._may_poll.clear()

    def _poll_forever(self) -> None:
        try:
            while not self._is_closing:
                polled = self._consumer.poll(timeout_ms=_POLL_MS)
                self._received += [
                    to_consumed(record) for records in polled.values() for record in records
                ]
                self._may_poll.wait()
        except Exception as error:
            # If it is closed during a poll, it raises various errors.
            self._error = None if self._is_closing else error

    def assign(self, *tps: TopicAndPartition) -> None:
        super().assign(*tps)
        self.resume_polling()

    def poll(self) -> list[ConsumedRecord]:
        self._raise_background_error()
        return [self._received.popleft() for _ in range(len(self._received))]

    def _raise_background_error(self) -> None:
        if isinstance(self._error, KafkaError):
            raise rejection_of(self._error)
        if self._error is not None:
            raise self._error

    def commit(self, to_commit: Mapping[TopicAndPartition, CommittedOffset] | None = None) -> None:
        given = {} if to_commit is None else {"offsets": to_offsets(to_commit)}
        try:
            self._consumer.commit(**given)
        except KafkaError as error:
            raise rejection_of(error) from error

    def committed(self, tp: TopicAndPartition) -> CommittedOffset | None:
        found = self._consumer.committed(TopicPartition(*tp), metadata=True)
        return None if found is None else to_committed(found)

    def close(self) -> None:
        self._is_closing = True
        self._may_poll.set()
        self._consumer.close()
        if self._thread.is_alive():
            self._thread.join()
        self._sockets.close()


def to_offsets(
    to_commit: Mapping[TopicAndPartition, CommittedOffset],
) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition(*tp): OffsetAndMetadata(
            committed.offset,
            committed.metadata,
            -1 if committed.leader_epoch is None else committed.leader_epoch,
        )
        for tp, committed in to_commit.items()
    }


def to_committed(found: OffsetAndMetadata) -> CommittedOffset:
    return CommittedOffset(
        offset=found.offset,
        metadata=found.metadata or "",
        leader_epoch=None if found.leader_epoch in (None, -1) else found.leader_epoch,
    )


class KafkaPythonLibrary:
    name = "kafka-python"
    version = kafka.__version__
    limitations: Mapping[str, Limitation] = {
        "both-protocols": Limitation(
            reason=(
                "A consumer takes eager or cooperative assignors, not both, so that a rolling"
                " restart cannot migrate a group from one to the other."
            ),
            # The attempt leaks a client. Check this again with every version.
            is_there=lambda: kafka.__version__ != "3.0.12",
        ),
        "snappy": Limitation(
            reason="It needs a separate library for snappy, which is not installed here.",
            is_there=has_snappy,
        ),
        "consumer-protocol": Limitation(reason="It has only the classic group protocol."),
    }

    def join(self, bootstrap_servers: str, options: MemberOptions) -> KafkaPythonMember:
        return KafkaPythonMember(bootstrap_servers, options)

    def administer(self, bootstrap_servers: str) -> KafkaPythonAdmin:
        return KafkaPythonAdmin(bootstrap_servers)

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[ProducerRecord],
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
            raise rejection_of(error) from error
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
            raise rejection_of(error) from error
        finally:
            producer.close()
            sockets.close()
