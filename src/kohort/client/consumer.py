"""The public consumer. Each method takes the lock and calls the consumer core.

with kohort.Consumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
    consumer.subscribe(["orders"])
    for record in consumer:
        bill(record.value)
"""

import re
import weakref
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Final, Self, Unpack, overload

from kohort.client import log_events
from kohort.client.app_thread import AppThread, CommitCallback, require_group
from kohort.client.argument_checks import (
    Offsets,
    check_offsets,
    check_partitions,
    check_topics,
    find_pattern,
)
from kohort.client.background_thread import BackgroundThread
from kohort.client.consumer_core import ConsumerCore, ConsumerGroupMetadata
from kohort.client.errors import IllegalArgumentError
from kohort.client.fetch.completed_fetch import FetchedBatches, FetchPosition
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.client.fetch.offset_fetcher import BEGINNING, END, OffsetAndTimestamp
from kohort.client.fetch.subscription_state import SubscriptionType
from kohort.client.fetch_collector import FetchCollector
from kohort.client.member.member import MemberState
from kohort.client.member.member_events import OffsetAndMetadata, RejoinRequested, Unsubscribed
from kohort.client.options import GivenOptions, read_options
from kohort.client.rebalances import ConsumerRebalanceListener, Rebalance
from kohort.types import Millis, Offset, Partition, Topic, TopicPartition

_CLOSE_MS: Final = 30_000
_FOREVER_MS: Final = 2**53


