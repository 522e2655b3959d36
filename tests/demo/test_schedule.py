"""Schedules are executable, ordered, complete, and the same for the same seed."""

from collections.abc import Iterable, Sequence
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from kohort.demo.schedule import (
    MINUTES_MIN,
    Action,
    ActionKind,
    Incident,
    choose_roles,
    generate_schedule,
    report_times,
)
from kohort.demo.services import (
    CHECKOUT,
    CONSUMERS,
    POLL_INTERVAL_MS,
    SESSION_MS,
    consumers_of,
)

SEEDS = st.integers(0, 10_000)
LENGTHS = st.floats(MINUTES_MIN, 30)

TRANSITIONS = {
    ActionKind.START: ("absent", "running"),
    ActionKind.STOP: ("running", "absent"),
    ActionKind.CRASH: ("running", "absent"),
    ActionKind.STALL: ("running", "running"),
    ActionKind.SUSPEND: ("running", "suspended"),
    ActionKind.RESUME: ("suspended", "running"),
}
"""The state of a consumer before and after an action."""


def invalid_actions(actions: Iterable[Action]) -> list[Action]:
    """Return the actions that cannot be executed in the consumer's state."""
    states = dict.fromkeys(CONSUMERS, "absent")
    invalid = []
    for action in actions:
        before, after = TRANSITIONS[action.kind]
        if states[action.consumer] != before:
            invalid.append(action)
        states[action.consumer] = after
    return invalid


def running_min(actions: Sequence[Action], names: set[str]) -> int:
    """Return the minimum number of these consumers that run at a time after the startup."""
    running: set[str] = set()
    minimum = len(names)
    down = (ActionKind.STOP, ActionKind.CRASH, ActionKind.SUSPEND)
    for action in actions:
        if action.consumer in names and action.kind is ActionKind.START:
            running.add(action.consumer)
        elif action.consumer in names and action.kind in down:
            running.discard(action.consumer)
        if action.incident is not Incident.STARTUP:
            minimum = min(minimum, len(running))
        if action.kind is ActionKind.RESUME:
            running.add(action.consumer)
    return minimum


def incidents_in(actions: Iterable[Action]) -> list[Incident]:
    """Return the incidents in order. The actions of one incident are consecutive."""
    found: list[Incident] = []
    for action in actions:
        if not found or found[-1] is not action.incident:
            found.append(action.incident)
    return found


@given(SEEDS, LENGTHS)
def test_same_seed_and_length_give_the_same_schedule(seed: int, minutes: float) -> None:
    assert list(generate_schedule(seed, minutes)) == list(generate_schedule(seed, minutes))


def test_seeds_give_different_orders_and_roles() -> None:
    orders = {tuple(incidents_in(generate_schedule(seed, 3.0))) for seed in range(20)}
    unstable = {choose_roles(seed).unstable for seed in range(20)}

    assert len(orders) > 10
    assert unstable == {consumer.name for consumer in consumers_of(CHECKOUT)}


@given(SEEDS, LENGTHS)
def test_every_action_is_valid_for_its_consumer(seed: int, minutes: float) -> None:
    assert invalid_actions(generate_schedule(seed, minutes)) == []


@given(SEEDS, LENGTHS)
def test_actions_are_ordered_and_within_the_length(seed: int, minutes: float) -> None:
    times = [action.at_ms for action in generate_schedule(seed, minutes)]

    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] < minutes * 60_000


@given(SEEDS, LENGTHS)
def test_startup_starts_every_consumer_once(seed: int, minutes: float) -> None:
    actions = list(generate_schedule(seed, minutes))

    started = [action.consumer for action in actions if action.incident is Incident.STARTUP]

    assert sorted(started) == sorted(CONSUMERS)
    assert incidents_in(actions).count(Incident.STARTUP) == 1


@given(SEEDS, LENGTHS)
def test_at_most_one_consumer_of_a_group_is_down(seed: int, minutes: float) -> None:
    names = {consumer.name for consumer in consumers_of(CHECKOUT)}

    assert running_min(list(generate_schedule(seed, minutes)), names) >= len(names) - 1


@given(SEEDS)
def test_three_minutes_contain_every_incident(seed: int) -> None:
    assert set(incidents_in(generate_schedule(seed, 3.0))) == set(Incident)


@given(SEEDS, st.floats(1, 30))
def test_storm_is_the_last_incident(seed: int, minutes: float) -> None:
    incidents = incidents_in(generate_schedule(seed, minutes))

    assert incidents[-1] is Incident.STORM
    assert incidents.count(Incident.STORM) == 1


@given(SEEDS, LENGTHS)
def test_stalls_and_suspensions_exceed_their_timeouts(seed: int, minutes: float) -> None:
    actions = list(generate_schedule(seed, minutes))

    stalls = [action for action in actions if action.kind is ActionKind.STALL]
    suspensions = [action for action in actions if action.kind is ActionKind.SUSPEND]
    assert all(action.duration_ms > POLL_INTERVAL_MS for action in stalls)
    assert all(action.duration_ms > SESSION_MS for action in suspensions)


@given(SEEDS)
def test_crashed_consumer_restarts_after_its_session_timeout(seed: int) -> None:
    schedule = generate_schedule(seed, 10.0)
    actions = [action for action in schedule if action.incident is Incident.CRASH]

    assert actions
    for crash, start in zip(actions[::2], actions[1::2], strict=True):
        assert (crash.kind, start.kind) == (ActionKind.CRASH, ActionKind.START)
        assert start.at_ms - crash.at_ms > SESSION_MS


@given(SEEDS)
def test_endless_schedule_repeats_rounds_that_end_with_a_storm(seed: int) -> None:
    actions = list(islice(generate_schedule(seed, None), 300))

    incidents = incidents_in(actions)
    rounds = [incidents[at : at + 6] for at in range(1, len(incidents) - 6, 6)]

    assert invalid_actions(actions) == []
    assert [action.at_ms for action in actions] == sorted(action.at_ms for action in actions)
    assert rounds
    for each in rounds:
        assert each[-1] is Incident.STORM
        assert set(each) == set(Incident) - {Incident.STARTUP}


def test_roles_belong_to_three_different_consumers() -> None:
    roles = choose_roles(1)

    actions = list(generate_schedule(1, 10.0))

    def consumers_in(incident: Incident) -> set[str]:
        return {action.consumer for action in actions if action.incident is incident}

    assert len({roles.slow, roles.unstable, roles.flapping}) == 3
    assert consumers_in(Incident.STALL) == {roles.slow}
    assert consumers_in(Incident.STORM) == {roles.flapping}
    assert consumers_in(Incident.CRASH) == {roles.unstable}
    assert consumers_in(Incident.SUSPENSION) == {roles.unstable}


def test_long_run_has_one_intermediate_report_and_endless_run_many() -> None:
    assert list(report_times(1.0)) == []
    assert list(report_times(4.0)) == [120_000]
    assert list(islice(report_times(None), 3)) == [90_000, 390_000, 690_000]


def test_checks_of_this_file_detect_an_invalid_schedule() -> None:
    first, second, *_ = generate_schedule(1, 1.0)

    assert invalid_actions([first, first]) == [first]
    assert running_min([], {"checkout-1"}) == 1
    assert invalid_actions([first, second]) == []
