"""No seed breaks a rule, and no past failure comes back.

A failure prints its seed. `kohort simulate --seed N` shrinks it into a plan file; put that file
into seeds/ once the bug is fixed.
"""

import os
from pathlib import Path

import pytest

from kohort.sim.plan_file import read_plan
from kohort.sim.runner import SeedTotals, run_plan, run_seeds
from tests.sim.mutations import PAST_FAILURES

FIRST = int(os.environ.get("KOHORT_SEED", "0"))
CHUNKS, SEEDS_PER_CHUNK = 20, 25
SMOKE_CHUNKS = 2
"""These are part of `make test`; the others only of `make test-full`."""


@pytest.mark.parametrize(
    "chunk",
    [
        *range(SMOKE_CHUNKS),
        *(pytest.param(each, marks=pytest.mark.full) for each in range(SMOKE_CHUNKS, CHUNKS)),
    ],
)
def test_no_seed_breaks_a_rule(chunk: int) -> None:
    totals = SeedTotals()

    for result in run_seeds(FIRST + chunk * SEEDS_PER_CHUNK, SEEDS_PER_CHUNK):
        totals.add(result)
        assert result.is_good, f"seed {result.plan.seed}: {result.rule}: {result.what}"

    # Seeds in which nothing happens would test nothing.
    assert totals.node_starts > SEEDS_PER_CHUNK
    assert totals.processed > 10 * SEEDS_PER_CHUNK


@pytest.mark.parametrize("file", PAST_FAILURES, ids=lambda file: file.stem)
def test_past_failures_do_not_come_back(file: Path) -> None:
    result = run_plan(read_plan(file.read_text("utf-8")))

    assert result.is_good, f"{result.rule}: {result.what}\n{result.details}"


def test_there_are_past_failures() -> None:
    assert PAST_FAILURES
