"""Returns fetched records to the application, as a list or one by one, and tracks its position.

Records are decoded on the application's thread and outside the lock. When records are iterated, the
position is behind the last record that was yielded. If the iteration is interrupted, the records
that were decoded but not yielded are fetched again.
"""

from collections.abc import Iterator

from kohort.client.app_thread import AppThread
from kohort.client.background_thread import BackgroundThread
from kohort.client.consumer_core import ConsumerCore
from kohort.client.errors import ConsumerError, IllegalStateError
from kohort.client.fetch.completed_fetch import CompletedFetch, FetchedBatches, FetchPosition
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.client.fetch.subscription_state import SubscriptionType, TopicPartitionState
from kohort.client.member.effects import CallListener
from kohort.types import Millis, Offset


class RecordSlice:
    """Records of one partition that were decoded for the application."""

    __slots__ = ("begin", "current", "end", "is_stopped", "position_version", "records", "state")

    def __init__(self, state: TopicPartitionState, fetch: CompletedFetch, count: int) -> None:
        self.state = state
        self.position_version = state.position_version
        self.begin = fetch.position
        self.records = fetch.take(count)
        self.end = fetch.position
        self.current: ConsumerRecord | None = None
        """The record that was yielded last, when records are iterated."""
        self.is_stopped = False

    @property
    def position(self) -> FetchPosition:
        """The application's position in these records."""
        if self.is_stopped:
            return self.end
        if self.current is None:
            return self.begin
        after = Offset(self.current.offset + 1)
        return FetchPosition(offset=after, leader_epoch=self.current.leader_epoch)

    @property
    def position_before(self) -> FetchPosition:
        """The position before the record that was yielded last."""
        if self.current is None:
            return self.begin
        return FetchPosition(offset=self.current.offset, leader_epoch=self.begin.leader_epoch)


class FetchCollector:
    def __init__(self, app: AppThread, background: BackgroundThread) -> None:
        self._app = app
        self._background = background
        self._slices: list[RecordSlice] = []
        """Records of an iteration that are not all yielded yet."""

    # As a list

    def poll(self, count: int, until: Millis) -> list[RecordSlice]:
        """Up to `count` records, or none at the timeout. All count as delivered."""
        return self._take(count, until, is_delivered=True)

    def poll_batches(self, until: Millis) -> FetchedBatches | None:
        """The batches of one completed fetch, or None at the timeout."""
        while (found := self._next(until)) is not None:
            state, fetch = found
            position_version = state.position_version
            fetched = fetch.take_batches()
            with self._background as core:
                if core.subscription.is_current(state, position_version):
                    core.subscription.mark_delivered(state, fetch.position)
                    state.fetches.popleft()
                    core.advance(self._background.now())
                    return fetched
        return None

    def _take(self, count: int, until: Millis, *, is_delivered: bool) -> list[RecordSlice]:
        while (found := self._next(until)) is not None:
            slices = self._fill(found, count, is_delivered=is_delivered)
            if slices:
                return slices
        return []

    def _next(self, until: Millis) -> tuple[TopicPartitionState, CompletedFetch] | None:
        """The next completed fetch. Runs listeners and callbacks while it waits."""
        is_new = True
        while True:
            self._app.run_callbacks()
            found = self._await_fetch(until, is_new=is_new)
            is_new = False
            if not isinstance(found, CallListener):
                return found
            self._app.run_listener(found)

    def _await_fetch(
        self, until: Millis, *, is_new: bool
    ) -> tuple[TopicPartitionState, CompletedFetch] | CallListener | None:
        """The next completed fetch or listener call; None at the timeout."""
        with self._background as core:
            if is_new:
                self._begin(core)
            core.is_in_poll = True
            try:
                while True:
                    failure = core.take_error()
                    if failure is not None:
                        raise failure
                    found = core.call or find_fetch(core)
                    if found is not None or self._background.now() >= until:
                        return found
                    self._background.wait(until)
            finally:
                core.is_in_poll = False

    def _begin(self, core: ConsumerCore) -> None:
        self._app.reject_in_listener("poll")
        if core.subscription.type is SubscriptionType.NONE:
            raise IllegalStateError("no subscription: call subscribe() or assign() before poll()")
        self.interrupt(core)
        core.on_poll(self._background.now())

    def _fill(
        self,
        found: tuple[TopicPartitionState, CompletedFetch] | None,
        count: int,
        *,
        is_delivered: bool,
    ) -> list[RecordSlice]:
        slices: list[RecordSlice] = []
        while found is not None and count > 0:
            state, fetch = found
            try:
                taken = RecordSlice(state, fetch, count)
            except ConsumerError:
                if not slices:
                    raise
                break  # raised by the next poll, after these records
            with self._background as core:
                # A new leader may have been found meanwhile; the position must be validated first.
                if core.subscription.is_current(state, taken.position_version):
                    if is_delivered or not taken.records:
                        core.subscription.mark_delivered(state, taken.end)
                    if taken.records:
                        slices.append(taken)
                        count -= len(taken.records)
                    if fetch.is_done:
                        state.fetches.popleft()
                        core.advance(self._background.now())
                is_more = count > 0 and core.call is None
                found = find_fetch(core) if is_more else None
        return slices

    # Iteration

    def open(self, count: int, until: Millis) -> list[RecordSlice]:
        """The same, but only records that `each` has yielded count as delivered."""
        self._slices = self._take(count, until, is_delivered=False)
        return list(self._slices)

    def each(self, slices: list[RecordSlice]) -> Iterator[ConsumerRecord]:
        for taken in slices:
            for record in taken.records:
                if taken.is_stopped:
                    return
                taken.current = record
                yield record
            if taken.is_stopped:
                return
            self._slices.remove(taken)
            with self._background as core:
                core.subscription.mark_delivered(taken.state, taken.end)

    def update_positions(self, core: ConsumerCore) -> None:
        """Set positions behind the last record yielded."""
        for taken in self._slices:
            if taken.current is not None:
                core.subscription.mark_delivered(taken.state, taken.position)

    def interrupt(self, core: ConsumerCore, *, is_failing: bool = False) -> None:
        """End an iteration; the records that were not yielded are fetched again.

        If the application has failed, its current record does not count as processed.
        """
        for taken in self._slices:
            if core.subscription.is_current(taken.state, taken.position_version):
                if is_failing:
                    core.subscription.seek(taken.state, taken.position_before)
                else:
                    core.subscription.rewind(taken.state, taken.position)
            taken.is_stopped = True
        self._slices = []


def find_fetch(core: ConsumerCore) -> tuple[TopicPartitionState, CompletedFetch] | None:
    """The next completed fetch of a partition that may be read."""
    for state in core.subscription.states.values():
        if state.fetches and state.is_fetchable:
            return state, state.fetches[0]
    return None
