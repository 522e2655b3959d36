"""Timers: due timers, moves, cancellation and stale entries."""

from weakref import WeakSet

from hypothesis import given
from hypothesis import strategies as st

from kohort.node.timers import Timers
from kohort.types import DeadlineMillis


def test_a_timer_is_due_at_its_deadline_and_only_once() -> None:
    timers: Timers[str] = Timers()
    timers.set("session", 10)

    assert timers.take_due(DeadlineMillis(9)) == []
    assert timers.take_due(DeadlineMillis(10)) == ["session"]
    assert timers.take_due(DeadlineMillis(99)) == []


def test_a_delay_counts_from_the_time_of_the_timers() -> None:
    timers: Timers[str] = Timers()
    timers.now = DeadlineMillis(1_000)

    timers.set("session", 10)

    assert timers.earliest == 1_010
    assert timers.take_due(DeadlineMillis(1_009)) == []
    assert timers.now == 1_009
    assert timers.take_due(DeadlineMillis(1_010)) == ["session"]


def test_a_cancelled_timer_never_fires() -> None:
    timers: Timers[str] = Timers()
    timers.set("join", 10)
    timers.cancel("join")

    assert timers.take_due(DeadlineMillis(99)) == []


def test_a_timer_moved_later_fires_later() -> None:
    timers: Timers[str] = Timers()
    timers.set("session", 10)
    timers.set("session", 20)

    assert timers.take_due(DeadlineMillis(15)) == []
    assert timers.earliest == 20
    assert timers.take_due(DeadlineMillis(20)) == ["session"]


def test_a_timer_moved_earlier_fires_earlier_and_only_then() -> None:
    timers: Timers[str] = Timers()
    timers.set("delay", 50)
    timers.set("delay", 5)

    assert timers.take_due(DeadlineMillis(5)) == ["delay"]
    assert timers.take_due(DeadlineMillis(50)) == []


def test_timer_that_is_moved_often_has_one_entry() -> None:
    timers: Timers[str] = Timers()
    for beat in range(10_000):
        timers.set("session", beat + 45_000)

    assert timers.earliest == 45_000
    assert timers.take_due(DeadlineMillis(45_000)) == []
    assert len(timers) == 1


Moves = list[tuple[str, int | None]]

_MOVES = st.lists(
    st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 50))), max_size=30
)


@given(_MOVES, st.integers(0, 60))
def test_due_timers_are_those_whose_last_deadline_has_come(moves: Moves, now: int) -> None:
    timers: Timers[str] = Timers()
    expected: dict[str, int] = {}
    for key, deadline in moves:
        if deadline is None:
            timers.cancel(key)
            expected.pop(key, None)
        else:
            timers.set(key, deadline)
            expected[key] = deadline

    due = timers.take_due(DeadlineMillis(now))

    assert sorted(due) == sorted(key for key, deadline in expected.items() if deadline <= now)
    assert len(timers) == len(expected) - len(due)


@given(_MOVES)
def test_earliest_is_never_after_the_next_deadline(moves: Moves) -> None:
    timers: Timers[str] = Timers()
    deadlines: dict[str, int] = {}
    for key, deadline in moves:
        if deadline is None:
            timers.cancel(key)
            deadlines.pop(key, None)
        else:
            timers.set(key, deadline)
            deadlines[key] = deadline

    look = timers.earliest

    if deadlines:
        assert look is not None
        assert look <= min(deadlines.values())


class _Key:
    """Something whose end can be noticed."""


def test_cancelled_distant_deadlines_do_not_accumulate() -> None:
    timers: Timers[_Key] = Timers()
    alive: WeakSet[_Key] = WeakSet()
    for _ in range(20_000):
        key = _Key()
        alive.add(key)
        timers.set(key, 10**12)
        timers.cancel(key)
    last = _Key()
    timers.set(last, 10**12)

    assert len(alive) < 2_000
    assert timers.take_due(DeadlineMillis(10**12)) == [last]
