"""Shared code of the benchmarks: fair timing of two sides in one run, and printing of results.

Only ratios within one run are meaningful: machines differ, and so does one machine from hour to
hour. Both sides take turns in short rounds, and the median round counts.
"""

import argparse
import gc
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.kit.figures import Figure, Report, Taken, as_json, as_line, as_text, at_most

T = TypeVar("T")
Work = Callable[[], object]

ROUND_SECONDS = 0.02
"""Long enough for the clock, short enough that a disturbance affects few rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The same work done by two sides; `target` is the highest acceptable ratio."""

    metric: str
    kohort: Work
    peer: Work
    target: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The cost of both sides, mostly median CPU time; less is better."""

    metric: str
    kohort: float
    peer: float
    target: float | None
    unit: str = "µs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The number of rounds, and whether sizes are full or quick."""

    rounds: int
    is_quick: bool = False

    def pick(self, full: T, quick: T) -> T:
        """The full size, or the quick one, which only shows that the benchmark runs."""
        return quick if self.is_quick else full


Measure = Callable[[Effort], Iterable[Result | Figure]]


def main(description: str, peer: str, contests: Iterable[Contest]) -> None:
    """Run the contests and print the results."""
    tell(description, peer, lambda effort: run(tuple(contests), rounds=effort.rounds))


def tell(description: str, peer: str, measure: Measure, *, rounds: int = 25) -> None:
    """Measure, and print the results as a table or write them as JSON."""
    exit_when_terminated()
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, help=f"rounds per side ({rounds}; quickly 2)")
    parser.add_argument("--quick", action="store_true", help="small sizes, seconds: a rehearsal")
    parser.add_argument("--json", metavar="FILE", help="where to write the figures; - prints them")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("there must be a round")
    usual = 2 if options.quick else rounds
    effort = Effort(rounds=options.rounds or usual, is_quick=options.quick)
    before = os.getloadavg()[0]
    figures = []
    for each in measure(effort):
        figures.append(as_figure(each) if isinstance(each, Result) else each)
        sys.stderr.write(as_line(figures[-1]) + "\n")
    report = Report(
        name=_own_name(),
        about=description.strip(),
        peer=peer,
        figures=tuple(figures),
        load_average=(before, os.getloadavg()[0]),
    )
    if options.json and options.json != "-":
        Path(options.json).write_text(as_json(report), "utf-8")
    sys.stdout.write(as_json(report) if options.json == "-" else as_text(report))


def exit_when_terminated() -> None:
    """Exit on SIGTERM as on Ctrl-C, so that child processes and directories are cleaned up."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def _own_name() -> str:
    """The name of the started module."""
    spec = sys.modules["__main__"].__spec__
    return "" if spec is None else spec.name


def as_figure(result: Result) -> Figure:
    return Figure(
        metric=result.metric,
        unit=result.unit,
        kohort=Taken(samples=(result.kohort,)),
        peer=Taken(samples=(result.peer,)),
        target=None if result.target is None else at_most(result.target),
    )


def run(contests: tuple[Contest, ...], *, rounds: int) -> list[Result]:
    calls = [(calls_per_round(c.kohort), calls_per_round(c.peer)) for c in contests]
    times: list[tuple[list[float], list[float]]] = [([], []) for _ in contests]
    for number in range(rounds):
        for contest, (ours, theirs), (our_times, their_times) in zip(
            contests, calls, times, strict=True
        ):
            turns = [
                (our_times, contest.kohort, ours),
                (their_times, contest.peer, theirs),
            ]
            # Who goes first changes, so that neither side always finds the caches warm.
            for kept, work, count in turns if number % 2 else reversed(turns):
                kept.append(cpu_seconds(work, count) / count * 1e6)
    return [
        Result(
            metric=contest.metric,
            kohort=statistics.median(our_times),
            peer=statistics.median(their_times),
            target=contest.target,
        )
        for contest, (our_times, their_times) in zip(contests, times, strict=True)
    ]


def calls_per_round(work: Work) -> int:
    count = 1
    while (seconds := cpu_seconds(work, count)) < ROUND_SECONDS / 4:
        count *= 2
    return max(1, round(count * ROUND_SECONDS / seconds))


def cpu_seconds(work: Work, count: int) -> float:
    """CPU time of this many calls, with the garbage collector off."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for _ in range(count):
            work()
        return time.process_time() - start
    finally:
        gc.enable()
