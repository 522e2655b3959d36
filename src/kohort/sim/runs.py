"""Runs of the world: one seed, many seeds, and what is kept of a failure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kohort.sim.drawing import draw_plan
from kohort.sim.plan import Plan
from kohort.sim.planfile import write_plan
from kohort.sim.shrinking import shrink
from kohort.sim.world import Verdict, World

_TRACE_LINES_MAX = 40
"""Of the trace that is kept beside a plan: its end, where the failure is."""


@dataclass
class Tally:
    """What many runs amount to."""

    runs: int = 0
    events: int = 0
    virtual_ms: int = 0
    lives: int = 0
    processed: int = 0

    def add(self, verdict: Verdict) -> None:
        self.runs += 1
        self.events += verdict.events
        self.virtual_ms += verdict.ended_ms
        self.lives += verdict.lives
        self.processed += verdict.processed


def run_plan(plan: Plan, write: Callable[[str], None] | None = None) -> Verdict:
    return World(plan, write).run()


def run_seeds(first: int, count: int) -> Iterator[Verdict]:
    for seed in range(first, first + count):
        yield run_plan(draw_plan(seed))


def explain(verdict: Verdict) -> str:
    """A file that holds the smallest plan found that fails likewise, and the trace of its end."""
    assert verdict.rule is not None, "there is nothing to explain"
    plan = shrink(verdict.plan, verdict.rule)
    lines: list[str] = []
    smallest = run_plan(plan, lines.append)
    remarks = (
        f"Seed {verdict.plan.seed} broke the rule `{verdict.rule}`: {verdict.what}",
        f"Shrunk, it breaks it so: {smallest.what}",
        *smallest.details.splitlines(),
    )
    trace = "".join(f"# {line}\n" for line in lines[-_TRACE_LINES_MAX:])
    return write_plan(plan, remarks) + trace
