"""Handing records to the program: many at once, or one by one, and knowing how far it has come.

Records are taken out of their parcels on the program's thread and outside the lock. One by one, the
program stands behind the record it was last given; if it is interrupted, the rest of what was
taken out for it is fetched again.
"""

from collections.abc import Iterator

from kohort.client.agent import Agent
from kohort.client.desk import Desk
from kohort.client.errors import ConsumerError, WrongUse
from kohort.client.fetching.parcel import FetchedBatches, Parcel, Place
from kohort.client.fetching.records import ConsumerRecord
from kohort.client.fetching.subscription import PartitionState, Wish
from kohort.client.heartbeat import Heartbeat
from kohort.client.member.effects import Call
from kohort.types import Millis, Offset


class Handout:
    """Records of one partition that were taken out for the program."""

    __slots__ = ("begin", "current", "end", "era", "is_over", "records", "state")

    def __init__(self, state: PartitionState, parcel: Parcel, count: int) -> None:
        self.state = state
        self.era = state.era
        self.begin = parcel.place
        self.records = parcel.take(count)
        self.end = parcel.place
        self.current: ConsumerRecord | None = None
        """The one the program works on, if it is given one at a time."""
        self.is_over = False

    @property
    def place(self) -> Place:
        """Where the program stands in it."""
        if self.is_over:
            return self.end
        if self.current is None:
            return self.begin
        after = Offset(self.current.offset + 1)
        return Place(offset=after, leader_epoch=self.current.leader_epoch)

    @property
    def place_before(self) -> Place:
        """As if it had not been given the one it works on."""
        if self.current is None:
            return self.begin
        return Place(offset=self.current.offset, leader_epoch=self.begin.leader_epoch)


class Handing:
    def __init__(self, desk: Desk, heartbeat: Heartbeat) -> None:
        self._desk = desk
        self._heartbeat = heartbeat
        self._handouts: list[Handout] = []
        """What is being given one by one, and is not all given yet."""

    # Many at once

    def poll(self, count: int, until: Millis) -> list[Handout]:
        """So many records at most, or none in time; the program has all of them."""
        return self._take(count, until, is_given=True)

    def poll_whole(self, until: Millis) -> FetchedBatches | None:
        """All that one fetch has brought of one partition, or nothing in time."""
        while (found := self._next(until)) is not None:
            state, parcel = found
            era = state.era
            fetched = parcel.take_whole()
            with self._heartbeat.agent() as agent:
                if agent.subscription.is_current(state, era):
                    agent.subscription.give(state, parcel.place)
                    state.parcels.popleft()
                    agent.advance(self._heartbeat.now())
                    return fetched
        return None

    def _take(self, count: int, until: Millis, *, is_given: bool) -> list[Handout]:
        while (found := self._next(until)) is not None:
            handouts = self._fill(found, count, is_given=is_given)
            if handouts:
                return handouts
        return []

    def _next(self, until: Millis) -> tuple[PartitionState, Parcel] | None:
        """What can be read; callbacks of the program are run meanwhile."""
        is_new = True
        while True:
            self._desk.run_callbacks()
            found = self._await(until, is_new=is_new)
            is_new = False
            if not isinstance(found, Call):
                return found
            self._desk.run_call(found)

    def _await(self, until: Millis, *, is_new: bool) -> tuple[PartitionState, Parcel] | Call | None:
        """Something to read or to hear of, or nothing in time."""
        with self._heartbeat.agent() as agent:
            if is_new:
                self._begin(agent)
            agent.is_resting = True
            try:
                while True:
                    failure = agent.take_failure()
                    if failure is not None:
                        raise failure
                    found = agent.call or _find_parcel(agent)
                    if found is not None or self._heartbeat.now() >= until:
                        return found
                    self._heartbeat.wait(until)
            finally:
                agent.is_resting = False

    def _begin(self, agent: Agent) -> None:
        self._desk.refuse_listener("poll")
        if agent.subscription.wish is Wish.NOTHING:
            raise WrongUse("there is nothing to read: subscribe to topics, or assign partitions")
        self.interrupt(agent)
        agent.polled(self._heartbeat.now())

    def _fill(
        self, found: tuple[PartitionState, Parcel] | None, count: int, *, is_given: bool
    ) -> list[Handout]:
        handouts: list[Handout] = []
        while found is not None and count > 0:
            state, parcel = found
            try:
                handout = Handout(state, parcel, count)
            except ConsumerError:
                if not handouts:
                    raise
                break  # it is met again when the program has done with what was before
            with self._heartbeat.agent() as agent:
                # A new leader may have been found meanwhile, which must be asked first.
                if agent.subscription.is_current(state, handout.era):
                    if is_given or not handout.records:
                        agent.subscription.give(state, handout.end)
                    if handout.records:
                        handouts.append(handout)
                        count -= len(handout.records)
                    if parcel.is_done:
                        state.parcels.popleft()
                        agent.advance(self._heartbeat.now())
                is_more = count > 0 and agent.call is None
                found = _find_parcel(agent) if is_more else None
        return handouts

    # One by one

    def open(self, count: int, until: Millis) -> list[Handout]:
        """The same, but the program has only what `each` has given it."""
        self._handouts = self._take(count, until, is_given=False)
        return list(self._handouts)

    def each(self, handouts: list[Handout]) -> Iterator[ConsumerRecord]:
        for handout in handouts:
            for record in handout.records:
                if handout.is_over:
                    return
                handout.current = record
                yield record
            if handout.is_over:
                return
            self._handouts.remove(handout)
            with self._heartbeat.agent() as agent:
                agent.subscription.give(handout.state, handout.end)

    def note_progress(self, agent: Agent) -> None:
        """The program stands where it was given the last record."""
        for handout in self._handouts:
            if handout.current is not None:
                agent.subscription.give(handout.state, handout.place)

    def interrupt(self, agent: Agent, *, is_failing: bool = False) -> None:
        """The program does something else, and the rest must be fetched again.

        If it fails, it has done with all but the record that it works on.
        """
        for handout in self._handouts:
            if agent.subscription.is_current(handout.state, handout.era):
                if is_failing:
                    agent.subscription.stand(handout.state, handout.place_before)
                else:
                    agent.subscription.rewind(handout.state, handout.place)
            handout.is_over = True
        self._handouts = []


def _find_parcel(agent: Agent) -> tuple[PartitionState, Parcel] | None:
    for state in agent.subscription.states.values():
        if state.parcels and state.is_readable:
            return state, state.parcels[0]
    return None
