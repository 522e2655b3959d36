"""A client process: pause, timers and end."""

from kohort.sim.process import ClientProcess
from kohort.virtual_time.scheduler import MS, Scheduler


def test_actions_of_a_paused_process_run_in_order_after_the_pause() -> None:
    scheduler, ran = Scheduler(units_per_ms=MS), list[str]()
    process = ClientProcess(scheduler)
    process.later(5, lambda: ran.append(f"second at {scheduler.now_ms}"))
    process.later(2, lambda: ran.append(f"first at {scheduler.now_ms}"))

    process.pause(50)
    scheduler.run(100 * MS)

    assert ran == ["first at 50", "second at 50"]


def test_a_timer_can_be_cancelled_while_the_process_is_paused() -> None:
    scheduler, ran = Scheduler(units_per_ms=MS), list[str]()
    process = ClientProcess(scheduler)
    timer = process.later(5, lambda: ran.append("too late"))
    process.later(4, timer.cancel)

    process.pause(50)
    scheduler.run(100 * MS)

    assert ran == []


def test_an_ended_process_runs_nothing() -> None:
    scheduler, ran = Scheduler(units_per_ms=MS), list[str]()
    process = ClientProcess(scheduler)
    process.later(5, lambda: ran.append("ghost"))

    process.end()
    scheduler.run(100 * MS)

    assert ran == []
