"""Virtual time: one order of events, and a process that may sleep through some of them."""

import pytest

from kohort.sim.dice import Dice
from kohort.sim.life import Life
from kohort.sim.timeline import MS, Timeline, TimeStandsStill


def test_what_is_due_first_happens_first_and_ties_keep_their_order() -> None:
    timeline, told = Timeline(), list[str]()
    for delay, what in ((20, "late"), (10, "first"), (10, "second")):
        timeline.after(delay, lambda what=what: told.append(what))  # type: ignore[misc]  # bound

    timeline.run(15)

    assert told == ["first", "second"]
    assert timeline.now == 15


def test_a_cancelled_appointment_does_not_happen() -> None:
    timeline, told = Timeline(), list[str]()
    appointment = timeline.after(10, lambda: told.append("cancelled"))

    appointment.cancel()
    timeline.run(100)

    assert told == []


def test_turning_in_circles_is_noticed() -> None:
    timeline = Timeline()

    def again() -> None:
        timeline.after(0, again)

    again()

    with pytest.raises(TimeStandsStill):
        timeline.run(MS)


def test_a_paused_process_finds_everything_on_waking_in_its_order() -> None:
    timeline, told = Timeline(), list[str]()
    life = Life(timeline)
    life.later(5, lambda: told.append(f"second at {timeline.now_ms}"))
    life.later(2, lambda: told.append(f"first at {timeline.now_ms}"))

    life.pause(50)
    timeline.run(100 * MS)

    assert told == ["first at 50", "second at 50"]


def test_a_reminder_can_be_cancelled_while_it_waits_for_a_paused_process() -> None:
    timeline, told = Timeline(), list[str]()
    life = Life(timeline)
    reminder = life.later(5, lambda: told.append("too late"))
    life.later(4, reminder.cancel)

    life.pause(50)
    timeline.run(100 * MS)

    assert told == []


def test_nothing_happens_to_a_process_that_has_ended() -> None:
    timeline, told = Timeline(), list[str]()
    life = Life(timeline)
    life.later(5, lambda: told.append("ghost"))

    life.end()
    timeline.run(100 * MS)

    assert told == []


def test_chance_by_one_name_does_not_depend_on_chance_by_another() -> None:
    expected = Dice(7).named("node", 1).random()
    dice = Dice(7)

    dice.named("other").random()

    assert dice.named("node", 1).random() == expected
    assert Dice(8).named("node", 1).random() != expected
