"""Measures Kohort and Apache Kafka by turns, and reports failures."""

import os
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from bench.kit.brokers import BROKERS, KAFKA, KOHORT, OTHER_CHECKOUT, Broker, CannotDo
from bench.kit.figures import Figure, Taken, Target
from bench.kit.harness import Effort, tell
from bench.kit.load_driver import Driven
from tests.apache.unavailable import Unavailable

PEER = (
    f"checkout {os.environ[OTHER_CHECKOUT]}" if os.environ.get(OTHER_CHECKOUT) else "Apache Kafka"
)
ROUNDS = 3

IDLE_SHARE, IDLE_LOOK_S, IDLE_PATIENCE_S = 0.03, 1.0, 30.0
"""A broker is idle if it uses less than this share of a core over this time; the longest wait."""


class Worker(Protocol):
    @property
    def cpu_s(self) -> float: ...


Side = TypeVar("Side", Broker, type[Broker])
"""A running broker, or the class of which each round starts a new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One measured quantity of one round, and the CPU share of generator and broker if known."""

    quantity: str
    amount: float
    generator: float | None = None
    broker: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A quantity measured in each round: its name, its unit and its target."""

    name: str
    unit: str
    target: Target | None = None


class Score:
    """The samples of both sides so far, and which side has failed."""

    def __init__(self, quantities: Sequence[Quantity]) -> None:
        self._quantities = quantities
        self._samples: dict[tuple[str, str], list[Sample]] = defaultdict(list)
        self._failures: dict[tuple[str, str], str] = {}
        self.failed: set[str] = set()

    def take(self, name: str, samples: Iterable[Sample]) -> None:
        """Add the next round of a side. If it fails, the quantities measured before still count."""
        missing = {each.name for each in self._quantities}
        try:
            for sample in samples:
                missing.remove(sample.quantity)
                self._samples[name, sample.quantity].append(sample)
        except (CannotDo, OSError) as error:
            self.failed.add(name)
            self._failures.update({(name, each): f"{error}" for each in missing})

    def figures(self) -> Iterator[Figure]:
        for each in self._quantities:
            yield Figure(
                metric=each.name,
                unit=each.unit,
                kohort=self._taken(KOHORT, each.name),
                peer=self._taken(KAFKA, each.name),
                target=each.target,
            )

    def _taken(self, name: str, quantity: str) -> Taken:
        samples = self._samples[name, quantity]
        return Taken(
            samples=tuple(each.amount for each in samples),
            failure=self._failures.get((name, quantity), ""),
            generator=tuple(each.generator for each in samples if each.generator is not None),
            broker=tuple(each.broker for each in samples if each.broker is not None),
        )


def contest(
    sides: Sequence[Side],
    rounds: int,
    quantities: Sequence[Quantity],
    measure: Callable[[Side], Iterable[Sample]],
    prepare: Callable[[Side], None] | None = None,
) -> Iterator[Figure]:
    """Prepare both sides, then measure by turns.

    The first side alternates. A failed side is skipped.
    """
    score = Score(quantities)
    if prepare is not None:
        for side in sides:
            score.take(side.name, _nothing_but(prepare, side))
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            if side.name not in score.failed:
                for other in sides:
                    if other is not side and isinstance(other, Broker):
                        wait_until_idle(other)
                score.take(side.name, measure(side))
    yield from score.figures()


def wait_until_idle(broker: Worker) -> None:
    """Wait until the broker is idle, for a limited time.

    Java compiles and collects garbage for seconds after the last request, on any core.
    """
    end = time.monotonic() + IDLE_PATIENCE_S
    while time.monotonic() < end:
        before = broker.cpu_s
        time.sleep(IDLE_LOOK_S)
        if broker.cpu_s - before < IDLE_SHARE * IDLE_LOOK_S:
            return


def _nothing_but(prepare: Callable[[Side], None], side: Side) -> Iterator[Sample]:
    prepare(side)
    yield from ()


def tell_beside(
    about: str | None, measure: Callable[[Effort], Iterable[Figure]], rounds: int = ROUNDS
) -> None:
    """The main program of a benchmark. It exits with a message if a broker is unavailable."""
    # Benchmarks open thousands of connections: raise the limit, also for child processes.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        tell(about or "", PEER, measure, rounds=rounds)
    except (CannotDo, Unavailable) as error:
        sys.exit(f"{error}")


@contextmanager
def both(*, is_synced: bool = False) -> Iterator[tuple[Broker, ...]]:
    """Both brokers, running at the same time."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(fresh(kind, is_synced=is_synced)) for kind in BROKERS)


@contextmanager
def fresh(kind: type[Broker], *, is_synced: bool = False) -> Iterator[Broker]:
    """A broker that has just started in a new directory."""
    with unstarted(kind, is_synced=is_synced) as broker:
        broker.start()
        yield broker


@contextmanager
def unstarted(kind: type[Broker], *, is_synced: bool = False) -> Iterator[Broker]:
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as name:
        broker = kind(Path(name) / kind.name, is_synced=is_synced)
        broker.prepare()
        try:
            yield broker
        finally:
            broker.stop()


def load_samples(driven: Driven, size: str) -> Iterator[Sample]:
    """The results of a steady load, under the names of `load_quantities`."""
    shares = {"generator": driven.generator, "broker": driven.broker}
    yield Sample(quantity=f"{size}: responses", amount=driven.per_second, **shares)
    yield Sample(quantity=f"{size}: p50", amount=driven.p50_ms)
    yield Sample(quantity=f"{size}: p99", amount=driven.p99_ms)
    yield Sample(
        quantity=f"{size}: responses per CPU second", amount=driven.per_second / driven.broker
    )


def load_quantities(
    size: str, rate: Target | None = None, p99: Target | None = None
) -> tuple[Quantity, ...]:
    return (
        Quantity(name=f"{size}: responses", unit="/s", target=rate),
        Quantity(name=f"{size}: p50", unit="ms"),
        Quantity(name=f"{size}: p99", unit="ms", target=p99),
        Quantity(name=f"{size}: responses per CPU second", unit="/s"),
    )
