"""Reads ranges of partitions as raw record batches."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import AdminError
from kohort.admin.migration.migration_types import MigrationStopped
from kohort.admin.migration.rebatch import end_of
from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError
from kohort.client.fetch.completed_fetch import FetchedBatches
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.protocol.blocking_connection import monotonic_ms
from kohort.types import ErrorCode, Millis, Offset, TopicPartition
from kohort.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kohort.wire.errors import MalformedMessage

_POLL_MS: Final = 200
_LEADER_MS: Final = Millis(5_000)
_FETCH_BY_NAME: Final = 12
"""From version 13 on, Fetch uses topic ids."""
_IDLE_S: Final = 2.0
"""After this time without records, check whether the log has any left."""


class StallTimer:
    """A timeout that every progress restarts."""

    def __init__(self, stall_timeout_ms: Millis) -> None:
        self._stall_timeout_ms = stall_timeout_ms
        self.restart()

    def restart(self) -> None:
        self._deadline = monotonic_ms() + self._stall_timeout_ms

    def has_expired(self) -> bool:
        return monotonic_ms() >= self._deadline


class ClusterReader:
    """Reads the source with read_committed, the target with read_uncommitted."""

    def __init__(
        self, cluster: Cluster, stall_timeout_ms: Millis, *, is_committed_only: bool
    ) -> None:
        self.cluster = cluster
        self._stall_timeout_ms = stall_timeout_ms
        self._is_committed_only = is_committed_only
        self._consumer = Consumer(
            bootstrap_servers=cluster.bootstrap_servers,
            client_id=cluster.settings.client_id,
            enable_auto_commit=False,
            # Records that retention deletes meanwhile are skipped.
            auto_offset_reset="earliest",
            isolation_level="read_committed" if is_committed_only else "read_uncommitted",
            allow_auto_create_topics=False,
            default_api_timeout_ms=stall_timeout_ms,
        )

    def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        with _as_migration_stopped():
            return self._consumer.beginning_offsets(partitions)

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Log end offsets; with read_committed, the last stable offsets."""
        with _as_migration_stopped():
            return self._consumer.end_offsets(partitions)

    def read(
        self, starts: Mapping[TopicPartition, Offset], ends: Mapping[TopicPartition, Offset]
    ) -> Iterator[FetchedBatches]:
        """Batches from `starts` until each partition has reached its end offset."""
        with _as_migration_stopped():
            pending = {each: end for each, end in ends.items() if starts[each] < end}
            self._consumer.assign(pending)
            for partition in pending:
                self._consumer.seek(partition, starts[partition])
            timer, progress_at = StallTimer(self._stall_timeout_ms), time.monotonic()
            while pending:
                fetched = self._consumer.poll_batches(_POLL_MS)
                if fetched is not None:
                    position = end_of(fetched)
                    yield fetched
                    timer.restart()
                    progress_at = time.monotonic()
                    reached = [fetched.partition] if position >= pending[fetched.partition] else []
                elif time.monotonic() - progress_at > _IDLE_S:
                    reached = [
                        each for each, end in pending.items() if self._has_no_more(each, end)
                    ]
                    progress_at = time.monotonic()
                else:
                    continue
                if reached:
                    timer.restart()
                    pending = {each: end for each, end in pending.items() if each not in reached}
                    self._consumer.assign(pending)
                if timer.has_expired():
                    names = ", ".join(f"{topic}:{number}" for topic, number in sorted(pending))
                    waited = self._stall_timeout_ms // 1000
                    raise MigrationStopped(f"timed out after {waited} s: no records from {names}")

    def read_first(
        self, partition: TopicPartition, offset: Offset, end: Offset
    ) -> ConsumerRecord | None:
        """The first record at or after this offset; None if there is none before the end."""
        with _as_migration_stopped():
            self._consumer.assign([partition])
            self._consumer.seek(partition, offset)
            timer, progress_at = StallTimer(self._stall_timeout_ms), time.monotonic()
            while self._consumer.position(partition) < end:
                found = self._consumer.poll(_POLL_MS, max_records=1).get(partition)
                if found:
                    return found[0]
                if time.monotonic() - progress_at > _IDLE_S:
                    if self._has_no_more(partition, end):
                        return None
                    progress_at = time.monotonic()
                if timer.has_expired():
                    name = f"{partition.topic}:{partition.partition}"
                    raise MigrationStopped(f"timed out reading {name} at offset {offset}")
            return None

    def _has_no_more(self, partition: TopicPartition, end: Offset) -> bool:
        """Whether no record is left before `end`, although the position is before it.

        Retention may have deleted the records. Or compaction has left offsets without records at
        the end of the log, which no reader gets past. Only an empty response of the leader proves
        it; without a response the result is False.
        """
        position = self._consumer.position(partition)
        if position >= end:
            return True
        partition_request = FetchPartition(
            partition=partition.partition, fetch_offset=position, partition_max_bytes=1
        )
        body = FetchRequest(
            max_wait_ms=Millis(0),
            min_bytes=0,
            isolation_level=int(self._is_committed_only),
            topics=(FetchTopic(topic=partition.topic, partitions=(partition_request,)),),
        )
        try:
            responses = self.cluster.router.send_to_leaders(
                [partition],
                lambda _: body,
                _split_fetch,
                timeout_ms=_LEADER_MS,
                version_max=_FETCH_BY_NAME,
            )
        except AdminError:
            return False
        response = responses[partition]
        return (
            response.error_code == ErrorCode.NONE
            and response.body is not None
            and not response.body.records
        )

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _split_fetch(response: FetchResponse) -> Iterator[tuple[TopicPartition, int, PartitionData]]:
    for topic in response.responses:
        for each in topic.partitions:
            yield TopicPartition(topic.topic, each.partition_index), each.error_code, each


@contextmanager
def _as_migration_stopped() -> Iterator[None]:
    try:
        yield
    except ConsumerError as error:
        raise MigrationStopped(str(error)) from error
    except MalformedMessage as error:
        raise MigrationStopped(f"a record batch is corrupt: {error}") from error
