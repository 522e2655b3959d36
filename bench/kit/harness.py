"""What the benchmarks share: fair timing of two sides in one run, and how results are told.

Only ratios within one run mean anything: machines differ, and so does one machine from hour to
hour. Both sides take turns in short rounds, and the median round counts.
"""

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Work = Callable[[], object]

ROUND_SECONDS = 0.02
"""Long enough for the clock, short enough that a disturbance spoils few rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The same work done by two sides; `target` is the highest ratio that is good enough."""

    metric: str
    kohort: Work
    peer: Work
    target: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What both sides cost, which is mostly median CPU time; less is better."""

    metric: str
    kohort: float
    peer: float
    target: float | None
    unit: str = "µs"

    @property
    def ratio(self) -> float:
        return self.kohort / self.peer

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        return f"{'met' if self.ratio <= self.target else 'MISSED'}: <= {self.target}"


def main(description: str, peer: str, contests: Iterable[Contest]) -> None:
    """Run the contests and tell the results."""
    tell(description, peer, lambda rounds: run(tuple(contests), rounds=rounds))


def tell(description: str, peer: str, measure: Callable[[int], Iterable[Result]]) -> None:
    """Measure in so many rounds and tell the results, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    parser.add_argument("--rounds", type=int, default=25, help="rounds per side (%(default)s)")
    options = parser.parse_args()
    results = list(measure(options.rounds))
    sys.stdout.write(as_json(results) if options.json else as_table(results, peer))


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
    """CPU time of so many calls, without the collector: its visits are not the work's doing."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for _ in range(count):
            work()
        return time.process_time() - start
    finally:
        gc.enable()


def as_json(results: list[Result]) -> str:
    content = {
        result.metric: {
            "kohort": round(result.kohort, 3),
            "peer": round(result.peer, 3),
            "ratio": round(result.ratio, 3),
        }
        for result in results
    }
    return json.dumps(content) + "\n"


def as_table(results: list[Result], peer: str) -> str:
    rows = [("metric", "kohort", peer, "ratio", "")]
    for r in results:
        costs = f"{r.kohort:.2f} {r.unit}", f"{r.peer:.2f} {r.unit}"
        rows.append((r.metric, *costs, f"{r.ratio:.2f}", r.verdict))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if place in (0, 4) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines) + "\n"
