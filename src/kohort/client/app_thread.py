"""The application thread's side of the consumer: thread check, blocking calls and callbacks.

Callbacks run on the application's thread and outside the lock, so they may use the consumer. Every
blocking call has a timeout; its error says what was missing.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

from kohort.client.background_thread import BackgroundThread
from kohort.client.consumer_core import ConsumerCore
from kohort.client.errors import (
    ConsumerError,
    IllegalStateError,
    KafkaTimeoutError,
    RetriableCommitFailedError,
)
from kohort.client.fetch.offset_fetcher import OffsetAndTimestamp
from kohort.client.member.effects import AssignmentChange, CallListener
from kohort.client.member.member_events import CallbackReturned, CallId, OffsetAndMetadata
from kohort.client.options import Options
from kohort.types import Millis, Offset, Partition, Topic, TopicPartition

T = TypeVar("T")
OffsetsByPartition: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback: TypeAlias = Callable[[OffsetsByPartition, ConsumerError | None], object]
"""Called with the positions of a commit, and the error if it failed."""


class AppThread:
    def __init__(self, options: Options, background: BackgroundThread) -> None:
        self._options = options
        self._background = background
        self.is_closed = False
        self._is_in_listener = False
        self._lock = threading.RLock()
        self._callbacks: deque[Callable[[], object]] = deque()
        """Callbacks of finished commits."""

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Admit one thread at a time; the listener runs on that thread and may enter again."""
        if not self._lock.acquire(blocking=False):
            raise IllegalStateError(
                "another thread is using this consumer; create one consumer per thread"
            )
        try:
            if self.is_closed:
                raise IllegalStateError("the consumer is closed")
            yield
        finally:
            self._lock.release()

    def reject_in_listener(self, what: str) -> None:
        """A listener cannot do what waits for the listener to return."""
        if self._is_in_listener:
            raise IllegalStateError(f"a rebalance listener cannot call {what}()")

    @contextmanager
    def core(self) -> Iterator[ConsumerCore]:
        with self.acquire(), self._background as core:
            yield core

    @contextmanager
    def group_core(self) -> Iterator[ConsumerCore]:
        with self.core() as core:
            require_group(core)
            yield core

    # Blocking calls, under the lock

    def until(self, timeout_ms: int | None) -> Millis:
        wait_ms = self._options.default_api_timeout_ms if timeout_ms is None else timeout_ms
        return Millis(self._background.now() + wait_ms)

    def _wait(self, is_done: Callable[[], bool], until: Millis) -> bool:
        while not is_done():
            if self._background.now() >= until:
                return False
            self._background.wait(until)
        return True

    def _wait_or_fail(self, core: ConsumerCore, is_done: Callable[[], bool], until: Millis) -> bool:
        """Whether it became true in time. Raises if the broker does not support the request."""
        is_in_time = self._wait(lambda: is_done() or core.unsupported is not None, until)
        if core.unsupported is not None and not is_done():
            raise core.unsupported
        return is_in_time

    def _call(
        self,
        core: ConsumerCore,
        start: Callable[[Callable[[T], None]], CallId],
        timeout_ms: int | None,
        timeout_error: ConsumerError,
    ) -> T:
        """Start a call and return its result. On timeout, cancel it and raise the error."""
        results: list[T] = []
        call_id = start(results.append)
        if not self._wait_or_fail(core, lambda: bool(results), self.until(timeout_ms)):
            core.cancel_call(call_id, self._background.now())
            raise timeout_error
        return results[0]

    def wait_to_commit(self, core: ConsumerCore, until: Millis) -> None:
        """Wait until the rebalance is in a state in which the coordinator accepts the last commit.

        Otherwise a member that keeps its partitions through a rebalance would leave without
        committing, and other members would read its records again.
        """
        if self._options.enable_auto_commit and core.subscription.processed_positions():
            self._wait(lambda: core.can_commit, until)

    def commit(
        self, core: ConsumerCore, positions: OffsetsByPartition, timeout_ms: int | None
    ) -> None:
        def start(then: Callable[[ConsumerError | None], None]) -> CallId:
            return core.commit(positions, then, self._background.now())

        timeout_error = RetriableCommitFailedError(
            "timed out: the coordinator did not confirm the commit"
        )
        error = self._call(core, start, timeout_ms, timeout_error)
        if error is not None:
            raise error

    def commit_async(
        self, core: ConsumerCore, positions: OffsetsByPartition, callback: CommitCallback | None
    ) -> None:
        """Return at once; the callback runs later, on the application's thread."""

        def then(error: ConsumerError | None) -> None:
            if callback is not None:
                self._callbacks.append(lambda: callback(positions, error))

        core.commit(positions, then, self._background.now())

    def committed(
        self, core: ConsumerCore, partitions: frozenset[TopicPartition], timeout_ms: int | None
    ) -> OffsetsByPartition:
        def start(
            then: Callable[[tuple[OffsetsByPartition, ConsumerError | None]], None],
        ) -> CallId:
            now = self._background.now()
            return core.fetch_committed(partitions, lambda *result: then(result[:2]), now)

        timeout_error = KafkaTimeoutError("timed out while fetching committed offsets")
        found, error = self._call(core, start, timeout_ms, timeout_error)
        if error is not None:
            raise error
        return found

    def position(
        self, core: ConsumerCore, partition: TopicPartition, timeout_ms: int | None
    ) -> Offset:
        """The position; where it is not known yet, wait until it is found."""
        subscription = core.subscription
        state = subscription.get(partition)
        core.advance(self._background.now())

        def is_done() -> bool:
            return state.position is not None or subscription.error is not None

        if not self._wait_or_fail(core, is_done, self.until(timeout_ms)):
            topic, number = partition
            raise KafkaTimeoutError(f"timed out while looking up the position of {topic}-{number}")
        if state.position is None:
            assert subscription.error is not None
            raise subscription.error
        return state.position.offset

    def lookup(
        self,
        core: ConsumerCore,
        wanted: Mapping[TopicPartition, Millis],
        timeout_ms: int | None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Offsets by time, or of the beginning or the end."""
        lookup = core.offset_fetcher.begin(wanted, lambda *_: None)
        core.advance(self._background.now())

        def is_done() -> bool:
            return lookup.error is not None or not lookup.missing

        if not self._wait_or_fail(core, is_done, self.until(timeout_ms)):
            core.offset_fetcher.cancel(lookup)
            raise core.offset_fetcher.timeout_error(lookup)
        if lookup.error is not None:
            raise lookup.error
        return lookup.found

    def partitions(
        self, core: ConsumerCore, topic: Topic, timeout_ms: int | None
    ) -> frozenset[Partition]:
        core.requested_topics = frozenset((topic,))
        try:
            self._refresh(core, timeout_ms)
        finally:
            core.requested_topics = frozenset()
        known = core.metadata.topics.get(topic)
        return frozenset() if known is None else frozenset(known.leaders)

    def topics(self, core: ConsumerCore, timeout_ms: int | None) -> frozenset[Topic]:
        core.is_requesting_all_topics = True
        try:
            self._refresh(core, timeout_ms)
        finally:
            core.is_requesting_all_topics = False
        with_internal = not self._options.exclude_internal_topics
        topics = core.metadata.topics.items()
        return frozenset(name for name, known in topics if with_internal or not known.is_internal)

    def _refresh(self, core: ConsumerCore, timeout_ms: int | None) -> None:
        """Wait for the response of a new Metadata request."""
        metadata = core.metadata
        last_request = metadata.requests_sent
        metadata.request_update_now()
        core.advance(self._background.now())
        until = self.until(timeout_ms)
        if not self._wait_or_fail(core, lambda: metadata.request_answered > last_request, until):
            raise KafkaTimeoutError(
                "timed out while fetching topic metadata: no broker has responded"
            )

    # Callbacks, outside the lock

    def run_callbacks(self) -> None:
        while self._callbacks:
            self._callbacks.popleft()()

    def run_listener(self, call: CallListener) -> None:
        """Call the listener. Its error is raised after the member knows that it has returned."""
        with self._background as core:
            core.on_listener_call(call)
            listener = core.subscription.listener
        partitions = sorted(call.partitions)
        self._is_in_listener = True
        try:
            match call.change:
                case AssignmentChange.ASSIGNED:
                    listener.on_partitions_assigned(partitions)
                case AssignmentChange.REVOKED:
                    listener.on_partitions_revoked(partitions)
                case AssignmentChange.LOST:
                    listener.on_partitions_lost(partitions)
        finally:
            self._is_in_listener = False
            with self._background as core:
                if call.change is not AssignmentChange.ASSIGNED:
                    core.subscription.remove(call.partitions)
                core.handle_event(CallbackReturned(), self._background.now())
                core.advance(self._background.now())

    def run_listeners_until(self, is_done: Callable[[ConsumerCore], bool], until: Millis) -> bool:
        """Wait until `is_done`; run listener calls meanwhile."""
        errors: list[Exception] = []
        while True:
            with self._background as core:
                is_in_time = self._wait(lambda: is_done(core) or core.call is not None, until)
                call = core.call
            if not is_in_time or call is None:
                break
            try:
                self.run_listener(call)
            except Exception as error:  # raised below, after the wait is over
                errors.append(error)
        if errors:
            raise errors[0]
        return is_in_time


def require_group(core: ConsumerCore) -> None:
    if core.member is None:
        raise IllegalStateError("this call needs a consumer group; set group.id")