class Consumer:
    """Reads records from a Kafka cluster, alone or as a member of a consumer group.

    Only one thread at a time may use it. Its background thread sends heartbeats while the
    application is busy. Give options as keyword arguments, or in a mapping with Kafka's dotted
    names, or both.
    """

    def __init__(
        self, config: Mapping[str, object] | None = None, /, **given: Unpack[GivenOptions]
    ) -> None:
        keywords: dict[str, object] = dict(given)
        self._options = options = read_options([*(config or {}).items(), *keywords.items()])
        self._background = background = BackgroundThread(options)
        self._app = AppThread(options, background)
        self._collector = FetchCollector(self._app, background)
        background.start()
        self._finalizer = weakref.finalize(self, _stop_unclosed, background, options.group_id)

    # Subscription

    def subscribe(
        self,
        topics: str | Iterable[str] | re.Pattern[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Subscribe to topics, or to all topics that match a pattern, as a member of the group.

        A string that begins with ^ is a pattern; it must match at the start of the name. The new
        subscription replaces the old one. The listener is called when partitions change.
        """
        if listener is not None and not isinstance(listener, ConsumerRebalanceListener):
            raise IllegalArgumentError("listener must be a kohort.ConsumerRebalanceListener")
        found = find_pattern(topics, pattern)
        names = frozenset() if found is not None else check_topics(topics)
        with self._app.group_core() as core:
            self._collector.interrupt(core)
            subscription, now = core.subscription, self._background.now()
            subscription.set_type(
                SubscriptionType.AUTO_TOPICS if found is None else SubscriptionType.AUTO_PATTERN
            )
            subscription.pattern = found
            subscription.listener = listener or ConsumerRebalanceListener()
            if found is None:
                core.subscribe(names, now)
            else:
                core.subscribe_to_matches(now)
            core.advance(now)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without group assignment. Replaces the previous assignment."""
        wanted = check_partitions(partitions)
        with self._app.core() as core:
            self._collector.interrupt(core)
            subscription, now = core.subscription, self._background.now()
            subscription.set_type(SubscriptionType.USER_ASSIGNED)
            if core.member is not None and self._options.enable_auto_commit:
                subscription.mark_all_processed()
                self._app.commit_async(core, subscription.processed_positions(), None)
            subscription.remove(subscription.states.keys() - wanted)
            subscription.add(wanted)
            core.advance(now)

    def unsubscribe(self) -> None:
        """Leave the group, or drop the assigned partitions. Calls the listener."""
        with self._app.acquire():
            self._app.reject_in_listener("unsubscribe")
            with self._background as core:
                self._collector.interrupt(core)
                is_member = core.subscription.type in (
                    SubscriptionType.AUTO_TOPICS,
                    SubscriptionType.AUTO_PATTERN,
                )
                if is_member:
                    core.handle_event(Unsubscribed(), self._background.now())
            try:
                if is_member:
                    self._app.run_listeners_until(_has_left, self._app.until(None))
            finally:
                with self._background as core:
                    core.subscription.clear()

    def subscription(self) -> frozenset[Topic]:
        """The subscribed topics: by name, or those that match the pattern."""
        with self._app.core() as core:
            return core.subscription.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned now."""
        with self._app.core() as core:
            return frozenset(core.subscription.states)

    def partitions_for_topic(
        self, topic: str, timeout_ms: int | None = None
    ) -> frozenset[Partition]:
        """The partitions of a topic; empty if the topic does not exist."""
        (name,) = check_topics([topic])
        with self._app.core() as core:
            return self._app.partitions(core, name, timeout_ms)

    def topics(self, timeout_ms: int | None = None) -> frozenset[Topic]:
        """All topics that this client is authorized to see."""
        with self._app.core() as core:
            return self._app.topics(core, timeout_ms)

    # Records

    def poll(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return records as soon as there are any, or an empty dict at the timeout.

        Records of earlier polls count as processed. Listeners run here too, so poll often: at least
        every max.poll.interval.ms.
        """
        count = self._options.max_poll_records if max_records is None else max_records
        if count < 1:
            raise IllegalArgumentError(f"max_records must be at least 1, not {count}")
        with self._app.acquire():
            slices = self._collector.poll(count, Millis(self._background.now() + timeout_ms))
        records: dict[TopicPartition, list[ConsumerRecord]] = {}
        for each in slices:
            partition = each.state.partition
            if partition in records:
                records[partition] += each.records
            else:
                records[partition] = each.records
        return records

    def poll_batches(self, timeout_ms: int = 0) -> FetchedBatches | None:
        """As `poll`, but return the undecoded batches of one partition.

        Nothing is decompressed, checked or filtered.
        """
        with self._app.acquire():
            return self._collector.poll_batches(Millis(self._background.now() + timeout_ms))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Yield records one by one; ends after consumer.timeout.ms without a record.

        A record counts as processed when the next one is requested.
        """
        limit = self._options.consumer_timeout_ms
        wait_ms = _FOREVER_MS if limit < 0 else limit
        while True:
            with self._app.acquire():
                until = Millis(self._background.now() + wait_ms)
                slices = self._collector.open(self._options.max_poll_records, until)
            if not slices:
                return
            yield from self._collector.each(slices)

    # Positions

    def position(self, partition: TopicPartition, timeout_ms: int | None = None) -> Offset:
        """The offset of the next record that poll returns."""
        with self._app.core() as core:
            self._collector.update_positions(core)
            return self._app.position(core, partition, timeout_ms)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue reading at this offset."""
        if offset < 0:
            raise IllegalArgumentError(f"offset {offset} is negative")
        with self._app.core() as core:
            self._collector.interrupt(core)
            state = core.subscription.get(partition)
            core.subscription.seek(state, FetchPosition(offset=Offset(offset)))
            core.advance(self._background.now())

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue reading at the first offset; of all assigned partitions if none is given."""
        self._reset(partitions, BEGINNING)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue reading at the end; of all assigned partitions if none is given."""
        self._reset(partitions, END)

    def _reset(self, partitions: tuple[TopicPartition, ...], to: Millis) -> None:
        with self._app.core() as core:
            self._collector.interrupt(core)
            for partition in partitions or tuple(core.subscription.states):
                core.subscription.reset(core.subscription.get(partition), to)
            core.advance(self._background.now())

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`. Causes no rebalance."""
        with self._app.core() as core:
            self._collector.interrupt(core)
            for partition in partitions:
                core.subscription.get(partition).is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        with self._app.core() as core:
            for partition in partitions:
                core.subscription.get(partition).is_paused = False
            core.advance(self._background.now())

    def paused(self) -> frozenset[TopicPartition]:
        with self._app.core() as core:
            states = core.subscription.states
            return frozenset(each for each, state in states.items() if state.is_paused)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, Offset]:
        """The first offset of each partition."""
        return self._first_or_last_offsets(partitions, BEGINNING, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, Offset]:
        """The end of each partition: the offset of its next new record."""
        return self._first_or_last_offsets(partitions, END, timeout_ms)

    def _first_or_last_offsets(
        self, partitions: Iterable[TopicPartition], which: Millis, timeout_ms: int | None
    ) -> dict[TopicPartition, Offset]:
        wanted = dict.fromkeys(sorted(check_partitions(partitions)), which)
        with self._app.core() as core:
            found = self._app.lookup(core, wanted, timeout_ms)
        return {each: offset.offset for each, offset in found.items() if offset is not None}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition with this timestamp or a later one; None if none."""
        wanted = {each: Millis(timestamp) for each, timestamp in timestamps.items()}
        if any(timestamp < 0 for timestamp in wanted.values()):
            raise IllegalArgumentError("timestamps must not be negative")
        check_partitions(wanted)
        with self._app.core() as core:
            return self._app.lookup(core, wanted, timeout_ms)

    # Commits

    def commit(self, offsets: Offsets | None = None, timeout_ms: int | None = None) -> None:
        """Commit the current positions, or the given offsets, and wait for the result."""
        with self._app.acquire():
            with self._background as core:
                positions = self._positions(core, offsets)
                if positions:
                    self._app.commit(core, positions, timeout_ms)
            self._app.run_callbacks()

    def commit_async(
        self, offsets: Offsets | None = None, callback: CommitCallback | None = None
    ) -> None:
        """Commit without waiting; a later poll, commit or close calls the callback."""
        with self._app.core() as core:
            self._app.commit_async(core, self._positions(core, offsets), callback)

    def _positions(
        self, core: ConsumerCore, offsets: Offsets | None
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        require_group(core)
        self._collector.update_positions(core)
        return core.subscription.consumed_positions() if offsets is None else check_offsets(offsets)

    @overload
    def committed(
        self, partitions: TopicPartition, timeout_ms: int | None = None
    ) -> OffsetAndMetadata | None: ...

    @overload
    def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    def committed(
        self,
        partitions: TopicPartition | Iterable[TopicPartition],
        timeout_ms: int | None = None,
    ) -> OffsetAndMetadata | dict[TopicPartition, OffsetAndMetadata | None] | None:
        """The committed offsets of one or more partitions; None without a committed offset."""
        if isinstance(partitions, TopicPartition):
            return self.committed((partitions,), timeout_ms)[partitions]
        wanted = check_partitions(partitions)
        with self._app.group_core() as core:
            found = self._app.committed(core, wanted, timeout_ms)
        return {each: found.get(each) for each in sorted(wanted)}

    # Group

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The group, generation and member id of this consumer now."""
        with self._app.group_core() as core:
            assert core.member is not None
            return ConsumerGroupMetadata(
                group_id=core.member.group_id,
                generation_id=core.member.generation,
                member_id=core.member.member_id,
                group_instance_id=self._options.group_instance_id,
                state=core.member.state,
            )

    def enforce_rebalance(self, reason: str = "") -> None:
        """Make the group rebalance, at the next poll."""
        with self._app.group_core() as core:
            core.handle_event(RejoinRequested(reason=reason), self._background.now())

    def rebalances(self) -> list[Rebalance]:
        """The last 1000 rebalances of this consumer, newest last. Works after close too."""
        with self._background as core:
            return list(core.rebalances)

    # Close

    def close(self, timeout_ms: int = _CLOSE_MS) -> None:
        """Leave the group. All records that the application was given count as processed.

        With enable.auto.commit their positions are committed. The listener is called. After
        `timeout_ms` the consumer closes without finishing this.
        """
        self._close(timeout_ms, is_failing=False)

    def abandon(self) -> None:
        """Stop without leaving the group, as if the process had been killed. For tests.

        The group rebalances when the session times out.
        """
        self._app.is_closed = True
        self._finalizer.detach()
        self._background.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """As close; if the block raised an error, its current records are not committed."""
        self._close(_CLOSE_MS, is_failing=error is not None)

    def _close(self, timeout_ms: int, *, is_failing: bool) -> None:
        if self._app.is_closed:
            return
        until = Millis(self._background.now() + timeout_ms)
        with self._app.acquire():
            self._app.reject_in_listener("close")
            try:
                with self._background as core:
                    self._collector.interrupt(core, is_failing=is_failing)
                    if not is_failing:
                        core.subscription.mark_all_processed()
                    self._app.wait_to_commit(core, until)
                    core.close(self._background.now())
                self._app.run_listeners_until(lambda core: core.is_ended, until)
                self._app.run_callbacks()
            finally:
                self._app.is_closed = True
                self._finalizer.detach()
                self._background.stop()


def _has_left(core: ConsumerCore) -> bool:
    return core.member is None or core.member.state is not MemberState.LEAVING


def _stop_unclosed(background: BackgroundThread, group: str | None) -> None:
    log_events.warn("not-closed", group=group)
    background.stop()
