"""Shared by members of the libraries with kafka-python's interface."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Literal, TypeVar

from tests.contract.clients.client_library import (
    HEARTBEAT_MS,
    METADATA_MS,
    ConsumedRecord,
    ListenerCall,
    MemberOptions,
    TopicAndPartition,
)

T = TypeVar("T")


class RebalanceRecorder:
    """Records the calls of a rebalance listener; combined with the base class of each library."""

    def __init__(self) -> None:
        self.listener_calls: list[ListenerCall] = []

    def on_partitions_assigned(self, partitions: Iterable[Any]) -> None:
        self._note("assigned", partitions)

    def on_partitions_revoked(self, partitions: Iterable[Any]) -> None:
        self._note("revoked", partitions)

    def on_partitions_lost(self, partitions: Iterable[Any]) -> None:
        self._note("lost", partitions)

    def _note(
        self, what: Literal["assigned", "revoked", "lost"], partitions: Iterable[Any]
    ) -> None:
        if tps := frozenset(TopicAndPartition(*each) for each in partitions):
            self.listener_calls.append(ListenerCall(what, tps))


class PythonMember:
    partition_type: ClassVar[Callable[..., Any]]
    """The library's TopicPartition."""
    _consumer: Any
    _listener: RebalanceRecorder

    def _ask(self, call: Callable[[], Any]) -> Any:
        """Call the library; a subclass awaits, or translates errors."""
        return call()

    @property
    def listener_calls(self) -> Sequence[ListenerCall]:
        return self._listener.listener_calls

    def stall(self) -> None:
        """It is not polled unless a test polls it."""

    def subscribe(self, *topics: str) -> None:
        self._ask(lambda: self._consumer.subscribe(list(topics), listener=self._listener))

    def subscribe_from(self, options: MemberOptions) -> None:
        if options.pattern is not None:
            self._consumer.subscribe(pattern=options.pattern, listener=self._listener)
        elif options.topics:
            self._consumer.subscribe(list(options.topics), listener=self._listener)

    def assign(self, *tps: TopicAndPartition) -> None:
        self._ask(lambda: self._consumer.assign(self._all_at(tps)))

    def assignment(self) -> set[TopicAndPartition]:
        return {TopicAndPartition(*each) for each in self._consumer.assignment()}

    def position(self, tp: TopicAndPartition) -> int:
        return int(self._ask(lambda: self._consumer.position(self._at(tp))))

    def seek(self, tp: TopicAndPartition, offset: int) -> None:
        self._ask(lambda: self._consumer.seek(self._at(tp), offset))

    def pause(self, *tps: TopicAndPartition) -> None:
        self._ask(lambda: self._consumer.pause(*self._all_at(tps)))

    def resume(self, *tps: TopicAndPartition) -> None:
        self._ask(lambda: self._consumer.resume(*self._all_at(tps)))

    def offset_range(self, tp: TopicAndPartition) -> tuple[int, int]:
        at = self._at(tp)
        first = self._ask(lambda: self._consumer.beginning_offsets([at]))[at]
        return first, self._ask(lambda: self._consumer.end_offsets([at]))[at]

    def offset_for_time(self, tp: TopicAndPartition, timestamp_ms: int) -> int | None:
        at = self._at(tp)
        found = self._ask(lambda: self._consumer.offsets_for_times({at: timestamp_ms}))[at]
        return None if found is None else int(found.offset)

    def _at(self, tp: TopicAndPartition) -> Any:
        return type(self).partition_type(*tp)

    def _all_at(self, tps: Iterable[TopicAndPartition]) -> list[Any]:
        return [self._at(tp) for tp in tps]


def consumer_options(bootstrap_servers: str, options: MemberOptions) -> dict[str, Any]:
    """All options but the assignors, which libraries name differently."""
    return {
        "bootstrap_servers": bootstrap_servers,
        "group_id": options.group,
        "group_instance_id": options.instance,
        "auto_offset_reset": options.reset,
        "enable_auto_commit": options.auto_commit,
        "auto_commit_interval_ms": 100,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "session_timeout_ms": options.session_ms,
        "max_poll_interval_ms": options.poll_interval_ms,
        "max_partition_fetch_bytes": options.max_partition_bytes,
        "isolation_level": "read_committed" if options.read_committed else "read_uncommitted",
        "fetch_max_wait_ms": 50,
        "metadata_max_age_ms": METADATA_MS,
    }


def to_consumed(record: Any) -> ConsumedRecord:
    return ConsumedRecord(
        tp=TopicAndPartition(record.topic, record.partition),
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=tuple(record.headers),
        timestamp_ms=record.timestamp,
    )
