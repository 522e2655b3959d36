"""The simulated application of a member: it polls, processes records and commits.

It has one thread. Listeners run on that thread, in poll, and not while it processes records or is
blocked. It uses the consumer core as `kohort.Consumer` does, with callbacks instead of blocking
calls.
"""

from collections.abc import Callable
from typing import Final

from kohort.client.errors import ConsumerError, FencedInstanceIdError
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.client.fetch.subscription_state import SubscriptionType
from kohort.client.fetch_collector import RecordSlice, find_fetch
from kohort.client.member.effects import AssignmentChange, CallListener
from kohort.client.member.member_events import CallbackReturned, OffsetAndMetadata, RejoinRequested
from kohort.sim.consumer import ProcessEnd, SimulatedConsumer
from kohort.sim.context import SimContext
from kohort.sim.plan import CommitMode
from kohort.sim.process import ProcessTimer
from kohort.sim.trace_values import show_partitions, show_positions, show_records
from kohort.types import Partition, Topic, TopicPartition

_POLL_MS: Final = 1_000
_CLOSE_MS: Final = 5_000
_COMMIT_MS: Final = 4_000
"""Timeout of a synchronous commit."""
_CALLBACK_MS_MAX: Final = 30


class SimulatedApplication:
    """Runs until it is closed or its process ends."""

    def __init__(
        self, context: SimContext, consumer: SimulatedConsumer, topics: frozenset[Topic]
    ) -> None:
        self._context = context
        self._consumer = consumer
        self._core = consumer.core
        self._process = consumer.process
        self._plan = consumer.plan
        self._rng = context.streams.named("program", consumer.name)
        self._is_in_poll = False
        self._poll_end: ProcessTimer | None = None
        self._is_calling = False
        self._is_busy = False
        self._is_closing = False
        self._must_commit_first = False
        self._has_closed = False
        self._commits = 0
        """Commits without a result."""
        self._tasks: list[Callable[[], bool]] = []
        consumer.on_change = self._on_change
        self._subscribe(topics)
        self._poll()

    # Tasks for the time between polls

    @property
    def has_tasks(self) -> bool:
        return bool(self._tasks) or self._is_busy

    def subscribe(self, topics: frozenset[Topic]) -> None:
        self._tasks.append(lambda: self._subscribe(topics))

    def rejoin(self) -> None:
        self._tasks.append(self._rejoin)

    def block(self, for_ms: int) -> None:
        """Do not poll for this time; ignored if it is blocked already."""
        if not self._is_busy:
            self._is_busy = True
            self._tasks.append(lambda: self._block(for_ms))

    def close(self) -> None:
        self._tasks.append(self._close)

    def _subscribe(self, topics: frozenset[Topic]) -> bool:
        self._consumer.topics = topics
        self._core.subscription.set_type(SubscriptionType.AUTO_TOPICS)
        self._core.subscribe(topics, self._consumer.now)
        self._consumer.advance()
        return True

    def _rejoin(self) -> bool:
        self._core.handle_event(RejoinRequested(reason="requested by the app"), self._consumer.now)
        self._consumer.advance()
        return True

    def _block(self, for_ms: int) -> bool:
        self._process.later(for_ms, self._unblock)
        return False

    def _unblock(self) -> None:
        self._is_busy = False
        self._poll()

    # Closing

    def _close(self) -> bool:
        """During a rebalance, wait until a last commit is possible."""
        self._is_closing = True
        self._process.later(_CLOSE_MS, lambda: self._consumer.end(ProcessEnd.CLOSED))
        self._core.subscription.mark_all_processed()
        is_auto = self._plan.commits is CommitMode.AUTO
        self._must_commit_first = is_auto and bool(self._core.subscription.processed_positions())
        self._consumer.advance()
        return False

    def _continue_close(self) -> None:
        if self._has_closed:
            if self._core.is_ended:
                self._consumer.end(ProcessEnd.CLOSED)
        elif self._core.can_commit or not self._must_commit_first:
            self._has_closed = True
            self._core.close(self._consumer.now)
            self._consumer.advance()

    # Polling

    def _poll(self) -> None:
        while self._tasks:
            if not self._tasks.pop(0)():
                return
        self._is_in_poll = True
        self._poll_end = self._process.later(_POLL_MS, self._leave_poll)
        self._core.on_poll(self._consumer.now)
        self._core.is_in_poll = True
        self._consumer.advance()

    def _leave_poll(self) -> None:
        if self._is_calling:
            # The poll lasts until the listener returns.
            self._poll_end = self._process.later(_CALLBACK_MS_MAX, self._leave_poll)
            return
        self._stop_polling()
        self._after_poll()

    def _stop_polling(self) -> None:
        self._is_in_poll = self._core.is_in_poll = False
        if self._poll_end is not None:
            self._poll_end.cancel()

    def _on_change(self) -> None:
        """The core has changed: do what is possible now."""
        if self._is_calling:
            return
        if self._is_in_poll:
            self._on_change_in_poll()
        elif self._has_closed and self._core.call is not None:
            self._call_listener(self._core.call)
        elif self._is_closing:
            self._continue_close()

    def _on_change_in_poll(self) -> None:
        failure = self._core.take_error()
        if failure is not None:
            self._on_error(failure)
        elif self._core.call is not None:
            self._call_listener(self._core.call)
        else:
            records = self._take_records()
            if records:
                self._work_on(records)

    def _take_records(self) -> list[ConsumerRecord]:
        core, records = self._core, list[ConsumerRecord]()
        while len(records) < self._plan.batch_max and core.call is None:
            found = find_fetch(core)
            if found is None:
                break
            state, fetch = found
            taken = RecordSlice(state, fetch, self._plan.batch_max - len(records))
            core.subscription.mark_delivered(state, taken.end)
            records += taken.records
            if fetch.is_done:
                state.fetches.popleft()
                core.advance(self._consumer.now)
        return records

    def _on_error(self, failure: ConsumerError) -> None:
        self._context.trace.log(self._consumer.name, "error", failure)
        self._stop_polling()
        if isinstance(failure, FencedInstanceIdError):
            self._consumer.end(ProcessEnd.FENCED)
        else:
            self._process.later(500, self._poll)

    # Working

    def _work_on(self, records: list[ConsumerRecord]) -> None:
        self._stop_polling()
        for record in records:
            partition, text = _partition_of(record), _text_of(record)
            worker = self._consumer.worker_at(partition)
            self._context.checkers.deliveries.taken(worker, partition, record.offset, text)
        self._process.later(self._plan.record_ms * len(records), lambda: self._finish(records))
        self._consumer.advance()

    def _finish(self, records: list[ConsumerRecord]) -> None:
        for record in records:
            partition, text = _partition_of(record), _text_of(record)
            worker = self._consumer.worker_at(partition)
            self._context.checkers.deliveries.processed(worker, partition, record.offset, text)
        if self._context.trace.is_read:
            self._context.trace.log(self._consumer.name, "processed", show_records(records))
        self._after_poll()

    def _after_poll(self) -> None:
        """Commit as planned, then poll: at once, or after a synchronous commit."""
        if self._plan.commits is CommitMode.SYNC:
            self._commit_and_wait(None, self._poll)
            return
        if self._plan.commits is CommitMode.ASYNC and not self._commits:
            positions = self._uncommitted(None)
            if positions:
                self._commit(positions, lambda: None)
        self._poll()

    # Committing

    def _uncommitted(
        self, among: frozenset[TopicPartition] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Positions that are not committed, as far as is known."""
        subscription = self._core.subscription
        return {
            at: position
            for at, position in subscription.consumed_positions().items()
            if position.offset != subscription.states[at].committed
            and (among is None or at in among)
        }

    def _commit_and_wait(
        self, among: frozenset[TopicPartition] | None, then: Callable[[], None]
    ) -> None:
        positions = self._uncommitted(among)
        if not positions:
            then()
            return
        is_waiting = True

        def go_on() -> None:
            nonlocal is_waiting
            if is_waiting:
                is_waiting = False
                # The background thread wakes the application's thread, which runs later.
                self._process.later(0, then)

        cancel = self._commit(positions, go_on)

        def give_up() -> None:
            if is_waiting:
                cancel()
                go_on()

        self._process.later(_COMMIT_MS, give_up)

    def _commit(
        self, positions: dict[TopicPartition, OffsetAndMetadata], then: Callable[[], None]
    ) -> Callable[[], None]:
        """Returns a function that cancels the commit."""
        trace, name = self._context.trace, self._consumer.name
        trace.log(name, "commit", show_positions(positions))
        self._commits += 1

        def on_result(error: ConsumerError | None) -> None:
            self._commits -= 1
            trace.log(name, "committed", error or "")
            then()

        call_id = self._core.commit(positions, on_result, self._consumer.now)
        self._consumer.advance()

        def cancel() -> None:
            self._commits -= 1
            self._core.cancel_call(call_id, self._consumer.now)
            self._consumer.advance()

        return cancel

    # The listener

    def _call_listener(self, call: CallListener) -> None:
        self._is_calling = True
        self._core.is_in_poll = False
        trace, deliveries = self._context.trace, self._context.checkers.deliveries
        trace.log(self._consumer.name, "call", call.change, show_partitions(call.partitions))
        if call.change is AssignmentChange.LOST and self._is_closing:
            deliveries.left_amid_rebalance(self._plan.group, call.partitions)
        self._core.on_listener_call(call)
        if call.change is AssignmentChange.REVOKED and self._plan.commits is not CommitMode.AUTO:
            self._commit_and_wait(call.partitions, lambda: self._run_listener(call))
        else:
            self._run_listener(call)

    def _run_listener(self, call: CallListener) -> None:
        self._process.later(
            self._rng.uniform(0, _CALLBACK_MS_MAX), lambda: self._on_listener_returned(call)
        )

    def _on_listener_returned(self, call: CallListener) -> None:
        if call.change is not AssignmentChange.ASSIGNED:
            self._core.subscription.remove(call.partitions)
        self._is_calling = False
        self._core.handle_event(CallbackReturned(), self._consumer.now)
        self._core.is_in_poll = self._is_in_poll
        self._consumer.advance()


def _partition_of(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(Topic(record.topic), Partition(record.partition))


def _text_of(record: ConsumerRecord) -> str:
    assert isinstance(record.value, bytes)
    return record.value.decode()
