"""Results of two sides: samples, medians, spreads, ratios, and whether a target is met.

All of it is pure. A report holds the results of one benchmark and converts to JSON and back.
"""

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The minimum or maximum of our result divided by the peer's."""

    ratio: float
    is_floor: bool

    def is_met_by(self, ratio: float) -> bool:
        return ratio >= self.ratio if self.is_floor else ratio <= self.ratio

    def __str__(self) -> str:
        return f"{'at least' if self.is_floor else 'at most'} {show(self.ratio)}"


def at_least(ratio: float) -> Target:
    return Target(ratio=ratio, is_floor=True)


def at_most(ratio: float) -> Target:
    return Target(ratio=ratio, is_floor=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The samples of one side, one per round, or the reason of its failure."""

    samples: tuple[float, ...] = ()
    failure: str = ""
    generator: tuple[float, ...] = ()
    """How busy the load generator was, as a share of one core; empty where there is none."""
    broker: tuple[float, ...] = ()
    """CPU seconds of the broker in each second; more than 1 where it had more than one core."""

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def is_there(self) -> bool:
        return bool(self.samples) and not self.failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    metric: str
    unit: str
    kohort: Taken
    peer: Taken
    target: Target | None = None

    @property
    def ratio(self) -> float | None:
        """Ratio of the medians; None if a side has none or the peer's is zero."""
        if not (self.kohort.is_there and self.peer.is_there) or not self.peer.median:
            return None
        return self.kohort.median / self.peer.median

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        if not self.kohort.is_there:
            return "MISSED"
        if self.ratio is None:
            return "peer failed" if self.peer.failure else ""
        return "met" if self.target.is_met_by(self.ratio) else "MISSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    name: str
    """Of the module that measured: `python -m NAME`."""
    about: str
    """What is measured and how: the first line is a title."""
    peer: str
    figures: tuple[Figure, ...]
    load_average: tuple[float, float] = (math.nan, math.nan)
    """Of the machine in the minute before, and at the end; the benchmark's own share included."""


def title_of(report: Report) -> str:
    return report.about.partition("\n")[0]


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest of these sorted values that this share of them does not exceed."""
    if not ordered:
        raise ValueError("there are no samples")
    return ordered[min(len(ordered), max(1, math.ceil(share * len(ordered)))) - 1]


def show(number: float) -> str:
    """A number with three significant digits."""
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    digits = 2 - math.floor(math.log10(abs(number)))
    rounded = round(number, digits)
    return f"{rounded:,.{max(0, digits)}f}"


def show_taken(taken: Taken) -> str:
    """The median with minimum and maximum."""
    if not taken.is_there:
        return f"failed: {taken.failure or 'nothing was measured'}"
    median = show(taken.median)
    least, most = show(min(taken.samples)), show(max(taken.samples))
    return median if least == most else f"{median} ({least} to {most})"


def as_json(report: Report) -> str:
    return json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> Report:
    return read_report(json.loads(text))


def read_report(content: dict[str, Any]) -> Report:
    before, after = content["load_average"]
    return Report(
        name=content["name"],
        about=content["about"],
        peer=content["peer"],
        figures=tuple(_read_figure(each) for each in content["figures"]),
        load_average=(before, after),
    )


def _read_figure(content: dict[str, Any]) -> Figure:
    target = content["target"]
    return Figure(
        metric=content["metric"],
        unit=content["unit"],
        kohort=_read_taken(content["kohort"]),
        peer=_read_taken(content["peer"]),
        target=None if target is None else Target(**target),
    )


def _read_taken(content: dict[str, Any]) -> Taken:
    return Taken(
        samples=tuple(content["samples"]),
        failure=content["failure"],
        generator=tuple(content["generator"]),
        broker=tuple(content["broker"]),
    )


def as_text(report: Report) -> str:
    """A table for a terminal."""
    head = ("metric", "unit", "kohort", report.peer, "ratio", "wanted", "")
    rows = [head, *map(_row, report.figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "\n".join((title_of(report), *lines, *busy_lines(report.figures))) + "\n"


def as_line(figure: Figure) -> str:
    """One result, printed as soon as it is known."""
    return "  ".join(filter(None, _row(figure)))


def _row(figure: Figure) -> tuple[str, ...]:
    ratio = "" if figure.ratio is None else show(figure.ratio)
    target = "" if figure.target is None else str(figure.target)
    sides = show_taken(figure.kohort), show_taken(figure.peer)
    return (figure.metric, figure.unit, *sides, ratio, target, figure.verdict)


def busy_lines(figures: Iterable[Figure]) -> list[str]:
    """CPU shares of generator and broker, where measured."""
    lines = []
    for figure in figures:
        words = [
            f"{name} {statistics.median(taken.generator):.0%} generator"
            f" and {statistics.median(taken.broker):.0%} broker"
            for name, taken in (("kohort", figure.kohort), ("peer", figure.peer))
            if taken.generator and taken.broker
        ]
        if words:
            lines.append(f"CPU, {figure.metric}: {'; '.join(words)}")
    return lines
