"""Two sides by turns: everybody's samples are kept apart, and a failure ends one side alone."""

from collections.abc import Callable, Iterator

from bench.beside_kafka.contest import Quantity, Sample, contest
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
