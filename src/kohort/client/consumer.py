"""The consumer, as programs use it. Everything here is a few words to those who do the work.

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

from kohort.client import diary
from kohort.client.agent import Agent
from kohort.client.desk import CommitCallback, Desk
from kohort.client.errors import WrongUse
from kohort.client.fetching.lookups import BEGINNING, END, FoundOffset
from kohort.client.fetching.parcel import FetchedBatches, Place
from kohort.client.fetching.records import ConsumerRecord
from kohort.client.fetching.subscription import Wish
from kohort.client.group_metadata import GroupMetadata
from kohort.client.handing import Handing
from kohort.client.heartbeat import Heartbeat
from kohort.client.listener import ConsumerRebalanceListener
from kohort.client.member.events import Position, RejoinAsked, Unsubscribed
from kohort.client.member.machine import MemberState
from kohort.client.naming import (
    Offsets,
    named_partitions,
    named_topics,
    read_pattern,
    read_positions,
)
from kohort.client.options import GivenOptions, read_options
from kohort.client.questions import Questions, require_group
from kohort.client.rebalances import Rebalance
from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis, Offset, Partition, Topic

_CLOSE_MS: Final = 30_000
_FOREVER_MS: Final = 2**53


class Consumer:
    """Reads records of a Kafka cluster, alone or with a group.

    It belongs to one thread at a time; its own keeps it alive in the group while the program works.
    Options are given by keyword, or in a mapping under Kafka's dotted names, or both.
    """

    def __init__(
        self, config: Mapping[str, object] | None = None, /, **given: Unpack[GivenOptions]
    ) -> None:
        keywords: dict[str, object] = dict(given)
        self._options = options = read_options([*(config or {}).items(), *keywords.items()])
        heartbeat = Heartbeat(options)
        self._desk = desk = Desk(options, heartbeat)
        self._heartbeat = heartbeat
        self._handing = Handing(desk, heartbeat)
        self._questions = Questions(desk)
        heartbeat.start()
        self._finalizer = weakref.finalize(self, _forget, heartbeat, options.group_id)

    # What to read

    def subscribe(
        self,
        topics: str | Iterable[str] | re.Pattern[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Share these topics with the group, or those whose name begins as the pattern says.

        A string that begins with ^ is a pattern. What was subscribed to before is no more, unless
        it is named again; the listener hears of what comes and goes.
        """
        if listener is not None and not isinstance(listener, ConsumerRebalanceListener):
            raise WrongUse("a listener must be a kohort.ConsumerRebalanceListener")
        found = read_pattern(topics, pattern)
        names = frozenset() if found is not None else named_topics(topics)
        with self._desk.agent() as agent:
            require_group(agent)
            self._handing.interrupt(agent)
            subscription, now = agent.subscription, self._heartbeat.now()
            subscription.choose(Wish.TOPICS if found is None else Wish.PATTERN)
            subscription.pattern = found
            subscription.listener = listener or ConsumerRebalanceListener()
            if found is None:
                agent.subscribe(names, now)
            else:
                agent.subscribe_to_matches(now)
            agent.advance(now)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read just these, whoever else does: no group shares them out."""
        wanted = named_partitions(partitions)
        with self._desk.agent() as agent:
            self._handing.interrupt(agent)
            subscription, now = agent.subscription, self._heartbeat.now()
            subscription.choose(Wish.PARTITIONS)
            if agent.member is not None and self._options.enable_auto_commit:
                subscription.finish()
                self._questions.commit_later(agent, subscription.done_with(), None)
            subscription.remove(subscription.states.keys() - wanted)
            subscription.add(wanted)
            agent.advance(now)

    def unsubscribe(self) -> None:
        """Leave the group, or drop what was assigned. The listener hears of it."""
        with self._desk.program():
            self._desk.refuse_listener("unsubscribe")
            with self._heartbeat.agent() as agent:
                self._handing.interrupt(agent)
                is_member = agent.subscription.wish in (Wish.TOPICS, Wish.PATTERN)
                if is_member:
                    agent.tell(Unsubscribed(), self._heartbeat.now())
            try:
                if is_member:
                    self._desk.run_calls(_has_left, self._desk.until(None))
            finally:
                with self._heartbeat.agent() as agent:
                    agent.subscription.clear()

    def subscription(self) -> frozenset[Topic]:
        """The topics it shares with its group: those named, or those its pattern has found."""
        with self._desk.agent() as agent:
            return agent.subscription.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions it reads at this moment."""
        with self._desk.agent() as agent:
            return frozenset(agent.subscription.states)

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> frozenset[Partition]:
        """The partitions of a topic; none if there is no such topic."""
        (name,) = named_topics([topic])
        with self._desk.agent() as agent:
            return self._questions.partitions(agent, name, self._desk.until(timeout_ms))

    def topics(self, timeout_ms: int | None = None) -> frozenset[Topic]:
        """All topics that this program may see."""
        with_internal = not self._options.exclude_internal_topics
        with self._desk.agent() as agent:
            until = self._desk.until(timeout_ms)
            return self._questions.topics(agent, until, with_internal=with_internal)

    # Reading

    def poll(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records, as soon as there are any; none if there are none in time.

        It says that the program has done with what earlier polls gave. Group work that needs the
        program, such as calling its listener, is done here too, so poll often.
        """
        count = self._options.max_poll_records if max_records is None else max_records
        if count < 1:
            raise WrongUse(f"max_records must be at least 1, not {count}")
        with self._desk.program():
            handouts = self._handing.poll(count, Millis(self._heartbeat.now() + timeout_ms))
        records: dict[TopicPartition, list[ConsumerRecord]] = {}
        for handout in handouts:
            partition = handout.state.partition
            if partition in records:
                records[partition] += handout.records
            else:
                records[partition] = handout.records
        return records

    def poll_batches(self, timeout_ms: int = 0) -> FetchedBatches | None:
        """As `poll`, but gives record batches of one partition as they came from the broker.

        For programs that read bytes by themselves: nothing is decompressed, checked or left out.
        """
        with self._desk.program():
            return self._handing.poll_whole(Millis(self._heartbeat.now() + timeout_ms))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """One record after the other; ends after consumer.timeout.ms without one, if at all.

        The program has done with a record when it asks for the next one.
        """
        limit = self._options.consumer_timeout_ms
        wait_ms = _FOREVER_MS if limit < 0 else limit
        while True:
            with self._desk.program():
                until = Millis(self._heartbeat.now() + wait_ms)
                handouts = self._handing.open(self._options.max_poll_records, until)
            if not handouts:
                return
            yield from self._handing.each(handouts)

    # Where it stands

    def position(self, partition: TopicPartition, timeout_ms: int | None = None) -> Offset:
        """The offset of the record that comes next."""
        with self._desk.agent() as agent:
            self._handing.note_progress(agent)
            return self._questions.place(agent, partition, self._desk.until(timeout_ms))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on from there."""
        if offset < 0:
            raise WrongUse(f"an offset cannot be {offset}")
        with self._desk.agent() as agent:
            self._handing.interrupt(agent)
            state = agent.subscription.get(partition)
            agent.subscription.stand(state, Place(offset=Offset(offset)))
            agent.advance(self._heartbeat.now())

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go back to the oldest record there is; without any named, in all partitions."""
        self._reset(partitions, BEGINNING)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on with what comes from now on; without any named, in all partitions."""
        self._reset(partitions, END)

    def _reset(self, partitions: tuple[TopicPartition, ...], to: Millis) -> None:
        with self._desk.agent() as agent:
            self._handing.interrupt(agent)
            for partition in partitions or tuple(agent.subscription.states):
                agent.subscription.reset(agent.subscription.get(partition), to)
            agent.advance(self._heartbeat.now())

    def pause(self, *partitions: TopicPartition) -> None:
        """Give no records of these until they are resumed; the group does not notice."""
        with self._desk.agent() as agent:
            self._handing.interrupt(agent)
            for partition in partitions:
                agent.subscription.get(partition).is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        with self._desk.agent() as agent:
            for partition in partitions:
                agent.subscription.get(partition).is_paused = False
            agent.advance(self._heartbeat.now())

    def paused(self) -> frozenset[TopicPartition]:
        with self._desk.agent() as agent:
            states = agent.subscription.states
            return frozenset(each for each, state in states.items() if state.is_paused)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, Offset]:
        """The offset of the oldest record of each."""
        return self._edges(partitions, BEGINNING, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, Offset]:
        """The offset that the next record of each will have."""
        return self._edges(partitions, END, timeout_ms)

    def _edges(
        self, partitions: Iterable[TopicPartition], edge: Millis, timeout_ms: int | None
    ) -> dict[TopicPartition, Offset]:
        wanted = dict.fromkeys(sorted(named_partitions(partitions)), edge)
        with self._desk.agent() as agent:
            found = self._questions.lookup(agent, wanted, self._desk.until(timeout_ms))
        return {each: told.offset for each, told in found.items() if told is not None}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, FoundOffset | None]:
        """The first record of each partition that is not older; None where all are."""
        wanted = {each: Millis(moment) for each, moment in timestamps.items()}
        if any(moment < 0 for moment in wanted.values()):
            raise WrongUse("a time cannot be negative")
        named_partitions(wanted)
        with self._desk.agent() as agent:
            return self._questions.lookup(agent, wanted, self._desk.until(timeout_ms))

    # Committing

    def commit(self, offsets: Offsets | None = None, timeout_ms: int | None = None) -> None:
        """Keep where the program stands, or what is given; returns once the group has it."""
        with self._desk.program():
            with self._heartbeat.agent() as agent:
                positions = self._positions(agent, offsets)
                if positions:
                    self._questions.commit(agent, positions, self._desk.until(timeout_ms))
            self._desk.run_callbacks()

    def commit_async(
        self, offsets: Offsets | None = None, callback: CommitCallback | None = None
    ) -> None:
        """The same without waiting; the callback is called by a later poll, commit or close."""
        with self._desk.agent() as agent:
            self._questions.commit_later(agent, self._positions(agent, offsets), callback)

    def _positions(
        self, agent: Agent, offsets: Offsets | None
    ) -> Mapping[TopicPartition, Position]:
        require_group(agent)
        self._handing.note_progress(agent)
        return agent.subscription.places() if offsets is None else read_positions(offsets)

    @overload
    def committed(
        self, partitions: TopicPartition, timeout_ms: int | None = None
    ) -> Position | None: ...

    @overload
    def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, Position | None]: ...

    def committed(
        self,
        partitions: TopicPartition | Iterable[TopicPartition],
        timeout_ms: int | None = None,
    ) -> Position | dict[TopicPartition, Position | None] | None:
        """What the group has committed, of one partition or of many; None where nothing is."""
        if isinstance(partitions, TopicPartition):
            return self.committed((partitions,), timeout_ms)[partitions]
        wanted = named_partitions(partitions)
        with self._desk.agent() as agent:
            require_group(agent)
            found = self._questions.committed(agent, wanted, self._desk.until(timeout_ms))
        return {each: found.get(each) for each in sorted(wanted)}

    # The group

    def group_metadata(self) -> GroupMetadata:
        """How this consumer stands in its group at this moment."""
        with self._desk.agent() as agent:
            require_group(agent)
            assert agent.member is not None
            return GroupMetadata(
                group_id=agent.member.group_id,
                generation=agent.member.generation,
                member_id=agent.member.member_id,
                instance_id=self._options.group_instance_id,
                state=agent.member.state,
            )

    def enforce_rebalance(self, reason: str = "") -> None:
        """Make the group share out its partitions anew, at the next poll."""
        with self._desk.agent() as agent:
            require_group(agent)
            agent.tell(RejoinAsked(reason=reason), self._heartbeat.now())

    def rebalances(self) -> list[Rebalance]:
        """Every rebalance this consumer took part in, newest last; also when it is closed."""
        with self._heartbeat.agent() as agent:
            return agent.history.rebalances()

    # The end

    def close(self, timeout_ms: int = _CLOSE_MS) -> None:
        """Say that the program has done with what it was given, and leave.

        That is committed, if the consumer commits by itself, and the listener hears of what goes.
        After `timeout_ms` it is gone without having said all this.
        """
        self._close(timeout_ms, is_failing=False)

    def abandon(self) -> None:
        """End at once, without a word to the group: as if the process had been killed.

        For tests. The group goes on when the session has ended.
        """
        self._desk.is_closed = True
        self._finalizer.detach()
        self._heartbeat.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """As close, but where the program fails it has not done with what it was given last."""
        self._close(_CLOSE_MS, is_failing=error is not None)

    def _close(self, timeout_ms: int, *, is_failing: bool) -> None:
        if self._desk.is_closed:
            return
        until = Millis(self._heartbeat.now() + timeout_ms)
        with self._desk.program():
            self._desk.refuse_listener("close")
            try:
                with self._heartbeat.agent() as agent:
                    self._handing.interrupt(agent, is_failing=is_failing)
                    if not is_failing:
                        agent.subscription.finish()
                    self._desk.wait_to_commit(agent, until)
                    agent.close(self._heartbeat.now())
                self._desk.run_calls(lambda agent: agent.is_ended, until)
                self._desk.run_callbacks()
            finally:
                self._desk.is_closed = True
                self._finalizer.detach()
                self._heartbeat.stop()


def _has_left(agent: Agent) -> bool:
    return agent.member is None or agent.member.state is not MemberState.LEAVING


def _forget(heartbeat: Heartbeat, group: str | None) -> None:
    diary.warn("left-unclosed", group=group)
    heartbeat.stop()
