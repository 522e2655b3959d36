"""The stored results of all benchmarks, and the page that is generated from them.

Pure, except for `main`: `python -m bench.kit.results` generates the page.
"""

import json
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench.kit.figures import Figure, Report, Taken, read_report, show, show_taken, title_of

ROOT: Final = Path(__file__).parents[2]
STORED: Final = ROOT / "bench" / "results.json"
PAGE: Final = ROOT / "docs" / "reference" / "benchmarks.md"

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The report of one benchmark, with date, machine and versions."""

    report: Report
    day: str
    machine: dict[str, str]
    versions: dict[str, str]

    @property
    def circumstances(self) -> str:
        machine = ", ".join(f"{name}: {what}" for name, what in self.machine.items())
        versions = ", ".join(f"{name} {what}" for name, what in self.versions.items())
        return f"{self.day}; {machine}; {versions}"


def as_stored(entries: Iterable[Entry]) -> str:
    return json.dumps([asdict(each) for each in entries], indent=1, ensure_ascii=False) + "\n"


def from_stored(text: str) -> list[Entry]:
    return [_read_entry(each) for each in json.loads(text)]


def _read_entry(content: dict[str, Any]) -> Entry:
    return Entry(
        report=read_report(content["report"]),
        day=content["day"],
        machine=content["machine"],
        versions=content["versions"],
    )


def merge(old: Iterable[Entry], new: Iterable[Entry], order: list[str]) -> list[Entry]:
    """Newer results replace older ones of the same name, in the order of the benchmarks."""
    by_name = {each.report.name: each for each in (*old, *new)}
    return sorted(by_name.values(), key=lambda each: order.index(each.report.name))


def renew(page: str, entries: list[Entry]) -> str:
    """Replace the part of the page between the marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page has no part between {BEGIN} and {END}")
    head, _, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2]
    return f"{head}{BEGIN}\n{render(entries)}{END}{tail}"


def render(entries: list[Entry]) -> str:
    if not entries:
        return "\nNothing was measured yet.\n\n"
    parts = ["", *_summary(entries)]
    common = entries[0].circumstances
    parts += [f"Measured: {common}.", ""]
    for entry in entries:
        parts += _section(entry, common)
    return "\n".join(parts) + "\n"


def _summary(entries: list[Entry]) -> Iterator[str]:
    """All results with a target, missed ones first."""
    aimed = [
        (title_of(entry.report), figure)
        for entry in entries
        for figure in entry.report.figures
        if figure.target is not None
    ]
    missed = [(title, figure) for title, figure in aimed if figure.verdict != "met"]
    yield f"Of {len(aimed)} targets {len(aimed) - len(missed)} are met."
    yield ""
    if missed:
        yield from _table(("not met", "of", "ratio", "wanted"), _missed_rows(missed))
        yield ""


def _missed_rows(missed: list[tuple[str, Figure]]) -> Iterator[tuple[str, ...]]:
    for title, figure in missed:
        yield figure.metric, title.rstrip("."), _ratio(figure), f"{figure.target}"


def _section(entry: Entry, common: str) -> Iterator[str]:
    report = entry.report
    _, _, about = report.about.partition("\n")
    yield f"### {title_of(report).rstrip('.')}"
    yield ""
    yield f"    python -m {report.name}"
    yield ""
    if about.strip():
        yield about.strip()
        yield ""
    if entry.circumstances != common:
        yield f"Measured: {entry.circumstances}."
        yield ""
    has_load = any(each.kohort.generator for each in report.figures)
    head = ["", "unit", "Kohort", report.peer, "ratio", "wanted", ""]
    head += ["CPU of generator + broker"] if has_load else []
    rows = (_row(each, has_load=has_load) for each in report.figures)
    yield from _table(head, rows)
    yield ""
    before, after = report.load_average
    yield f"Load average of the machine before and at the end: {before:.1f}, {after:.1f}."
    yield ""


def _row(figure: Figure, *, has_load: bool) -> tuple[str, ...]:
    target = "" if figure.target is None else str(figure.target)
    sides = show_taken(figure.kohort), show_taken(figure.peer)
    cells = (figure.metric, figure.unit, *sides, _ratio(figure), target, figure.verdict)
    if not has_load:
        return cells
    shares = [_shares(figure.kohort), _shares(figure.peer)]
    return (*cells, " / ".join(filter(None, shares)))


def _shares(taken: Taken) -> str:
    if not taken.generator or not taken.broker:
        return ""
    generator, broker = statistics.median(taken.generator), statistics.median(taken.broker)
    return f"{generator:.0%} + {broker:.0%}"


def _ratio(figure: Figure) -> str:
    return "" if figure.ratio is None else show(figure.ratio)


def _table(head: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    titles = tuple(head)
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/').replace(chr(10), ' ') for cell in row)} |"


def main() -> None:
    entries = from_stored(STORED.read_text("utf-8"))
    PAGE.write_text(renew(PAGE.read_text("utf-8"), entries), "utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} has {len(entries)} benchmarks.\n")


if __name__ == "__main__":
    main()
