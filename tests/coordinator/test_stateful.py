"""Whatever clients ask, in whatever order, and whatever fails: the invariants hold after each step.

Hypothesis moves a small crowd over two groups with tight limits. A failing example is told as a
trace: every command with everything the machine said, to be kept under the name of the behaviour.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kohort.coordinator.commands import (
    DeletedTopic,
    DeleteGroups,
    DeleteOffsets,
    DescribeGroups,
    EndTransaction,
    FetchOffsets,
    ForgetTopics,
    Leaver,
    ListGroups,
    Request,
    Shutdown,
    TopicPartitions,
)
from kohort.coordinator.limits import Limits
from kohort.coordinator.machine import Coordinator
from kohort.types import ErrorCode, GroupId, InstanceId, Millis, Partition, ProducerId, Topic
from tests.coordinator import invariants
from tests.coordinator.crowd import PROTOCOLS, Client, Crowd
from tests.coordinator.driver import rebuilt
from tests.coordinator.tracing import Player

LIMITS = Limits(
    group_max_size=4,
    group_new_member_join_timeout_ms=Millis(20_000),
    offset_metadata_max_bytes=8,
    offsets_retention_ms=Millis(15 * 60_000),
)

G1, G2 = GroupId("g1"), GroupId("g2")
GROUPS = (G1, G2)


def crowd_of(group_id: GroupId) -> list[Client]:
    """Dynamic, old and static clients; some are patient, one has no patience at all."""
    none, short, long = Millis(0), Millis(5_000), Millis(60_000)
    i1, i2 = InstanceId("i1"), InstanceId("i2")
    return [
        Client("a", group_id, rebalance_ms=short),
        Client("b", group_id, session_ms=long, rebalance_ms=long),
        Client("c", group_id, session_ms=Millis(6_000), rebalance_ms=short),
        Client("old", group_id, is_old=True, rebalance_ms=short),
        Client("s", group_id, instance_id=i1, session_ms=Millis(30_000), rebalance_ms=long),
        Client("t", group_id, instance_id=i2, rebalance_ms=none),
        Client("twin", group_id, instance_id=i2, rebalance_ms=short, is_old=True),
    ]


ROOM = len(crowd_of(G1))
STATIC = range(4, ROOM)

# The first group has most of the clients' attention, so that it gets somewhere.
groups = st.sampled_from([G1, G1, G1, G2])
numbers = st.sampled_from([*range(ROOM), *range(2 * ROOM)])
anyone = st.integers(0, ROOM - 1)
protocols = st.sampled_from([*["range"] * 4, *sorted(PROTOCOLS)])
behinds = st.sampled_from([0, 0, 1])
"""By how many generations a client is late."""
topics = st.sampled_from(["t1", "t2"])
producers = st.sampled_from([ProducerId(1), ProducerId(2)])
metadata = st.sampled_from(["", "kept", "far too long"])
errors = st.sampled_from([ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS])


class Coordination(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.crowd = Crowd.with_limits(LIMITS)
        self.driver = self.crowd.driver
        self.clients = [client for group_id in GROUPS for client in crowd_of(group_id)]
        self.loaded = Coordinator(LIMITS)
        """A second machine, told nothing but the records, through their bytes."""
        self.loaded_count = 0
        self.checked_count = 0
        self.steps_until_mended = 0

    # Being a member

    @rule(number=numbers, offering=protocols)
    def join(self, number: int, offering: str) -> None:
        self.crowd.join(self.clients[number], offering)

    @rule(number=numbers)
    def join_as_something_else(self, number: int) -> None:
        self.crowd.join(self.clients[number], type_="connect")

    @rule(
        group_id=groups,
        picked=st.sets(anyone, min_size=1),
        offering=protocols,
        pause=st.sampled_from([0, 0, 0, 12_000]),
    )
    def settle(self, group_id: GroupId, picked: set[int], offering: str, pause: int) -> None:
        members = [client for client in self.clients if client.group_id == group_id]
        chosen = (members[number] for number in sorted(picked))
        self.crowd.settle(*chosen, protocols=offering, leader_pauses_ms=pause)

    @rule(group_id=groups, number=anyone)
    def gather(self, group_id: GroupId, number: int) -> None:
        """A few neighbours settle without a quarrel, and are heard of."""
        members = [client for client in self.clients if client.group_id == group_id]
        self.crowd.settle(*members[number : number + 3])
        for client in members[number : number + 3]:
            self.crowd.heartbeat(client)

    @rule(number=numbers)
    def forget(self, number: int) -> None:
        """A client no longer knows who it was; its former self is still in the group."""
        self.clients[number].restart()

    @rule(number=st.sampled_from(STATIC), offering=protocols)
    def come_back(self, number: int, offering: str) -> None:
        """A static member restarts: another process, the same instance."""
        self.clients[number].restart()
        self.crowd.join(self.clients[number], offering)

    @rule(number=numbers, behind=behinds)
    def sync(self, number: int, behind: int) -> None:
        self.crowd.sync(self.clients[number], behind=behind)

    @rule(number=numbers, behind=behinds)
    def heartbeat(self, number: int, behind: int) -> None:
        self.crowd.heartbeat(self.clients[number], behind=behind)

    @rule(group_id=groups, ms=st.sampled_from([0, 5_000]), behind=behinds)
    def stay_alive(self, group_id: GroupId, ms: int, behind: int) -> None:
        self.crowd.advance(self.driver.now + ms)
        for client in self.clients:
            if client.group_id == group_id and client.member_id:
                self.crowd.heartbeat(client, behind=behind)

    @rule(number=numbers)
    def leave(self, number: int) -> None:
        self.crowd.leave(self.clients[number])

    @rule(group_id=groups, picked=st.lists(anyone, min_size=2, max_size=3))
    def leave_together(self, group_id: GroupId, picked: list[int]) -> None:
        members = [client for client in self.clients if client.group_id == group_id]
        self.crowd.leave(*(members[number] for number in picked))

    @rule(group_id=groups, instance=st.sampled_from(["i1", "i2", "i3"]))
    def remove_instance(self, group_id: GroupId, instance: str) -> None:
        self.crowd.remove(group_id, Leaver(instance_id=InstanceId(instance)))

    @rule(ago=st.integers(0, 15))
    def deliver_something_late(self, ago: int) -> None:
        """A retry, or a packet that took its time."""
        sent = [step.command for step in self.crowd.steps if isinstance(step.command, Request)]
        if ago < len(sent):
            self.crowd.ask_again(sent[-1 - ago])

    # Offsets

    @rule(number=numbers, topic=topics, text=metadata, behind=behinds)
    def commit(self, number: int, topic: str, text: str, behind: int) -> None:
        offsets = self.crowd.offset(topic, metadata=text), self.crowd.offset(topic, 1)
        self.crowd.commit(self.clients[number], *offsets, behind=behind)

    @rule(group_id=groups, topic=topics)
    def commit_simply(self, group_id: GroupId, topic: str) -> None:
        self.crowd.commit_simply(group_id, self.crowd.offset(topic))

    @rule(number=numbers, producer_id=producers, topic=topics)
    def commit_in_transaction(self, number: int, producer_id: ProducerId, topic: str) -> None:
        offset = self.crowd.offset(topic)
        self.crowd.commit_in_transaction(self.clients[number], producer_id, offset)

    @rule(group_id=groups, producer_id=producers, topic=topics)
    def commit_in_transaction_as_nobody(
        self, group_id: GroupId, producer_id: ProducerId, topic: str
    ) -> None:
        offset = self.crowd.offset(topic)
        self.crowd.commit_in_transaction(Client("nobody", group_id), producer_id, offset)

    @rule(producer_id=producers, is_commit=st.booleans())
    def end_transaction(self, producer_id: ProducerId, is_commit: bool) -> None:  # noqa: FBT001
        ticket = self.crowd.next_ticket()
        self.crowd.ask(EndTransaction(ticket=ticket, producer_id=producer_id, is_commit=is_commit))

    @rule(group_id=groups, is_all=st.booleans())
    def fetch(self, group_id: GroupId, is_all: bool) -> None:  # noqa: FBT001
        topics = None if is_all else _partitions("t1")
        ticket = self.crowd.next_ticket()
        command = FetchOffsets(
            ticket=ticket, group_id=group_id, topics=topics, require_stable=is_all
        )
        self.crowd.ask(command)

    @rule(group_id=groups, topic=topics)
    def delete_offsets(self, group_id: GroupId, topic: str) -> None:
        ticket = self.crowd.next_ticket()
        topics = _partitions(topic)
        self.crowd.ask(DeleteOffsets(ticket=ticket, group_id=group_id, topics=topics))

    @rule(topic=topics)
    def delete_topic(self, topic: str) -> None:
        self.crowd.ask(ForgetTopics(topics=(DeletedTopic(topic=Topic(topic)),)))

    # Groups

    @rule(group_ids=st.sampled_from([(G1,), (G2,), (G1, G2)]))
    def delete_groups(self, group_ids: tuple[GroupId, ...]) -> None:
        self.crowd.ask(DeleteGroups(ticket=self.crowd.next_ticket(), group_ids=group_ids))

    @rule()
    def look_around(self) -> None:
        self.crowd.ask(DescribeGroups(ticket=self.crowd.next_ticket(), group_ids=GROUPS))
        self.crowd.ask(ListGroups(ticket=self.crowd.next_ticket()))

    # Time and trouble

    @rule(ms=st.sampled_from([1, 1_500, 5_000]))
    def let_time_pass(self, ms: int) -> None:
        self.crowd.advance(self.driver.now + ms)

    @rule()
    def wait_for_the_next_timer(self) -> None:
        self.crowd.advance(min(self.driver.timers.values(), default=self.driver.now))

    @rule(minutes=st.sampled_from([1, 11, 30]))
    def let_everyone_sleep(self, minutes: int) -> None:
        self.crowd.advance(self.driver.now + minutes * 60_000)

    @rule()
    def crash(self) -> None:
        self.crowd.crash()

    @rule(size=st.sampled_from([2, 4, 4]))
    def shut_down_and_start_again(self, size: int) -> None:
        self.crowd.ask(Shutdown())
        assert not self.crowd.open, f"nobody told {self.crowd.open} of the shutdown"
        self.crowd.crash(replace(LIMITS, group_max_size=size))

    @rule(error=errors, steps=st.integers(1, 4))
    def break_the_log(self, error: ErrorCode, steps: int) -> None:
        self.crowd.break_log(error)
        self.steps_until_mended = steps

    # What must hold

    @invariant()
    def the_log_is_mended_after_a_while(self) -> None:
        self.steps_until_mended -= 1
        if self.steps_until_mended == 0:
            self.crowd.break_log(None)

    @invariant()
    def everything_is_in_order(self) -> None:
        machine, timers = self.driver.machine, self.driver.timers
        for record in self.driver.records[self.loaded_count :]:
            self.loaded.apply(invariants.through_bytes(record))
        self.loaded_count = len(self.driver.records)
        offences = [
            *invariants.find_group_offences(machine),
            *invariants.idle_timers(machine, timers),
            *invariants.missing_timers(machine, timers),
            *invariants.lost_tickets(machine, self.crowd.open),
            *invariants.repeated_answers(self.driver.replies),
            *invariants.generations_gone_back(self.driver.records),
            *invariants.broken_stories(self.driver.notes[self.crowd.life_began :]),
            *invariants.differences(machine, self.loaded),
        ]
        for step in self.crowd.steps[self.checked_count :]:
            before, outcome = step.generation_before, step.outcome
            offences += invariants.stale_answers(step.command, before, outcome)
            offences += invariants.unled_generations(outcome)
            offences += invariants.removed_waiters(outcome)
        self.checked_count = len(self.crowd.steps)
        assert not offences, self._tell(offences)

    def teardown(self) -> None:
        machine, records = self.driver.machine, self.driver.records
        offences = [
            *invariants.differences(machine, rebuilt(records, LIMITS)),
            *invariants.wrong_offsets(machine, records),
        ]
        assert not offences, self._tell(offences)

    def _tell(self, offences: list[str]) -> str:
        trace = self.crowd.trace("Found by a search; name it after the behaviour.")
        return "\n".join([*offences, "", Player().play(trace).text])


def _partitions(topic: str) -> tuple[TopicPartitions, ...]:
    return (TopicPartitions(topic=Topic(topic), partitions=(Partition(0), Partition(1))),)


TestCoordination = Coordination.TestCase
TestCoordination.settings = settings(
    max_examples=6 * settings().max_examples, stateful_step_count=60
)
