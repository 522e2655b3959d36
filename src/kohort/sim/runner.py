"""Runs one plan or many seeds, and writes a failure to a plan file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kohort.sim.plan import SimulationPlan
from kohort.sim.plan_file import write_plan
from kohort.sim.plan_generator import draw_plan
from kohort.sim.shrinker import shrink
from kohort.sim.world import RunResult, World

_TRACE_LINES_MAX = 40
"""The end of the trace, which the plan file includes."""


@dataclass
class SeedTotals:
    """Totals of many runs."""

    runs: int = 0
    steps: int = 0
    virtual_ms: int = 0
    node_starts: int = 0
    processed: int = 0

    def add(self, result: RunResult) -> None:
        self.runs += 1
        self.steps += result.steps
        self.virtual_ms += result.ended_ms
        self.node_starts += result.node_starts
        self.processed += result.processed


def run_plan(plan: SimulationPlan, write: Callable[[str], None] | None = None) -> RunResult:
    return World(plan, write).run()


def run_seeds(first: int, count: int) -> Iterator[RunResult]:
    for seed in range(first, first + count):
        yield run_plan(draw_plan(seed))


def explain(result: RunResult) -> str:
    """A plan file with the smallest plan that breaks the same rule, and the end of its trace."""
    assert result.rule is not None, "no rule was broken"
    plan = shrink(result.plan, result.rule)
    lines: list[str] = []
    smallest = run_plan(plan, lines.append)
    remarks = (
        f"Seed {result.plan.seed} broke the rule `{result.rule}`: {result.what}",
        f"Shrunk: {smallest.what}",
        *smallest.details.splitlines(),
    )
    trace = "".join(f"# {line}\n" for line in lines[-_TRACE_LINES_MAX:])
    return write_plan(plan, remarks) + trace
