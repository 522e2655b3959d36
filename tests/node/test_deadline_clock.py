"""The deadline clock counts the time in which the loop runs."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.node.deadline_clock import TICK_MS, DeadlineClock

BEGIN = 100.0


def readings(*gaps_ms: int) -> tuple[list[int], list[int]]:
    """The milliseconds that count after each gap between two readings, and those that do not."""
    clock = DeadlineClock(BEGIN)
    at, began = BEGIN, clock.now
    counted, uncounted = [], []
    for gap_ms in gaps_ms:
        at += gap_ms / 1000
        uncounted.append(round(clock.advance(at) * 1000))
        counted.append(clock.now - began)
    return counted, uncounted


def test_time_counts_while_the_clock_is_read_often() -> None:
    assert readings(250, 1, 400) == ([250, 251, 651], [0, 0, 0])


def test_of_a_long_gap_only_two_ticks_count() -> None:
    assert readings(100, 60_000, 100) == ([100, 600, 700], [0, 59_500, 0])


def test_time_before_the_loop_starts_does_not_count() -> None:
    clock = DeadlineClock(BEGIN)
    began = clock.now

    clock.restart(BEGIN + 30)

    assert clock.advance(BEGIN + 30.1) == 0
    assert clock.now == began + 100


@given(st.lists(st.integers(0, 5_000)))
def test_the_clock_never_goes_back_and_loses_no_tick(gaps_ms: list[int]) -> None:
    counted, _ = readings(*gaps_ms)

    steps = [after - before for before, after in pairwise([0, *counted])]
    expected = [min(gap_ms, 2 * TICK_MS) for gap_ms in gaps_ms]
    assert steps == pytest.approx(expected, abs=1)
