"""The schedule: lawful, in time, and the same for the same seed."""

from collections.abc import Iterable, Sequence
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from kohort.demo.cast import CHECKOUT, POLL_MS, PROGRAMS, SESSION_MS, programs_of
from kohort.demo.schedule import (
    MINUTES_MIN,
    Act,
    Deed,
    Scene,
    draw_roles,
    perform,
    report_times,
)

SEEDS = st.integers(0, 10_000)
LENGTHS = st.floats(MINUTES_MIN, 30)

LAWFUL = {
    Deed.START: ("absent", "running"),
    Deed.STOP: ("running", "absent"),
    Deed.CRASH: ("running", "absent"),
    Deed.STALL: ("running", "running"),
    Deed.FREEZE: ("running", "frozen"),
    Deed.THAW: ("frozen", "running"),
}
"""What a program must be before a deed, and what it is afterwards."""


def offences(acts: Iterable[Act]) -> list[Act]:
    """The acts that cannot be carried out."""
    states = dict.fromkeys(PROGRAMS, "absent")
    wrong = []
    for act in acts:
        before, after = LAWFUL[act.deed]
        if states[act.name] != before:
            wrong.append(act)
        states[act.name] = after
    return wrong


def present_at_least(acts: Sequence[Act], names: set[str]) -> int:
    """How many of these run at the worst moment, once they have all started."""
    present: set[str] = set()
    least = len(names)
    for act in acts:
        if act.name in names and act.deed is Deed.START:
            present.add(act.name)
        elif act.name in names and act.deed in (Deed.STOP, Deed.CRASH, Deed.FREEZE):
            present.discard(act.name)
        if act.scene is not Scene.OPENING:
            least = min(least, len(present))
        if act.deed is Deed.THAW:
            present.add(act.name)
    return least


def scenes_in(acts: Iterable[Act]) -> list[Scene]:
    """In their order; acts of one scene follow each other."""
    found: list[Scene] = []
    for act in acts:
        if not found or found[-1] is not act.scene:
            found.append(act.scene)
    return found


@given(SEEDS, LENGTHS)
def test_the_same_seed_and_length_give_the_same_schedule(seed: int, minutes: float) -> None:
    assert list(perform(seed, minutes)) == list(perform(seed, minutes))


def test_seeds_differ_in_their_order_and_in_who_is_weak() -> None:
    orders = {tuple(scenes_in(perform(seed, 3.0))) for seed in range(20)}
    weak = {draw_roles(seed).victim for seed in range(20)}

    assert len(orders) > 10
    assert weak == {program.name for program in programs_of(CHECKOUT)}


@given(SEEDS, LENGTHS)
def test_every_act_can_be_carried_out(seed: int, minutes: float) -> None:
    assert offences(perform(seed, minutes)) == []


@given(SEEDS, LENGTHS)
def test_acts_are_in_order_and_in_time(seed: int, minutes: float) -> None:
    times = [act.at_ms for act in perform(seed, minutes)]

    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] < minutes * 60_000


@given(SEEDS, LENGTHS)
def test_everybody_has_started_before_anything_happens(seed: int, minutes: float) -> None:
    acts = list(perform(seed, minutes))

    opening = [act.name for act in acts if act.scene is Scene.OPENING]

    assert sorted(opening) == sorted(PROGRAMS)
    assert scenes_in(acts).count(Scene.OPENING) == 1


@given(SEEDS, LENGTHS)
def test_of_each_group_only_one_is_away_at_a_time(seed: int, minutes: float) -> None:
    names = {program.name for program in programs_of(CHECKOUT)}

    assert present_at_least(list(perform(seed, minutes)), names) >= len(names) - 1


@given(SEEDS)
def test_three_minutes_show_everything(seed: int) -> None:
    assert set(scenes_in(perform(seed, 3.0))) == set(Scene)


@given(SEEDS, st.floats(1, 30))
def test_a_storm_comes_last(seed: int, minutes: float) -> None:
    scenes = scenes_in(perform(seed, minutes))

    assert scenes[-1] is Scene.STORM
    assert scenes.count(Scene.STORM) == 1


@given(SEEDS, LENGTHS)
def test_stalls_and_freezes_last_until_they_are_noticed(seed: int, minutes: float) -> None:
    acts = list(perform(seed, minutes))

    assert all(act.for_ms > POLL_MS for act in acts if act.deed is Deed.STALL)
    assert all(act.for_ms > SESSION_MS for act in acts if act.deed is Deed.FREEZE)


@given(SEEDS)
def test_a_crashed_program_is_back_only_after_its_session(seed: int) -> None:
    acts = [act for act in perform(seed, 10.0) if act.scene is Scene.CRASH]

    assert acts
    for crash, start in zip(acts[::2], acts[1::2], strict=True):
        assert (crash.deed, start.deed) == (Deed.CRASH, Deed.START)
        assert start.at_ms - crash.at_ms > SESSION_MS


@given(SEEDS)
def test_without_a_length_it_goes_on_in_rounds_that_end_in_a_storm(seed: int) -> None:
    acts = list(islice(perform(seed, None), 300))

    scenes = scenes_in(acts)
    rounds = [scenes[at : at + 6] for at in range(1, len(scenes) - 6, 6)]

    assert offences(acts) == []
    assert [act.at_ms for act in acts] == sorted(act.at_ms for act in acts)
    assert rounds
    for each in rounds:
        assert each[-1] is Scene.STORM
        assert set(each) == set(Scene) - {Scene.OPENING}


def test_roles_are_played_by_three_programs() -> None:
    roles = draw_roles(1)

    acts = list(perform(1, 10.0))

    assert len({roles.staller, roles.victim, roles.restless}) == 3
    assert {act.name for act in acts if act.scene is Scene.STALL} == {roles.staller}
    assert {act.name for act in acts if act.scene is Scene.STORM} == {roles.restless}
    for scene in (Scene.CRASH, Scene.FREEZE):
        assert {act.name for act in acts if act.scene is scene} == {roles.victim}


def test_a_long_run_is_explained_in_its_middle_and_an_endless_one_again_and_again() -> None:
    assert list(report_times(1.0)) == []
    assert list(report_times(4.0)) == [120_000]
    assert list(islice(report_times(None), 3)) == [90_000, 390_000, 690_000]


def test_an_unlawful_schedule_is_caught() -> None:
    first, second, *_ = perform(1, 1.0)

    assert offences([first, first]) == [first]
    assert present_at_least([], {"checkout-1"}) == 1
    assert offences([first, second]) == []
