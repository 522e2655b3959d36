"""What a program asks of brokers and waits for: commits, offsets, topics. Each ends in time."""

from collections.abc import Mapping

from kohort.client.agent import Agent
from kohort.client.desk import CommitCallback, Desk
from kohort.client.errors import CommitNotKept, ConsumerError, Unreachable, WrongUse
from kohort.client.fetching.lookups import FoundOffset, Lookup
from kohort.client.member.events import Position
from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis, Offset, Partition, Topic

Positions = Mapping[TopicPartition, Position]


class Questions:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._heartbeat = desk.heartbeat

    def commit(self, agent: Agent, positions: Positions, until: Millis) -> None:
        """Returns once they are kept."""
        answers: list[ConsumerError | None] = []
        question = agent.commit(positions, answers.append, self._heartbeat.now())
        if not self._desk.wait(agent, lambda: bool(answers), until):
            agent.withdraw(question, self._heartbeat.now())
            raise CommitNotKept("the coordinator did not answer the commit in time")
        (error,) = answers
        if error is not None:
            raise error

    def commit_later(
        self, agent: Agent, positions: Positions, callback: CommitCallback | None
    ) -> None:
        """Returns at once; the callback hears of it on the program's thread."""
        later = None if callback is None else self._desk.finish(callback)

        def then(error: ConsumerError | None) -> None:
            if later is not None:
                later(positions, error)

        agent.commit(positions, then, self._heartbeat.now())

    def committed(
        self, agent: Agent, partitions: frozenset[TopicPartition], until: Millis
    ) -> dict[TopicPartition, Position]:
        answers: list[tuple[Positions, ConsumerError | None]] = []

        def then(found: Positions, error: ConsumerError | None, _now: Millis) -> None:
            answers.append((found, error))

        question = agent.ask_committed(partitions, then, self._heartbeat.now())
        if not self._desk.wait(agent, lambda: bool(answers), until):
            agent.withdraw(question, self._heartbeat.now())
            raise Unreachable("the coordinator did not tell what is committed in time")
        ((found, error),) = answers
        if error is not None:
            raise error
        return dict(found)

    def place(self, agent: Agent, partition: TopicPartition, until: Millis) -> Offset:
        """Where the program stands, if need be once it is known where to begin."""
        state = agent.subscription.get(partition)
        agent.advance(self._heartbeat.now())

        def is_over() -> bool:
            return state.place is not None or agent.subscription.fault is not None

        if not self._desk.wait(agent, is_over, until):
            topic, number = partition
            raise Unreachable(f"the position of {topic}-{number} could not be found in time")
        if state.place is None:
            failure = agent.subscription.fault
            assert failure is not None
            raise failure
        return state.place.offset

    def lookup(
        self, agent: Agent, wanted: Mapping[TopicPartition, Millis], until: Millis
    ) -> dict[TopicPartition, FoundOffset | None]:
        """Offsets by time, or of the beginning or the end."""
        news: list[Lookup] = []
        lookup = agent.lookups.begin(wanted, lambda told, _now: news.append(told))
        agent.advance(self._heartbeat.now())

        def is_over() -> bool:
            return lookup.error is not None or not lookup.missing

        if not self._desk.wait(agent, is_over, until):
            agent.lookups.withdraw(lookup)
            raise agent.lookups.explain(lookup)
        if lookup.error is not None:
            raise lookup.error
        return lookup.found

    def partitions(self, agent: Agent, topic: Topic, until: Millis) -> frozenset[Partition]:
        agent.asked_topics = frozenset((topic,))
        try:
            self._refresh(agent, until)
        finally:
            agent.asked_topics = frozenset()
        known = agent.cluster.topics.get(topic)
        return frozenset() if known is None else frozenset(known.leaders)

    def topics(self, agent: Agent, until: Millis, *, with_internal: bool) -> frozenset[Topic]:
        agent.is_asking_all_topics = True
        try:
            self._refresh(agent, until)
        finally:
            agent.is_asking_all_topics = False
        return frozenset(
            name
            for name, known in agent.cluster.topics.items()
            if with_internal or not known.is_internal
        )

    def _refresh(self, agent: Agent, until: Millis) -> None:
        """Wait for metadata that was asked for after this moment."""
        cluster = agent.cluster
        asked = cluster.questions
        cluster.doubt_now()
        agent.advance(self._heartbeat.now())
        if not self._desk.wait(agent, lambda: cluster.answered > asked, until):
            raise Unreachable("no broker has told about its topics in time")


def require_group(agent: Agent) -> None:
    if agent.member is None:
        raise WrongUse("this needs a group: give the consumer a group.id")
