"""Members and the real coordinator, left to themselves: whatever happens, they come to terms."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.assignors import BUILT_IN, COOPERATIVE_STICKY, RANGE, STICKY, Assignor
from kohort.client.errors import ConsumerError, Fenced
from kohort.client.member.effects import Change
from kohort.client.member.machine import MemberSettings
from kohort.client.rebalances import Ending
from kohort.types import GroupId, InstanceId, Millis, Topic
from tests.client.world import Program, World

TOPICS = {Topic("t"): 5, Topic("u"): 2}

each_assignor = pytest.mark.parametrize("assignor", BUILT_IN.values(), ids=BUILT_IN)


def start(world: World, name: str, assignor: Assignor, instance: str | None = None) -> Program:
    settings = MemberSettings(
        group_id=GroupId("g"),
        assignors=(assignor,),
        instance_id=None if instance is None else InstanceId(instance),
        session_timeout_ms=Millis(10_000),
        max_poll_interval_ms=Millis(20_000),
        auto_commit_interval_ms=Millis(1_000),
    )
    return Program(world, name, settings, frozenset(TOPICS))


@each_assignor
@pytest.mark.parametrize("instance", [None, "i"], ids=["dynamic", "static"])
def test_members_that_come_and_go_calmly_read_everything_once(
    assignor: Assignor, instance: str | None
) -> None:
    world = World(seed=1, topics=dict(TOPICS))

    for number in range(4):
        start(world, f"p{number}", assignor, instance and f"{instance}{number}")
        world.settle()
    for program in world.programs[:3]:
        program.close()
        world.settle()

    assert not world.reread
    assert not any(program.failures for program in world.programs)
    assert not any(call.change is Change.LOST for p in world.programs for call in p.calls)


@each_assignor
def test_a_fleet_that_starts_together_rebalances_once(assignor: Assignor) -> None:
    world = World(seed=2, topics=dict(TOPICS))

    fleet = [start(world, f"p{number}", assignor) for number in range(5)]
    world.settle()

    assert {len(program.rebalances) for program in fleet} == {1}


def test_a_cooperative_member_keeps_what_it_may_keep() -> None:
    world = World(seed=3, topics=dict(TOPICS))
    first = start(world, "p1", COOPERATIVE_STICKY)
    world.settle()

    second = start(world, "p2", COOPERATIVE_STICKY)
    world.settle()

    (revoked,) = [call for call in first.calls if call.change is Change.REVOKED]
    assert revoked.partitions == second.member.held
    assert not world.reread


def test_an_instance_that_restarts_finds_its_partitions_again() -> None:
    world = World(seed=4, topics=dict(TOPICS))
    first, other = start(world, "p1", RANGE, "i1"), start(world, "p2", RANGE, "i2")
    world.settle()
    held, generation = first.member.held, other.member.generation

    first.crash()
    again = start(world, "p1", RANGE, "i1")
    world.settle()

    assert again.member.held == held
    assert again.member.generation == other.member.generation == generation


def test_two_processes_with_one_instance_id_find_each_other_out() -> None:
    world = World(seed=5, topics=dict(TOPICS))
    first = start(world, "p1", RANGE, "i1")
    world.settle()

    start(world, "p2", RANGE, "i1")
    world.run(10_000)

    assert any(isinstance(error, Fenced) for error in first.failures)


def test_a_program_that_is_stuck_loses_its_partitions_and_gets_some_again() -> None:
    world = World(seed=6, topics=dict(TOPICS))
    stuck, other = start(world, "p1", STICKY), start(world, "p2", STICKY)
    world.settle()

    stuck.work_ms_max = 60_000
    world.run(120_000)
    stuck.work_ms_max = 400
    world.settle()

    assert any(call.change is Change.LOST for call in stuck.calls)
    assert any(told.ending is Ending.STABLE for told in other.rebalances[1:])
    assert stuck.member.held


def test_partitions_that_are_added_are_dealt_out() -> None:
    world = World(seed=7, topics=dict(TOPICS))
    for number in range(3):
        start(world, f"p{number}", COOPERATIVE_STICKY)
    world.settle()

    world.topics[Topic("t")] += 4
    for program in world.programs:
        program.look_around()

    world.settle()


@given(seed=st.integers(0, 2**32))
def test_members_come_to_terms_after_any_storm(seed: int) -> None:
    world = World(seed=seed, topics=dict(TOPICS))
    storm = Storm(world)

    for _ in range(storm.dice.randint(3, 12)):
        storm.strike()
        world.run(storm.dice.choice([0, 10, 100, 1_000, 5_000, 15_000]))
    storm.end()

    world.settle()
    assert not [error for p in world.programs for error in p.failures if _is_strange(error)]


def _is_strange(error: ConsumerError) -> bool:
    return not isinstance(error, Fenced)


class Storm:
    """One blow after the other, drawn from the world's seed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.dice = Random(world.seed)  # noqa: S311  # drawn again from the same seed
        self._assignor = self.dice.choice(list(BUILT_IN.values()))
        self._is_static = self.dice.random() < 0.3
        self._started = 0

    def strike(self) -> None:
        blows = [
            self._start,
            self._start,
            self._close,
            self._crash,
            self._restart,
            self._unsubscribe,
            self._get_stuck,
            self._grow,
            self.world.crash_coordinator,
            self._take_down,
        ]
        self.dice.choice(blows)()

    def end(self) -> None:
        self.world.is_coordinator_up = True
        for program in self.world.alive:
            program.work_ms_max = 400
        if not self.world.alive:
            self._start()
        # A static leader that is told to skip the assignment cannot know what has grown in its
        # absence, here as in Kafka: it must see something grow to deal out anew.
        self.world.run(60_000)
        self._grow()

    def _start(self) -> None:
        if len(self.world.alive) < 5:
            self._started += 1
            self._start_as(self._started)

    def _start_as(self, number: int) -> None:
        instance = f"i{number}" if self._is_static else None
        start(self.world, f"p{number}", self._assignor, instance)

    def _one(self) -> Program | None:
        alive = [each for each in self.world.alive if not each.is_closing]
        return self.dice.choice(alive) if alive else None

    def _close(self) -> None:
        if (program := self._one()) is not None:
            program.close()

    def _crash(self) -> None:
        if (program := self._one()) is not None:
            program.crash()

    def _restart(self) -> None:
        if (program := self._one()) is not None:
            program.crash()
            self._start_as(int(program.name.removeprefix("p")))

    def _unsubscribe(self) -> None:
        if (program := self._one()) is not None:
            program.unsubscribe()

    def _get_stuck(self) -> None:
        if (program := self._one()) is not None:
            program.work_ms_max = 40_000

    def _grow(self) -> None:
        self.world.topics[Topic("u")] += 1
        for program in self.world.alive:
            program.look_around()

    def _take_down(self) -> None:
        self.world.is_coordinator_up = not self.world.is_coordinator_up
