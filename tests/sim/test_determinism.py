"""The same seed gives the same trace, independent of PYTHONHASHSEED."""

import os
import subprocess
import sys

import pytest

from kohort.sim.plan_generator import draw_plan
from kohort.sim.runner import run_plan

SEEDS = (1, 5, 13, 28)

_PROGRAM = """
import hashlib, sys
from kohort.sim.plan_generator import draw_plan
from kohort.sim.runner import run_plan
for seed in map(int, sys.argv[1:]):
    lines = []
    run_plan(draw_plan(seed), lines.append)
    print(hashlib.sha256("\\n".join(lines).encode()).hexdigest())
"""


def digests(hash_seed: str) -> list[str]:
    finished = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *map(str, SEEDS)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout.split()


def test_a_trace_is_the_same_in_two_processes_with_different_hash_seeds() -> None:
    first, second = digests("1"), digests("2")

    assert len(set(first)) == len(SEEDS)
    assert first == second


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_does_not_depend_on_tracing_or_on_earlier_runs(seed: int) -> None:
    lines: list[str] = []
    again: list[str] = []

    watched = run_plan(draw_plan(seed), lines.append)
    unwatched = run_plan(draw_plan(seed))
    run_plan(draw_plan(seed), again.append)

    assert watched == unwatched
    assert lines == again
