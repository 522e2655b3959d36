"""Nothing that may befall coordinator, node, log and members breaks a rule.

A failure shows the seed: `kohort simulate --seed N` shrinks it into a file, and that file belongs
into seeds/ once the mistake is found.
"""

import os
from pathlib import Path

import pytest

from kohort.sim.planfile import read_plan
from kohort.sim.runs import Tally, run_plan, run_seeds
from tests.sim.mutations import PAST_FAILURES

FIRST = int(os.environ.get("KOHORT_SEED", "0"))
CHUNKS, SEEDS_PER_CHUNK = 20, 25


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_seed_breaks_a_rule(chunk: int) -> None:
    tally = Tally()

    for verdict in run_seeds(FIRST + chunk * SEEDS_PER_CHUNK, SEEDS_PER_CHUNK):
        tally.add(verdict)
        assert verdict.is_good, f"seed {verdict.plan.seed}: {verdict.rule}: {verdict.what}"

    # Seeds in which nothing happens would prove nothing.
    assert tally.lives > SEEDS_PER_CHUNK
    assert tally.processed > 10 * SEEDS_PER_CHUNK


@pytest.mark.parametrize("file", PAST_FAILURES, ids=lambda file: file.stem)
def test_what_failed_once_does_not_fail_again(file: Path) -> None:
    verdict = run_plan(read_plan(file.read_text("utf-8")))

    assert verdict.is_good, f"{verdict.rule}: {verdict.what}\n{verdict.details}"


def test_past_failures_are_kept() -> None:
    assert PAST_FAILURES
