"""The invariants hold after each step, for random requests, timers and failures.

Hypothesis controls a few clients of two groups with tight limits. A failing example is printed as a
trace, which can be added to the traces.
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
    LeavingMember,
    ListGroups,
    RebalanceGroup,
    Request,
    RequestedTopic,
    Shutdown,
    TopicsChanged,
)
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.coordinator import Coordinator
from kohort.types import ErrorCode, GroupId, InstanceId, Millis, Partition, ProducerId, Topic
from tests.coordinator import invariants
from tests.coordinator.client_crowd import PROTOCOLS, Client, Crowd
from tests.coordinator.driver import rebuilt
from tests.coordinator.trace_player import Player

CONFIG = GroupConfig(
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
        Client("duplicate", group_id, instance_id=i2, rebalance_ms=short, is_old=True),
    ]


ROOM = len(crowd_of(G1))
STATIC = range(4, ROOM)

# The first group has most of the clients' attention, so that it gets somewhere.
groups = st.sampled_from([G1, G1, G1, G2])
numbers = st.sampled_from([*range(ROOM), *range(2 * ROOM)])
client_numbers = st.integers(0, ROOM - 1)
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
        self.crowd = Crowd.with_config(CONFIG)
        self.driver = self.crowd.driver
        self.clients = [client for group_id in GROUPS for client in crowd_of(group_id)]
        self.loaded = Coordinator(CONFIG)
        """A second coordinator, loaded from the encoded records."""
        self.loaded_count = 0
        self.checked_count = 0
        self.steps_until_repair = 0

    # Being a member

    @rule(number=numbers, offering=protocols)
    def join(self, number: int, offering: str) -> None:
        self.crowd.join(self.clients[number], offering)

    @rule(number=numbers)
    def join_as_something_else(self, number: int) -> None:
        self.crowd.join(self.clients[number], type_="connect")

    @rule(
        group_id=groups,
        picked=st.sets(client_numbers, min_size=1),
        offering=protocols,
        pause=st.sampled_from([0, 0, 0, 12_000]),
    )
    def settle(self, group_id: GroupId, picked: set[int], offering: str, pause: int) -> None:
        members = [client for client in self.clients if client.group_id == group_id]
        chosen = (members[number] for number in sorted(picked))
        self.crowd.settle(*chosen, protocols=offering, leader_pauses_ms=pause)

    @rule(group_id=groups, number=client_numbers)
    def gather(self, group_id: GroupId, number: int) -> None:
        """Some clients settle and send heartbeats."""
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

    @rule(group_id=groups, picked=st.lists(client_numbers, min_size=2, max_size=3))
    def leave_together(self, group_id: GroupId, picked: list[int]) -> None:
        members = [client for client in self.clients if client.group_id == group_id]
        self.crowd.leave(*(members[number] for number in picked))

    @rule(group_id=groups, instance=st.sampled_from(["i1", "i2", "i3"]))
    def remove_instance(self, group_id: GroupId, instance: str) -> None:
        self.crowd.remove(group_id, LeavingMember(instance_id=InstanceId(instance)))

    @rule(ago=st.integers(0, 15))
    def deliver_something_late(self, ago: int) -> None:
        """A retry, or a packet that took its time."""
        sent = [step.command for step in self.crowd.steps if isinstance(step.command, Request)]
        if ago < len(sent):
            self.crowd.resend(sent[-1 - ago])

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
    def commit_in_transaction_without_member(
        self, group_id: GroupId, producer_id: ProducerId, topic: str
    ) -> None:
        offset = self.crowd.offset(topic)
        self.crowd.commit_in_transaction(Client("unknown", group_id), producer_id, offset)

    @rule(producer_id=producers, is_commit=st.booleans())
    def end_transaction(self, producer_id: ProducerId, is_commit: bool) -> None:  # noqa: FBT001
        ticket = self.crowd.next_ticket()
        self.crowd.send(EndTransaction(ticket=ticket, producer_id=producer_id, is_commit=is_commit))

    @rule(group_id=groups, is_all=st.booleans())
    def fetch(self, group_id: GroupId, is_all: bool) -> None:  # noqa: FBT001
        topics = None if is_all else _partitions("t1")
        ticket = self.crowd.next_ticket()
        command = FetchOffsets(
            ticket=ticket, group_id=group_id, topics=topics, require_stable=is_all
        )
        self.crowd.send(command)

    @rule(group_id=groups, topic=topics)
    def delete_offsets(self, group_id: GroupId, topic: str) -> None:
        ticket = self.crowd.next_ticket()
        topics = _partitions(topic)
        self.crowd.send(DeleteOffsets(ticket=ticket, group_id=group_id, topics=topics))

    @rule(topic=topics)
    def delete_topic(self, topic: str) -> None:
        self.crowd.send(TopicsChanged(deleted=(DeletedTopic(topic=Topic(topic)),)))

    # Groups

    @rule(group_id=groups)
    def force_a_rebalance(self, group_id: GroupId) -> None:
        self.crowd.send(RebalanceGroup(group_id=group_id))

    @rule(group_ids=st.sampled_from([(G1,), (G2,), (G1, G2)]))
    def delete_groups(self, group_ids: tuple[GroupId, ...]) -> None:
        self.crowd.send(DeleteGroups(ticket=self.crowd.next_ticket(), group_ids=group_ids))

    @rule()
    def look_around(self) -> None:
        self.crowd.send(DescribeGroups(ticket=self.crowd.next_ticket(), group_ids=GROUPS))
        self.crowd.send(ListGroups(ticket=self.crowd.next_ticket()))

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
        self.crowd.send(Shutdown())
        assert not self.crowd.open, f"shutdown did not answer {self.crowd.open}"
        self.crowd.crash(replace(CONFIG, group_max_size=size))

    @rule(error=errors, steps=st.integers(1, 4))
    def break_the_log(self, error: ErrorCode, steps: int) -> None:
        self.crowd.break_log(error)
        self.steps_until_repair = steps

    # What must hold

    @invariant()
    def appends_succeed_again_later(self) -> None:
        self.steps_until_repair -= 1
        if self.steps_until_repair == 0:
            self.crowd.break_log(None)

    @invariant()
    def everything_is_in_order(self) -> None:
        coordinator, timers = self.driver.coordinator, self.driver.timers
        for record in self.driver.records[self.loaded_count :]:
            self.loaded.apply(invariants.through_bytes(record))
        self.loaded_count = len(self.driver.records)
        violations = [
            *invariants.find_group_violations(coordinator),
            *invariants.idle_timers(coordinator, timers),
            *invariants.missing_timers(coordinator, timers),
            *invariants.lost_tickets(coordinator, self.crowd.open),
            *invariants.repeated_replies(self.driver.replies),
            *invariants.decreasing_generations(self.driver.records),
            *invariants.event_gaps(self.driver.events[self.crowd.events_at_start :]),
            *invariants.differences(coordinator, self.loaded),
        ]
        for step in self.crowd.steps[self.checked_count :]:
            before, outcome = step.generation_before, step.outcome
            violations += invariants.stale_requests_accepted(step.command, before, outcome)
            violations += invariants.generations_without_leader(outcome)
            violations += invariants.removed_while_parked(outcome)
        self.checked_count = len(self.crowd.steps)
        assert not violations, self._tell(violations)

    def teardown(self) -> None:
        coordinator, records = self.driver.coordinator, self.driver.records
        violations = [
            *invariants.differences(coordinator, rebuilt(records, CONFIG)),
            *invariants.wrong_offsets(coordinator, records),
        ]
        assert not violations, self._tell(violations)

    def _tell(self, violations: list[str]) -> str:
        trace = self.crowd.trace("Found by a search; name it after the behaviour.")
        return "\n".join([*violations, "", Player().play(trace).text])


def _partitions(topic: str) -> tuple[RequestedTopic, ...]:
    return (RequestedTopic(topic=Topic(topic), partitions=(Partition(0), Partition(1))),)


TestCoordination = Coordination.TestCase
TestCoordination.settings = settings(
    max_examples=6 * settings().max_examples, stateful_step_count=60
)
