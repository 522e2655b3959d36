"""Reads partitions of a cluster from here to there, in batches as its brokers keep them."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from kohort.admin.cluster import Cluster
from kohort.admin.connection import Lost
from kohort.admin.migrating.leaders import Leaders, Patience
from kohort.admin.migrating.packing import end_of
from kohort.admin.migrating.wish import MigrationStopped
from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError
from kohort.client.fetching.parcel import FetchedBatches
from kohort.client.fetching.records import ConsumerRecord
from kohort.client.topic_partition import TopicPartition
from kohort.types import ErrorCode, Millis, Offset
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.errors import MalformedMessage

_POLL_MS: Final = 200
_QUIET_S: Final = 2.0
"""After so long without anything it is asked whether there is anything."""


class Reader:
    """Of A only what is committed; of B all there is."""

    def __init__(self, cluster: Cluster, patience_ms: Millis, *, is_committed_only: bool) -> None:
        self.cluster = cluster
        self._patience_ms = patience_ms
        self._is_committed_only = is_committed_only
        self._leaders = Leaders(cluster)
        self._consumer = Consumer(
            bootstrap_servers=cluster.bootstrap_servers,
            client_id=cluster.settings.client_id,
            enable_auto_commit=False,
            # What A has let go of meanwhile is gone; reading goes on with what is left.
            auto_offset_reset="earliest",
            isolation_level="read_committed" if is_committed_only else "read_uncommitted",
            allow_auto_create_topics=False,
            default_api_timeout_ms=patience_ms,
        )

    def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        with _stopping():
            return self._consumer.beginning_offsets(partitions)

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Where logs end now; of A, where the first open transaction begins."""
        with _stopping():
            return self._consumer.end_offsets(partitions)

    def read(
        self, places: Mapping[TopicPartition, Offset], goals: Mapping[TopicPartition, Offset]
    ) -> Iterator[FetchedBatches]:
        """All from these places on, until each partition has come to its goal or beyond it."""
        with _stopping():
            open_ = {each: goal for each, goal in goals.items() if places[each] < goal}
            self._consumer.assign(open_)
            for partition in open_:
                self._consumer.seek(partition, places[partition])
            patience, heard_at = Patience(self._patience_ms), time.monotonic()
            while open_:
                fetched = self._consumer.poll_batches(_POLL_MS)
                if fetched is not None:
                    place = end_of(fetched)
                    yield fetched
                    patience.renew()
                    heard_at = time.monotonic()
                    reached = [fetched.partition] if place >= open_[fetched.partition] else []
                elif time.monotonic() - heard_at > _QUIET_S:
                    reached = [each for each, goal in open_.items() if self._is_over(each, goal)]
                    heard_at = time.monotonic()
                else:
                    continue
                if reached:
                    patience.renew()
                    open_ = {each: goal for each, goal in open_.items() if each not in reached}
                    self._consumer.assign(open_)
                if patience.is_over():
                    names = ", ".join(f"{topic}:{number}" for topic, number in sorted(open_))
                    waited = self._patience_ms // 1000
                    raise MigrationStopped(f"nothing came of {names} for {waited} s")

    def read_first(
        self, partition: TopicPartition, offset: Offset, end: Offset
    ) -> ConsumerRecord | None:
        """The first record at or behind this offset; None if there is none before the end."""
        with _stopping():
            self._consumer.assign([partition])
            self._consumer.seek(partition, offset)
            patience, heard_at = Patience(self._patience_ms), time.monotonic()
            while self._consumer.position(partition) < end:
                found = self._consumer.poll(_POLL_MS, max_records=1).get(partition)
                if found:
                    return found[0]
                if time.monotonic() - heard_at > _QUIET_S:
                    if self._is_over(partition, end):
                        return None
                    heard_at = time.monotonic()
                if patience.is_over():
                    name = f"{partition.topic}:{partition.partition}"
                    raise MigrationStopped(f"{name} cannot be read at {offset}")
            return None

    def _is_over(self, partition: TopicPartition, goal: Offset) -> bool:
        """Whether nothing is left to come, though nothing came that reaches the goal.

        The log may have let go of all that there was. Or compaction has left a log that has offsets
        at its end and nothing at any of them, and no reader ever gets past such an end. Only the
        leader's own word counts: where it does not answer, nothing is known.
        """
        place = self._consumer.position(partition)
        if place >= goal:
            return True
        self._leaders.learn([partition.topic])
        leader = self._leaders.find(partition)
        if leader is None:
            return False
        asked = FetchPartition(
            partition=partition.partition, fetch_offset=place, partition_max_bytes=1
        )
        body = FetchRequest(
            max_wait_ms=Millis(0),
            min_bytes=0,
            isolation_level=int(self._is_committed_only),
            topics=(FetchTopic(topic=partition.topic, partitions=(asked,)),),
        )
        try:
            (topic,) = self._leaders.ask(leader, body).responses
        except Lost:
            return False
        (told,) = topic.partitions
        return told.error_code == ErrorCode.NONE and not told.records

    def close(self) -> None:
        self._leaders.close()
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


@contextmanager
def _stopping() -> Iterator[None]:
    try:
        yield
    except ConsumerError as error:
        raise MigrationStopped(str(error)) from error
    except MalformedMessage as error:
        raise MigrationStopped(f"a batch cannot be read: {error}") from error
