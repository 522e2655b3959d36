"""What happens to the shop's consumers, and when: a pure function of a seed and a length.

First all consumers start. Then incidents follow in a random order: a deployment, a stall, a crash,
a suspension, and a deployment of static members. A restart storm comes last. Without a length the
schedule is endless, with a storm at the end of every round. Incidents never overlap, so that every
rebalance has one cause. The consumers that fail are chosen once, so that a report can name them.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from math import inf
from random import Random
from typing import Final

from kohort.demo.services import (
    BILLING,
    CHECKOUT,
    CONSUMERS,
    POLL_INTERVAL_MS,
    SESSION_MS,
    Service,
    consumers_of,
)
from kohort.types import Millis, value

MINUTES_MIN: Final = 0.2
"""All consumers have started by then."""
MINUTES_MAX: Final = 10_000
"""About a week."""

_SETTLE_MS: Final = 4_000
"""From the last action of an incident until its group is stable again."""
_STORM_FROM_MS: Final = 60_000
"""A shorter run has no time for a storm and anything else."""
_STORM_RESTARTS: Final = 6
_AFTER_STORM_MS: Final = 2_000

_REPORT_FROM_MINUTES: Final = 3.0
"""A shorter run ends before a report in its middle would be useful."""
_FIRST_REPORT_MINUTES: Final = 1.5
_REPORT_EVERY_MINUTES: Final = 5.0


class ActionKind(StrEnum):
    START = "start"
    STOP = "stop"
    """The consumer closes. A dynamic member leaves its group; a static one does not."""
    CRASH = "crash"
    """The process is killed."""
    STALL = "stall"
    """The consumer does not poll for a while. Its heartbeats continue."""
    SUSPEND = "suspend"
    """The process gets SIGSTOP, as if its machine were suspended."""
    RESUME = "resume"


class Incident(StrEnum):
    STARTUP = "startup"
    DEPLOY = "deploy"
    STATIC_DEPLOY = "static deploy"
    STALL = "stall"
    CRASH = "crash"
    SUSPENSION = "suspension"
    STORM = "storm"


@value
class Action:
    at_ms: Millis
    """Time since the start of the demo."""
    consumer: str
    kind: ActionKind
    incident: Incident
    duration_ms: Millis = Millis(0)
    """Of a stall or a suspension."""


@value
class Roles:
    """The three consumers of checkout that fail."""

    slow: str
    """Exceeds its poll interval."""
    unstable: str
    """Crashes and is suspended."""
    flapping: str
    """Restarts repeatedly in a storm."""


def choose_roles(seed: int) -> Roles:
    names = [consumer.name for consumer in consumers_of(CHECKOUT)]
    slow, unstable, flapping = _random(seed, "roles").sample(names, 3)
    return Roles(slow=slow, unstable=unstable, flapping=flapping)


def generate_schedule(seed: int, minutes: float | None) -> Iterator[Action]:
    """Yield all actions by time; without end if no length is given."""
    generator = _ScheduleGenerator(seed)
    end_ms = inf if minutes is None else minutes * 60_000
    for incident in generator.generate(end_ms):
        yield from (action for action in incident.actions if action.at_ms < end_ms)


def report_times(minutes: float | None) -> Iterator[Millis]:
    """Yield the times of intermediate reports."""
    if minutes is None:
        at = _FIRST_REPORT_MINUTES
        while True:
            yield _as_ms(at)
            at += _REPORT_EVERY_MINUTES
    elif minutes >= _REPORT_FROM_MINUTES:
        yield _as_ms(minutes / 2)


@value
class _ScheduledIncident:
    actions: tuple[Action, ...]
    end_ms: int


class _ScheduleGenerator:
    def __init__(self, seed: int) -> None:
        self._random = _random(seed, "scenes")
        self._roles = choose_roles(seed)

    def generate(self, end_ms: float) -> Iterator[_ScheduledIncident]:
        startup = self._startup(0)
        yield startup
        at = startup.end_ms
        if end_ms == inf:
            while True:
                for incident in [*self._round(at, inf), None]:
                    scheduled = incident or self._storm(at + self._pause())
                    yield scheduled
                    at = scheduled.end_ms
        storm_ms = self._storm(0).end_ms + _AFTER_STORM_MS if end_ms >= _STORM_FROM_MS else 0
        while incidents := self._round(at, end_ms - storm_ms):
            yield from incidents
            at = incidents[-1].end_ms
        if storm_ms:
            yield self._storm(int(end_ms) - storm_ms)

    def _round(self, at: int, until: float) -> list[_ScheduledIncident]:
        """Return each incident once, in random order, without those that would end too late."""
        factories: list[Callable[[int], _ScheduledIncident]] = [
            lambda at: self._deploy(at, CHECKOUT, Incident.DEPLOY),
            lambda at: self._deploy(at, BILLING, Incident.STATIC_DEPLOY),
            self._stall,
            self._crash,
            self._suspension,
        ]
        self._random.shuffle(factories)
        incidents: list[_ScheduledIncident] = []
        for factory in factories:
            scheduled = factory(at + self._pause())
            if scheduled.end_ms <= until:
                incidents.append(scheduled)
                at = scheduled.end_ms
        return incidents

    def _pause(self) -> int:
        return self._random.randint(1_500, 4_000)

    # Incidents

    def _startup(self, at: int) -> _ScheduledIncident:
        names = sorted(CONSUMERS)
        self._random.shuffle(names)
        actions = []
        for name in names:
            actions.append(_action(at, name, ActionKind.START, Incident.STARTUP))
            at += self._random.randint(400, 900)
        return _schedule(actions)

    def _deploy(self, at: int, service: Service, incident: Incident) -> _ScheduledIncident:
        """Restart the consumers one after the other."""
        actions = []
        for consumer in consumers_of(service):
            actions.append(_action(at, consumer.name, ActionKind.STOP, incident))
            restart = at + self._random.randint(600, 1_200)
            actions.append(_action(restart, consumer.name, ActionKind.START, incident))
            at = restart + self._random.randint(2_000, 3_000)
        return _schedule(actions)

    def _stall(self, at: int) -> _ScheduledIncident:
        duration = POLL_INTERVAL_MS + self._random.randint(2_000, 4_000)
        action = _action(at, self._roles.slow, ActionKind.STALL, Incident.STALL, duration)
        return _schedule([action], duration)

    def _crash(self, at: int) -> _ScheduledIncident:
        """Restart the consumer only after its session has expired."""
        restart = at + SESSION_MS + self._random.randint(2_500, 4_000)
        name = self._roles.unstable
        return _schedule(
            [
                _action(at, name, ActionKind.CRASH, Incident.CRASH),
                _action(restart, name, ActionKind.START, Incident.CRASH),
            ]
        )

    def _suspension(self, at: int) -> _ScheduledIncident:
        duration = SESSION_MS + self._random.randint(2_500, 4_000)
        name = self._roles.unstable
        return _schedule(
            [
                _action(at, name, ActionKind.SUSPEND, Incident.SUSPENSION, duration),
                _action(at + duration, name, ActionKind.RESUME, Incident.SUSPENSION),
            ]
        )

    def _storm(self, at: int) -> _ScheduledIncident:
        """Restart one consumer faster than its group becomes stable."""
        actions = []
        for _ in range(_STORM_RESTARTS):
            actions.append(_action(at, self._roles.flapping, ActionKind.STOP, Incident.STORM))
            actions.append(
                _action(at + 400, self._roles.flapping, ActionKind.START, Incident.STORM)
            )
            at += 2_600
        return _schedule(actions)


def _schedule(actions: list[Action], duration: int = 0) -> _ScheduledIncident:
    end_ms = actions[-1].at_ms + duration + _SETTLE_MS
    return _ScheduledIncident(actions=tuple(actions), end_ms=end_ms)


def _action(
    at: int, consumer: str, kind: ActionKind, incident: Incident, duration_ms: int = 0
) -> Action:
    return Action(
        at_ms=Millis(at),
        consumer=consumer,
        kind=kind,
        incident=incident,
        duration_ms=Millis(duration_ms),
    )


def _random(seed: int, stream: str) -> Random:
    return Random(f"{seed}/{stream}")  # noqa: S311  # reproducible on purpose


def _as_ms(minutes: float) -> Millis:
    return Millis(int(minutes * 60_000))
