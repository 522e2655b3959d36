"""Every mutation is caught by some seed."""

from pathlib import Path

import pytest

from kohort.sim.plan_generator import draw_plan
from kohort.sim.runner import run_plan
from tests.sim.mutations import MUTATIONS, SEEDS_MAX, Mutation, find_catch, with_table

ROOT = Path(__file__).parents[2]
SEEDS = Path(__file__).parent / "seeds"


@pytest.mark.full
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_mutation_is_caught(mutation: Mutation) -> None:
    caught = find_catch(mutation)

    assert caught is not None, f"not caught by {SEEDS_MAX} seeds: {mutation.mistake}"


@pytest.mark.full
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_plans_pass_without_the_mutation(mutation: Mutation) -> None:
    for seed in range(3):
        result = run_plan(mutation.focus(draw_plan(seed)))

        assert result.is_good, f"seed {seed}: {result.rule}: {result.what}"


def test_the_table_of_mutations_is_up_to_date() -> None:
    page = (ROOT / "docs" / "contributing" / "testing.md").read_text("utf-8")

    assert with_table(page) == page, "regenerate it with: python -m tests.sim.mutations --doc"


def test_mutation_names_are_unique() -> None:
    names = [mutation.name for mutation in MUTATIONS]

    assert len(set(names)) == len(names) >= 10
