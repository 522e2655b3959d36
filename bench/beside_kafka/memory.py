"""Resident memory of an idle broker, and while groups of ten members join.

Members join over a few hundred connections, one wave of groups after another, and stay because
their sessions are long. So the coordinator's state grows, not the number of sockets. Kafka's memory
is its resident set, including garbage that is not yet collected; its heap may grow to 1 GB.
"""

import time
from collections.abc import Iterator

from bench.beside_kafka.contest import Quantity, Sample, contest, fresh, tell_beside
from bench.kit.brokers import BROKERS, Broker
from bench.kit.figures import Figure, at_most
from bench.kit.harness import Effort
from bench.kit.load_driver import Members

SIZES, QUICK_SIZES = (100, 1_000, 10_000), (10, 20)
MEMBERS = 10
IDLE_S = 10.0
"""Time after which a broker has finished its start-up work."""

IDLE = Quantity(name="idle", unit="MB", target=at_most(1 / 6))


def measure(effort: Effort) -> Iterator[Figure]:
    sizes = effort.pick(SIZES, QUICK_SIZES)
    idle_s = effort.pick(IDLE_S, IDLE_S / 10)
    quantities = [
        Quantity(name=named(size), unit="MB", target=at_most(0.5) if size == sizes[-1] else None)
        for size in sizes
    ]

    def grow(kind: type[Broker]) -> Iterator[Sample]:
        with fresh(kind) as broker, Members(broker) as members:
            time.sleep(idle_s)
            yield Sample(quantity=IDLE.name, amount=broker.resident_mb)
            there = 0
            for size in sizes:
                names = [f"group-{number}" for number in range(there, size)]
                members.form(names, MEMBERS)
                there = size
                yield Sample(quantity=named(size), amount=broker.resident_mb)

    yield from contest(BROKERS, effort.rounds, (IDLE, *quantities), grow)


def named(size: int) -> str:
    return f"{size:,} groups of {MEMBERS}"


if __name__ == "__main__":
    tell_beside(__doc__, measure)
