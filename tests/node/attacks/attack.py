"""An attack: a preparation, which is not measured, and an action, which is."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.node.attacks import bulk_requests
from tests.node.attacks.arena import Arena, Shot, explain, fire
from tests.node.attacks.wire_client import WireClient

Action = Callable[[Arena], Callable[[], str]]
"""Does it, and returns a function that describes the outcome after the measurement."""


def do_nothing(_: Arena) -> None:
    """No preparation."""


def create_target(arena: Arena) -> None:
    arena.create_topic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    name: str
    what: str
    act: Action
    prepare: Callable[[Arena], None] = do_nothing
    expected: frozenset[str] = field(default_factory=frozenset)
    """What a correct broker answers at a small scale; empty: what it answers is free."""


def one_request(
    name: str,
    what: str,
    make: Callable[[Arena], object],
    version: int,
    *,
    prepare: Callable[[Arena], None] = create_target,
    expected: tuple[str, ...] = (),
) -> Attack:
    """A connection that sends one request and waits for the response."""

    def shot_of(arena: Arena) -> Shot:
        return arena.shot(name, lambda: make(arena), version)

    def prepare_all(arena: Arena) -> None:
        prepare(arena)
        shot_of(arena)

    def act(arena: Arena) -> Callable[[], str]:
        shot = shot_of(arena)
        answer = fire(arena.connect(), shot)
        return lambda: explain(shot, answer)

    return Attack(name=name, what=what, act=act, prepare=prepare_all, expected=frozenset(expected))


def create_large(arena: Arena) -> None:
    """In two steps: Kafka creates less than 10,000 partitions per request."""
    count = arena.scaled(10_000, 2)
    arena.create_topic(count // 2)
    with WireClient(arena.port) as client:
        (result,) = client.ask(bulk_requests.grow_topic(count), 3).results
        assert result.error_code == 0, result
