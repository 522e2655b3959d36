"""The net has no holes: every deliberate mistake is caught by some seed."""

from pathlib import Path

import pytest

from kohort.sim.drawing import draw_plan
from kohort.sim.runs import run_plan
from tests.sim.mutations import MUTATIONS, SEEDS_MAX, Mutation, find_catch, with_table

ROOT = Path(__file__).parents[2]
SEEDS = Path(__file__).parent / "seeds"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_mistake_is_caught(mutation: Mutation) -> None:
    caught = find_catch(mutation)

    assert caught is not None, f"{mutation.mistake}, and {SEEDS_MAX} seeds did not notice"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_without_the_mistake_there_is_nothing_to_catch(mutation: Mutation) -> None:
    for seed in range(3):
        verdict = run_plan(mutation.focus(draw_plan(seed)))

        assert verdict.is_good, f"seed {seed}: {verdict.rule}: {verdict.what}"


def test_the_table_of_mutations_is_fresh() -> None:
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")

    assert with_table(page) == page, "write it with: python -m tests.sim.mutations --doc"


def test_mutations_have_names_of_their_own() -> None:
    names = [mutation.name for mutation in MUTATIONS]

    assert len(set(names)) == len(names) >= 10
