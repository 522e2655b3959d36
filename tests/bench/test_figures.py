"""Medians, ratios and verdicts: what a benchmark says follows from what it has measured."""

import math

import pytest

from bench.kit.figures import (
    Figure,
    Report,
    Taken,
    Target,
    as_json,
    as_text,
    at_least,
    at_most,
    from_json,
    percentile,
    show,
    show_taken,
)


def figure(kohort: Taken, peer: Taken, target: Target | None = None) -> Figure:
    return Figure(metric="speed", unit="/s", kohort=kohort, peer=peer, target=target)


def taken(*samples: float) -> Taken:
    return Taken(samples=samples)


def test_the_ratio_is_that_of_the_medians() -> None:
    told = figure(taken(10, 30, 20), taken(5, 1_000, 4))

    assert told.ratio == 4


@pytest.mark.parametrize(
    ("target", "ours", "verdict"),
    [
        (at_least(0.5), 50, "met"),
        (at_least(0.5), 49, "MISSED"),
        (at_most(0.5), 50, "met"),
        (at_most(0.5), 51, "MISSED"),
        (None, 51, ""),
    ],
)
def test_a_target_is_met_up_to_its_bound(target: Target | None, ours: float, verdict: str) -> None:
    assert figure(taken(ours), taken(100), target).verdict == verdict


def test_who_fails_misses_every_target() -> None:
    told = figure(Taken(failure="it fell over"), taken(1), at_least(0.1))

    assert told.ratio is None
    assert told.verdict == "MISSED"


def test_a_peer_that_fails_is_not_beaten() -> None:
    told = figure(taken(1), Taken(failure="it fell over"), at_least(0.1))

    assert told.ratio is None
    assert told.verdict == "peer failed"


def test_rounds_before_a_failure_are_no_result() -> None:
    told = figure(taken(1), Taken(samples=(5,), failure="in the second round"))

    assert told.ratio is None


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.5, 50), (0.99, 99), (0.995, 100), (1.0, 100)]
)
def test_a_percentile_is_one_of_the_samples(share: float, expected: int) -> None:
    assert percentile(range(1, 101), share) == expected


def test_nothing_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 0.5)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.001234, "0.00123"),
        (1 / 6, "0.167"),
        (1, "1.00"),
        (12.345, "12.3"),
        (999.9, "1,000"),
        (74_321, "74,300"),
        (math.nan, "nan"),
    ],
)
def test_numbers_have_three_digits(number: float, text: str) -> None:
    assert show(number) == text


def test_a_median_has_its_spread_beside_it() -> None:
    assert show_taken(taken(3, 1, 2)) == "2.00 (1.00 to 3.00)"


def test_one_sample_has_no_spread() -> None:
    assert show_taken(taken(2)) == "2.00"


def test_a_failure_says_why() -> None:
    assert show_taken(Taken(failure="out of memory")) == "failed: out of memory"


def test_a_report_survives_as_json() -> None:
    busy = Taken(samples=(1.0, 2.0), generator=(0.4, 0.5), broker=(0.9, 1.0))
    report = Report(
        name="bench.example",
        about="A title.\n\nAnd more.",
        peer="Apache Kafka",
        figures=(
            figure(busy, taken(3), at_least(1)),
            figure(taken(1), Taken(failure="it fell over")),
        ),
        load_average=(0.5, 1.5),
    )

    assert from_json(as_json(report)) == report


def test_a_table_tells_how_busy_both_ends_were() -> None:
    busy = Taken(samples=(1.0,), generator=(0.4,), broker=(0.98,))
    report = Report(name="n", about="Title", peer="kio", figures=(figure(busy, busy),))

    text = as_text(report)

    assert text.startswith("Title\n")
    assert "kohort 40% generator and 98% broker; peer 40% generator and 98% broker" in text
