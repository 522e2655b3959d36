"""Plans: drawn from seeds, kept in files, made smaller."""

from dataclasses import replace

import pytest

from kohort.sim.drawing import draw_plan
from kohort.sim.plan import Kind, Plan
from kohort.sim.planfile import BadPlan, read_plan, write_plan
from kohort.sim.runs import explain, run_plan
from kohort.sim.shrinking import shrink
from tests.sim.mutations import MUTATIONS, applied

SEEDS = range(60)
PLANS = [draw_plan(seed) for seed in range(400)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_survives_its_file(seed: int) -> None:
    plan = draw_plan(seed)

    assert read_plan(write_plan(plan, ("a remark", ""))) == plan


def test_the_swarm_has_every_kind_of_decision_and_runs_without_any() -> None:
    kinds = {decision.kind for plan in PLANS for decision in plan.decisions}

    assert kinds == set(Kind)
    assert any(not plan.decisions for plan in PLANS)
    assert any(plan.is_orderly and plan.decisions for plan in PLANS)
    assert {len(plan.members) for plan in PLANS} >= {1, 8}
    assert {plan.durability for plan in PLANS} == {"fsync", "os"}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("plan {", "line 1"),
        ("weather {}", "line 1"),
        ('decision {"number": 1, "at_ms": 2, "kind": "earthquake"}', "earthquake"),
        ('plan {"seed": 1}', "this is no plan"),
        ("", "this is no plan"),
    ],
)
def test_what_is_no_plan_is_refused_with_the_reason(line: str, complaint: str) -> None:
    with pytest.raises(BadPlan, match=complaint):
        read_plan(line)


def test_a_failure_shrinks_to_what_it_needs() -> None:
    mutation = next(each for each in MUTATIONS if each.name == "too-far")
    plan = next(each for each in PLANS if len(each.members) > 3 and len(each.decisions) > 6)

    with applied(mutation):
        small = shrink(plan, "deliveries", runs_max=120)
        again = run_plan(small)

    assert again.rule == "deliveries"
    assert len(small.members) == 1
    assert small.decisions == ()
    assert sum(small.topics) == 1
    assert run_plan(small).is_good, "without the mistake there is nothing wrong with it"


def test_an_explanation_is_a_plan_that_fails_again_with_the_trace_of_it() -> None:
    mutation = next(each for each in MUTATIONS if each.name == "twice-answered")

    with applied(mutation):
        text = explain(run_plan(draw_plan(0)))
        again = run_plan(read_plan(text))

    assert again.rule == "answers"
    assert text.startswith("# Seed 0 broke the rule `answers`")
    assert "violation answers" in text.splitlines()[-1]


def test_shrinking_what_does_not_fail_changes_nothing() -> None:
    plan: Plan = replace(draw_plan(3), decisions=())

    assert shrink(plan, "deliveries", runs_max=10) == plan
