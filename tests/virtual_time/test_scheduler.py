"""The order of scheduled calls, and how virtual time advances."""

import pytest

from kohort.virtual_time.scheduler import EARLY, MS, Livelock, Scheduler


def test_calls_run_by_time_then_by_rank_then_in_the_order_of_scheduling() -> None:
    scheduler, seen = Scheduler(), list[str]()
    for when, what in ((20, "late"), (10, "first"), (10, "second")):
        scheduler.at(when, lambda what=what: seen.append(what))  # type: ignore[misc]  # bound
    scheduler.at(10, lambda: seen.append("early"), EARLY)

    scheduler.run(15)

    assert seen == ["early", "first", "second"]
    assert (scheduler.now, scheduler.calls) == (15, 3)


def test_a_cancelled_call_does_not_run() -> None:
    scheduler, seen = Scheduler(), list[str]()
    call = scheduler.after(10, lambda: seen.append("cancelled"))

    call.cancel()

    assert scheduler.next() is None
    scheduler.run(100)
    assert seen == []


def test_a_call_for_a_time_that_has_passed_runs_now() -> None:
    scheduler = Scheduler(1_000)

    scheduler.at(10, lambda: None)
    scheduler.after(-5, lambda: None)

    assert scheduler.next() == (1_000, 1)
    scheduler.run(1_000)
    assert scheduler.now == 1_000


def test_a_step_beyond_the_limit_only_sets_the_time() -> None:
    scheduler = Scheduler()
    scheduler.after(10, lambda: None)

    assert not scheduler.step(5)
    assert scheduler.now == 5
    assert scheduler.step(10)


def test_milliseconds_are_counted_in_the_units_of_the_scheduler() -> None:
    scheduler = Scheduler(units_per_ms=MS)

    scheduler.after_ms(2.5, lambda: None)
    scheduler.run(2_500)

    assert (scheduler.calls, scheduler.now_ms) == (1, 2)


def test_calls_that_schedule_each_other_endlessly_are_noticed() -> None:
    scheduler = Scheduler(units_per_ms=MS, calls_per_ms_max=100)

    def again() -> None:
        scheduler.after(0, again)

    again()

    with pytest.raises(Livelock):
        scheduler.run(MS)
