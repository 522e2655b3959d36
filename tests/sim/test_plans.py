"""Plans: generated from seeds, stored in files, shrunk."""

from dataclasses import replace

import pytest

from kohort.sim.plan import EventKind, PlannedEvent, SimulationPlan
from kohort.sim.plan_file import InvalidPlan, read_plan, write_plan
from kohort.sim.plan_generator import CALM, draw_plan
from kohort.sim.runner import explain, run_plan
from kohort.sim.shrinker import shrink
from tests.sim.mutations import MUTATIONS, applied

SEEDS = range(60)
PLANS = [draw_plan(seed) for seed in range(400)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_file_restores_the_plan(seed: int) -> None:
    plan = draw_plan(seed)

    assert read_plan(write_plan(plan, ("a remark", ""))) == plan


def test_plans_cover_every_event_kind_and_runs_without_events() -> None:
    kinds = {event.kind for plan in PLANS for event in plan.events}

    assert kinds == set(EventKind)
    assert any(not plan.events for plan in PLANS)
    assert any(plan.is_orderly and plan.events for plan in PLANS)
    assert {len(plan.members) for plan in PLANS} >= {1, 8}
    assert {plan.durability for plan in PLANS} == {"fsync", "os"}


def test_clock_steps_go_both_ways_and_suspensions_outlast_sessions() -> None:
    events = [event for plan in PLANS for event in plan.events]
    steps = [event.amount for event in events if event.kind is EventKind.CLOCK_JUMP]
    suspensions = [event.amount for event in events if event.kind is EventKind.NODE_SUSPEND]

    assert min(steps) <= -3_600_000
    assert max(steps) >= 3_600_000
    assert max(suspensions) > max(member.session_ms for plan in PLANS for member in plan.members)


def test_a_suspended_node_reads_what_arrived_meanwhile_and_keeps_its_members() -> None:
    plan = next(each for each in PLANS if each.members[0].session_ms == 4_000)
    suspension = PlannedEvent(number=0, at_ms=8_000, kind=EventKind.NODE_SUSPEND, amount=9_000)
    lines: list[str] = []

    result = run_plan(
        replace(plan, faulty_ms=20_000, conditions=CALM, events=(suspension,)), lines.append
    )

    assert result.is_good, f"{result.rule}: {result.what}"
    assert any("resumed    after=9000" in line for line in lines)
    assert any("loop-suspended seconds=8." in line for line in lines)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("plan {", "line 1"),
        ("conditions {}", "line 1"),
        ('event {"number": 1, "at_ms": 2, "kind": "earthquake"}', "earthquake"),
        ('plan {"seed": 1}', "not a valid plan"),
        ("", "not a valid plan"),
    ],
)
def test_an_invalid_plan_file_is_rejected_with_the_reason(line: str, complaint: str) -> None:
    with pytest.raises(InvalidPlan, match=complaint):
        read_plan(line)


def test_a_failing_plan_shrinks_to_its_minimum() -> None:
    mutation = next(each for each in MUTATIONS if each.name == "too-far")
    plan = next(each for each in PLANS if len(each.members) > 3 and len(each.events) > 6)

    with applied(mutation):
        small = shrink(plan, "deliveries", runs_max=120)
        again = run_plan(small)

    assert again.rule == "deliveries"
    assert len(small.members) == 1
    assert small.events == ()
    assert sum(small.topics) == 1
    assert run_plan(small).is_good, "the plan must pass without the mutation"


def test_an_explanation_contains_the_plan_and_its_trace() -> None:
    mutation = next(each for each in MUTATIONS if each.name == "two-responses")

    with applied(mutation):
        text = explain(run_plan(draw_plan(0)))
        again = run_plan(read_plan(text))

    assert again.rule == "responses"
    assert text.startswith("# Seed 0 broke the rule `responses`")
    assert "violation  responses" in text.splitlines()[-1]


def test_shrinking_a_passing_plan_changes_nothing() -> None:
    plan: SimulationPlan = replace(draw_plan(3), events=())

    assert shrink(plan, "deliveries", runs_max=10) == plan
