"""The page about benchmarks is made from stored figures, and from nothing else."""

from pathlib import Path

import pytest

from bench.__main__ import NAMES
from bench.kit.figures import Figure, Report, Taken, at_least
from bench.kit.results import (
    BEGIN,
    END,
    PAGE,
    STORED,
    Entry,
    as_stored,
    from_stored,
    merge,
    render,
    renew,
)


def entry(name: str, kohort: Taken, *, day: str = "2026-01-01") -> Entry:
    told = Figure(
        metric="50 connections",
        unit="/s",
        kohort=kohort,
        peer=Taken(samples=(100.0,), generator=(0.25,), broker=(0.75,)),
        target=at_least(1),
    )
    report = Report(
        name=name,
        about="Heartbeats.\n\nHow they are sent.",
        peer="Apache Kafka",
        figures=(told,),
        load_average=(0.1, 1.2),
    )
    return Entry(report=report, day=day, machine={"cores": "2"}, versions={"Kohort": "1"})


FAST = Taken(samples=(200.0,), generator=(0.5,), broker=(1.0,))
SLOW = Taken(samples=(50.0, 60.0, 40.0))


def test_the_page_tells_what_is_stored() -> None:
    stored = from_stored(STORED.read_text("utf-8")) if STORED.exists() else []

    page = PAGE.read_text("utf-8")

    assert page == renew(page, stored), "stale: run `python -m bench.kit.results`"


def test_every_benchmark_is_run() -> None:
    folder = STORED.parent

    def is_program(path: Path) -> bool:
        return 'if __name__ == "__main__":' in path.read_text("utf-8")

    files = [*folder.glob("*.py"), *folder.glob("beside_kafka/*.py")]
    there = {
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in files
        if is_program(path) and path.name != "__main__.py"
    }

    assert set(NAMES) == there


def test_a_row_has_ratio_target_and_verdict() -> None:
    text = render([entry("bench.x", FAST)])

    assert "Of 1 targets 1 are met." in text
    row = (
        "| 50 connections | /s | 200 | 100 | 2.00 | at least 1.00 | met | 50% + 100% / 25% + 75% |"
    )
    assert row in text
    assert "    python -m bench.x\n" in text
    assert "How they are sent." in text


def test_what_is_missed_comes_first() -> None:
    text = render([entry("bench.x", SLOW)])

    assert "Of 1 targets 0 are met." in text
    assert text.index("| 50 connections | Heartbeats | 0.500 | at least 1.00 |") < text.index("###")
    assert "| 50.0 (40.0 to 60.0) |" in text


def test_other_circumstances_are_told() -> None:
    text = render([entry("bench.x", FAST), entry("bench.y", FAST, day="2026-02-02")])

    assert text.count("Measured: ") == 2
    assert "Measured: 2026-02-02; cores: 2; Kohort 1." in text


def test_a_failure_cannot_break_a_table() -> None:
    text = render([entry("bench.x", Taken(failure="a | b\nc"))])

    assert "| failed: a / b c |" in text


def test_only_what_lies_between_the_marks_changes() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"

    renewed = renew(page, [entry("bench.x", FAST)])

    assert renewed.startswith(f"before\n{BEGIN}\n")
    assert renewed.endswith(f"{END}\nafter\n")
    assert "old" not in renewed
    assert renew(renewed, [entry("bench.x", FAST)]) == renewed


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no place"):
        renew("nothing here", [])


def test_new_figures_replace_those_of_the_same_name() -> None:
    old = [entry("bench.a", SLOW), entry("bench.b", SLOW)]

    merged = merge(old, [entry("bench.a", FAST)], ["bench.b", "bench.a"])

    assert merged == [entry("bench.b", SLOW), entry("bench.a", FAST)]


def test_what_is_stored_comes_back() -> None:
    entries = [entry("bench.a", SLOW), entry("bench.b", Taken(failure="it fell over"))]

    assert from_stored(as_stored(entries)) == entries
