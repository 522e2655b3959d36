"""What befalls the shop's programs, and when: a pure function of a seed and a length.

All start; then scenes follow each other in an order that the seed draws: a deploy, a stall, a
crash, a freeze, and a deploy of static members. A storm comes last. Without a length it goes on for
ever, with a storm at the end of every round. No two scenes overlap, so that every rebalance has one
cause; and who plays the weak parts is drawn once, so that a report can name the culprits.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from math import inf
from random import Random
from typing import Final

from kohort.demo.cast import (
    BILLING,
    CHECKOUT,
    POLL_MS,
    PROGRAMS,
    SESSION_MS,
    Service,
    programs_of,
)
from kohort.types import Millis, value

MINUTES_MIN: Final = 0.2
"""All programs have started by then."""
MINUTES_MAX: Final = 10_000
"""A week. Who wants more wants no end."""

_SETTLING_MS: Final = 4_000
"""From the last thing that is done in a scene until its group is surely at rest again."""
_STORM_FROM_MS: Final = 60_000
"""A shorter run has no time for a storm beside anything else."""
_STORM_RESTARTS: Final = 6
_AFTER_STORM_MS: Final = 2_000

_REPORT_FROM_MINUTES: Final = 3.0
"""A shorter run is over before a report in its middle would be of use."""
_FIRST_REPORT_MINUTES: Final = 1.5
_REPORT_EVERY_MINUTES: Final = 5.0


class Deed(StrEnum):
    START = "start"
    """A process begins, and joins its group."""
    STOP = "stop"
    """It ends as it should; it says goodbye to its group, unless it is static."""
    CRASH = "crash"
    """The process is killed."""
    STALL = "stall"
    """It does not poll for a while; its heartbeats go on."""
    FREEZE = "freeze"
    """The whole process stands still, as if its machine was suspended."""
    THAW = "thaw"


class Scene(StrEnum):
    OPENING = "opening"
    DEPLOY = "deploy"
    STATIC_DEPLOY = "static deploy"
    STALL = "stall"
    CRASH = "crash"
    FREEZE = "freeze"
    STORM = "storm"


@value
class Act:
    at_ms: Millis
    """Since the beginning."""
    name: str
    """Of the program."""
    deed: Deed
    scene: Scene
    for_ms: Millis = Millis(0)
    """How long a stall or a freeze lasts."""


@value
class Roles:
    """Which programs of checkout play the weak parts; all of them others."""

    staller: str
    """Takes too long over its work."""
    victim: str
    """Crashes, and is frozen."""
    restless: str
    """Begins the storms."""


def draw_roles(seed: int) -> Roles:
    names = [program.name for program in programs_of(CHECKOUT)]
    staller, victim, restless = _chance(seed, "roles").sample(names, 3)
    return Roles(staller=staller, victim=victim, restless=restless)


def perform(seed: int, minutes: float | None) -> Iterator[Act]:
    """Everything in the order of its time; without an end if no length is given."""
    script = _Script(seed)
    end_ms = inf if minutes is None else minutes * 60_000
    for scene in script.play(end_ms):
        yield from (act for act in scene.acts if act.at_ms < end_ms)


def report_times(minutes: float | None) -> Iterator[Millis]:
    """When the history so far is explained, besides at the end."""
    if minutes is None:
        at = _FIRST_REPORT_MINUTES
        while True:
            yield _as_ms(at)
            at += _REPORT_EVERY_MINUTES
    elif minutes >= _REPORT_FROM_MINUTES:
        yield _as_ms(minutes / 2)


@value
class _Placed:
    """A scene that has its place."""

    acts: tuple[Act, ...]
    end_ms: int


class _Script:
    def __init__(self, seed: int) -> None:
        self._chance = _chance(seed, "scenes")
        self._roles = draw_roles(seed)

    def play(self, end_ms: float) -> Iterator[_Placed]:
        opening = self._open(0)
        yield opening
        at = opening.end_ms
        if end_ms == inf:
            while True:
                for scene in [*self._round(at, inf), None]:
                    placed = scene or self._storm(at + self._rest())
                    yield placed
                    at = placed.end_ms
        storm_ms = self._storm(0).end_ms + _AFTER_STORM_MS if end_ms >= _STORM_FROM_MS else 0
        while scenes := self._round(at, end_ms - storm_ms):
            yield from scenes
            at = scenes[-1].end_ms
        if storm_ms:
            yield self._storm(int(end_ms) - storm_ms)

    def _round(self, at: int, until: float) -> list[_Placed]:
        """Each kind of scene once, in any order; those that would end too late are left out."""
        kinds: list[Callable[[int], _Placed]] = [
            lambda at: self._deploy(at, CHECKOUT, Scene.DEPLOY),
            lambda at: self._deploy(at, BILLING, Scene.STATIC_DEPLOY),
            self._stall,
            self._crash,
            self._freeze,
        ]
        self._chance.shuffle(kinds)
        scenes: list[_Placed] = []
        for kind in kinds:
            placed = kind(at + self._rest())
            if placed.end_ms <= until:
                scenes.append(placed)
                at = placed.end_ms
        return scenes

    def _rest(self) -> int:
        return self._chance.randint(1_500, 4_000)

    # Scenes

    def _open(self, at: int) -> _Placed:
        names = sorted(PROGRAMS)
        self._chance.shuffle(names)
        acts = []
        for name in names:
            acts.append(_act(at, name, Deed.START, Scene.OPENING))
            at += self._chance.randint(400, 900)
        return _place(acts)

    def _deploy(self, at: int, service: Service, scene: Scene) -> _Placed:
        """One after the other, as a cautious deploy does it."""
        acts = []
        for program in programs_of(service):
            acts.append(_act(at, program.name, Deed.STOP, scene))
            back = at + self._chance.randint(600, 1_200)
            acts.append(_act(back, program.name, Deed.START, scene))
            at = back + self._chance.randint(2_000, 3_000)
        return _place(acts)

    def _stall(self, at: int) -> _Placed:
        lasting = POLL_MS + self._chance.randint(2_000, 4_000)
        return _place([_act(at, self._roles.staller, Deed.STALL, Scene.STALL, lasting)], lasting)

    def _crash(self, at: int) -> _Placed:
        """Whoever supervises it starts it again when the group has already gone on."""
        back = at + SESSION_MS + self._chance.randint(2_500, 4_000)
        name = self._roles.victim
        return _place(
            [
                _act(at, name, Deed.CRASH, Scene.CRASH),
                _act(back, name, Deed.START, Scene.CRASH),
            ]
        )

    def _freeze(self, at: int) -> _Placed:
        lasting = SESSION_MS + self._chance.randint(2_500, 4_000)
        name = self._roles.victim
        return _place(
            [
                _act(at, name, Deed.FREEZE, Scene.FREEZE, lasting),
                _act(at + lasting, name, Deed.THAW, Scene.FREEZE),
            ]
        )

    def _storm(self, at: int) -> _Placed:
        """One program that ends and starts again, faster than its group can settle."""
        acts = []
        for _ in range(_STORM_RESTARTS):
            acts.append(_act(at, self._roles.restless, Deed.STOP, Scene.STORM))
            acts.append(_act(at + 400, self._roles.restless, Deed.START, Scene.STORM))
            at += 2_600
        return _place(acts)


def _place(acts: list[Act], lasting: int = 0) -> _Placed:
    return _Placed(acts=tuple(acts), end_ms=acts[-1].at_ms + lasting + _SETTLING_MS)


def _act(at: int, name: str, deed: Deed, scene: Scene, for_ms: int = 0) -> Act:
    return Act(at_ms=Millis(at), name=name, deed=deed, scene=scene, for_ms=Millis(for_ms))


def _chance(seed: int, what: str) -> Random:
    return Random(f"{seed}/{what}")  # noqa: S311  # made to be drawn again, not to be secret


def _as_ms(minutes: float) -> Millis:
    return Millis(int(minutes * 60_000))
