"""Rebalances: from one member's changed subscription until the last member has its assignment.

All members are scripted, each with its own connection. One joins again; the others send a
heartbeat, learn of the rebalance, join and sync; the leader assigns. Measured for one group of many
members and for many groups of five at once. A round is the median of a few rebalances. CPU includes
the broker's work after its last response, so it can exceed the wall-clock time.
"""

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from bench.beside_kafka.contest import Quantity, Sample, both, contest, tell_beside
from bench.kit.brokers import LOAD_CORE, Broker
from bench.kit.figures import Figure, at_most
from bench.kit.harness import Effort
from bench.kit.load_driver import Members, held

SIZES, QUICK_SIZES = (10, 100, 500, 1_000, 2_000), (10, 50)
GROUPS, QUICK_GROUPS = (10, 100, 1_000), (5, 10)
MEMBERS = 5
TARGET, TARGET_SIZE_MAX = 0.5, 1_000
ROUNDS = 7

WARM_TIMES = 1_000
"""Rebalances of 100 members to warm up: after 300, Java was still compiling."""


def measure(effort: Effort) -> Iterator[Figure]:
    with both() as brokers:
        for broker in brokers:
            warm(broker, effort.pick(100, 10), effort.pick(WARM_TIMES, 3))
        for size in effort.pick(SIZES, QUICK_SIZES):
            target = at_most(TARGET) if size <= TARGET_SIZE_MAX else None
            wanted = Quantity(name=f"{size:,} members", unit="ms", target=target)
            yield from turn_about(brokers, effort, wanted, [f"members-{size}"], size)
        for count in effort.pick(GROUPS, QUICK_GROUPS):
            names = [f"groups-{count}-{number}" for number in range(count)]
            wanted = Quantity(name=f"{count:,} groups of {MEMBERS} at once", unit="ms")
            yield from turn_about(brokers, effort, wanted, names, MEMBERS)


def warm(broker: Broker, size: int, times: int) -> None:
    with Members(broker) as members:
        members.form(["warm"], size)
        for _ in range(times):
            members.rebalance(["warm"])


def turn_about(
    brokers: tuple[Broker, ...],
    effort: Effort,
    wanted: Quantity,
    groups: Sequence[str],
    size: int,
) -> Iterator[Figure]:
    times = effort.pick(max(3, 200 // (size * len(groups))), 1)
    with ExitStack() as stack:
        crowds: dict[str, Members] = {}

        def prepare(broker: Broker) -> None:
            crowds[broker.name] = stack.enter_context(Members(broker, LOAD_CORE))
            crowds[broker.name].form(groups, size, at_once=len(groups))

        def rebalance(broker: Broker) -> Iterator[Sample]:
            yield from rebalance_often(broker, crowds[broker.name], wanted.name, groups, times)

        used = Quantity(name=f"{wanted.name}, broker's CPU", unit="ms")
        yield from contest(brokers, effort.rounds, (wanted, used), rebalance, prepare)


def rebalance_often(
    broker: Broker, crowd: Members, name: str, groups: Sequence[str], times: int
) -> Iterator[Sample]:
    """Wall-clock time, and the broker's CPU, which other processes disturb less."""
    with held(broker):
        before = broker.cpu_s
        took = [crowd.rebalance(groups) for _ in range(times)]
        cpu_s = broker.cpu_s - before
    yield Sample(
        quantity=name,
        amount=statistics.median(seconds for seconds, _ in took) * 1000,
        generator=statistics.median(busy for _, busy in took),
        broker=cpu_s / sum(seconds for seconds, _ in took),
    )
    yield Sample(quantity=f"{name}, broker's CPU", amount=cpu_s / times * 1000)


if __name__ == "__main__":
    tell_beside(__doc__, measure, rounds=ROUNDS)
