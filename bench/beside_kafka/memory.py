"""Resident memory of a broker that idles, and as it takes in groups of ten members.

Members join over a few hundred connections, one wave of groups after another, and stay, as their
sessions are long: what grows is what a coordinator remembers, not sockets. Kafka's memory is what
the system counts, garbage that no collector has looked at included; its heap may grow to 1 GB.
"""

import time
from collections.abc import Iterator

from bench.beside_kafka.contest import Quantity, Sample, contest, fresh, tell_beside
from bench.kit.brokers import BROKERS, Broker
from bench.kit.driving import Members
from bench.kit.figures import Figure, at_most
from bench.kit.harness import Effort

SIZES, QUICK_SIZES = (100, 1_000, 10_000), (10, 20)
MEMBERS = 10
IDLE_S = 10.0
"""So long after its start a broker has done all it does at its start."""

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
