"""Writes batches to B, each once: as one idempotent producer that outlives its process.

Its id is remembered, and a batch's sequence number is the number of records before it. So B itself
refuses whatever it has already, from whichever run it comes, and however late.
"""

import time
from collections import defaultdict
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from kohort.admin.cluster import Cluster
from kohort.admin.connection import Lost
from kohort.admin.errors import name_of
from kohort.admin.migrating.leaders import Leaders, Patience
from kohort.admin.migrating.packing import SEQUENCES
from kohort.admin.migrating.reading import Reader
from kohort.admin.migrating.wish import MigrationStopped
from kohort.client.topic_partition import TopicPartition
from kohort.types import BrokerId, ErrorCode, Millis, Offset, ProducerEpoch, ProducerId
from kohort.wire.api.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from kohort.wire.batch_header import split

_ALL_IN_SYNC: Final = -1
_REPLICAS_MS: Final = Millis(30_000)
_PAUSE_S: Final = 0.1

_PASSING: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
    )
)
"""A moment later the answer may be another."""

_OVERTAKEN: Final = frozenset(
    (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    )
)
"""B has more, or less, of ours than we thought."""


class Overtaken(Exception):
    """A batch of an earlier run has arrived late: what B has must be looked up anew."""

    def __init__(self, partition: TopicPartition, reason: str) -> None:
        super().__init__(f"{partition.topic}:{partition.partition}: {reason}")


class Writer:
    """Used by one thread."""

    def __init__(self, cluster: Cluster, patience_ms: Millis) -> None:
        self._leaders = Leaders(cluster)
        self._patience_ms = patience_ms

    def new_producer(self) -> tuple[ProducerId, ProducerEpoch]:
        patience = Patience(self._patience_ms)
        body = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=Millis(-1))
        while True:
            self._leaders.learn(())
            try:
                told = self._leaders.ask(self._leaders.any_broker(), body)
                reason = name_of(told.error_code)
            except Lost as lost:
                told, reason = None, str(lost)
            if told is not None and told.error_code == ErrorCode.NONE:
                return told.producer_id, told.producer_epoch
            if told is not None and told.error_code not in _PASSING:
                raise MigrationStopped(f"B gives no producer id: {reason}")
            _pause(patience, f"B gives no producer id: {reason}")

    def write(self, batches: Mapping[TopicPartition, bytes]) -> dict[TopicPartition, Offset]:
        """One batch for each partition; the offset of its first record there."""
        pending, arrived = dict(batches), dict[TopicPartition, Offset]()
        patience = Patience(self._patience_ms)
        while pending:
            reason = "nobody leads it"
            for leader, led in self._by_leader(pending).items():
                try:
                    answer = self._leaders.ask(leader, _request(led))
                except Lost as lost:
                    reason = f"broker {leader}: {lost}"
                    continue
                for partition, told in _answers(answer):
                    failure = _judge(partition, told)
                    if failure is None:
                        arrived[partition] = told.base_offset
                        del pending[partition]
                    else:
                        reason = failure
            if pending:
                topic, number = min(pending)
                _pause(patience, f"{topic}:{number} cannot be written: {reason}")
                self._leaders.learn({each.topic for each in pending})
        return arrived

    def _by_leader(
        self, batches: Mapping[TopicPartition, bytes]
    ) -> dict[BrokerId, dict[TopicPartition, bytes]]:
        if any(self._leaders.find(each) is None for each in batches):
            self._leaders.learn({each.topic for each in batches})
        found: defaultdict[BrokerId, dict[TopicPartition, bytes]] = defaultdict(dict)
        for partition, batch in batches.items():
            leader = self._leaders.find(partition)
            if leader is not None:
                found[leader][partition] = batch
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leaders.close()


def _request(batches: Mapping[TopicPartition, bytes]) -> ProduceRequest:
    by_topic: defaultdict[Any, list[PartitionProduceData]] = defaultdict(list)
    for (topic, number), batch in batches.items():
        by_topic[topic].append(PartitionProduceData(index=number, records=batch))
    return ProduceRequest(
        acks=_ALL_IN_SYNC,
        timeout_ms=_REPLICAS_MS,
        topic_data=tuple(
            TopicProduceData(name=topic, partition_data=tuple(data))
            for topic, data in by_topic.items()
        ),
    )


def _answers(answer: Any) -> list[tuple[TopicPartition, Any]]:
    return [
        (TopicPartition(topic.name, told.index), told)
        for topic in answer.responses
        for told in topic.partition_responses
    ]


def _judge(partition: TopicPartition, told: Any) -> str | None:
    """None where it is written, and a reason where it may be later; raises where it will not be."""
    if told.error_code == ErrorCode.NONE:
        return None
    reason = told.error_message or name_of(told.error_code)
    if told.error_code in _OVERTAKEN:
        raise Overtaken(partition, reason)
    if told.error_code not in _PASSING:
        where = f"{partition.topic}:{partition.partition}"
        raise MigrationStopped(f"B does not take a batch for {where}: {reason}")
    return reason


def _pause(patience: Patience, reason: str) -> None:
    if patience.is_over():
        raise MigrationStopped(reason)
    time.sleep(_PAUSE_S)


def find_written(
    reader: Reader, producer_id: ProducerId, places: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, dict[int, tuple[int, Offset]]]:
    """What B has of ours from these places on: by sequence number, how many and where."""
    goals = reader.ends(places)
    found: dict[TopicPartition, dict[int, tuple[int, Offset]]] = {each: {} for each in places}
    for fetched in reader.read(places, goals):
        for _, header in split(fetched.content, truncated_ok=True):
            if header.producer_id == producer_id and header.base_offset >= fetched.first:
                where = found[fetched.partition]
                where[header.base_sequence] = (header.record_count, header.base_offset)
    return found


def sequence_of(copied: int) -> int:
    return copied % SEQUENCES
