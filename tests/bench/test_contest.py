"""Two sides by turns: everybody's samples are kept apart, and a failure ends one side alone."""

from collections.abc import Callable, Iterator

import pytest

from bench.beside_kafka import contest as contest_module
from bench.beside_kafka.contest import Quantity, Sample, contest, wait_until_idle
from bench.kit.brokers import BROKERS, Broker, CannotDo
from bench.kit.figures import Figure

SPEED = Quantity(name="speed", unit="/s")
WEIGHT = Quantity(name="weight", unit="MB")

Kind = type[Broker]


def hold(
    rounds: int,
    measure: Callable[[Kind], Iterator[Sample]],
    prepare: Callable[[Kind], None] | None = None,
) -> list[Figure]:
    return list(contest(BROKERS, rounds, (SPEED, WEIGHT), measure, prepare))


def test_sides_take_turns_and_who_is_first_changes() -> None:
    order: list[str] = []

    def measure(kind: Kind) -> Iterator[Sample]:
        order.append(kind.name)
        yield Sample(quantity="speed", amount=len(order))
        yield Sample(quantity="weight", amount=0.5)

    speed, weight = hold(3, measure)

    assert order == ["kohort", "kafka", "kafka", "kohort", "kohort", "kafka"]
    assert speed.kohort.samples == (1, 4, 5)
    assert speed.peer.samples == (2, 3, 6)
    assert weight.peer.samples == (0.5, 0.5, 0.5)


def test_who_fails_is_not_asked_again() -> None:
    asked: list[str] = []

    def measure(kind: Kind) -> Iterator[Sample]:
        asked.append(kind.name)
        yield Sample(quantity="speed", amount=1)
        if kind.name == "kafka":
            raise CannotDo("too heavy")
        yield Sample(quantity="weight", amount=2)

    speed, weight = hold(3, measure)

    assert asked.count("kafka") == 1
    assert asked.count("kohort") == 3
    assert speed.peer.samples == (1,)
    assert speed.peer.failure == ""
    assert weight.peer.failure == "too heavy"
    assert weight.kohort.samples == (2, 2, 2)


def test_who_cannot_be_prepared_has_failed() -> None:
    def prepare(kind: Kind) -> None:
        if kind.name == "kohort":
            raise CannotDo("no groups")

    def measure(kind: Kind) -> Iterator[Sample]:
        assert kind.name == "kafka"
        yield Sample(quantity="speed", amount=1)
        yield Sample(quantity="weight", amount=2)

    speed, weight = hold(1, measure, prepare)

    assert (speed.kohort.failure, weight.kohort.failure) == ("no groups", "no groups")
    assert speed.peer.samples == (1,)


class Working:
    """A broker that goes on for a while after it was asked."""

    def __init__(self, cpu_s: list[float]) -> None:
        self._cpu_s = cpu_s
        self.looks = 0

    @property
    def cpu_s(self) -> float:
        self.looks += 1
        return self._cpu_s.pop(0)


def test_a_broker_is_waited_for_until_it_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest_module, "IDLE_LOOK_S", 0.001)
    broker = Working([0.0, 0.5, 0.5, 0.6, 0.6, 0.6])

    wait_until_idle(broker)

    assert broker.looks == 6


def test_a_broker_that_never_rests_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contest_module, "IDLE_LOOK_S", 0.001)
    monkeypatch.setattr(contest_module, "IDLE_PATIENCE_S", 0.05)
    broker = Working([float(number) for number in range(1_000)])

    wait_until_idle(broker)

    assert broker.looks > 2
