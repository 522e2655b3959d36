"""Commits of ten partitions: each member sends the next commit when the last one is answered.

Measured with the page cache, where a broker answers when the kernel has the bytes, and synced,
where it answers when the disk has them (`kohort.durability` in Kohort,
`log.flush.interval.messages` in Kafka). Groups have ten members, each with its own connection.
Broker and generator have a core each.
"""

from collections.abc import Iterator

from bench.beside_kafka.contest import (
    Sample,
    both,
    contest,
    load_quantities,
    load_samples,
    tell_beside,
)
from bench.kit.brokers import Broker
from bench.kit.figures import Figure, at_least, at_most
from bench.kit.harness import Effort
from bench.kit.load_driver import Lane, commit_lanes, drive, form_once

CONNECTIONS, QUICK_CONNECTIONS = (10, 50, 500), (10, 50)
MEMBERS = 10
TOPIC, PARTITIONS = "orders", 10
OFFSETS = range(1, 33)
SECONDS, WARM_SECONDS = 5.0, 15.0
KINDS = {"page cache": False, "synced": True}

ROUNDS = 7
"""p99 varies much between rounds, because of other processes and of compaction."""


def measure(effort: Effort) -> Iterator[Figure]:
    for kind, is_synced in KINDS.items():
        with both(is_synced=is_synced) as brokers:
            for broker in brokers:
                broker.create_topic(TOPIC, PARTITIONS)
            for count in effort.pick(CONNECTIONS, QUICK_CONNECTIONS):
                yield from turn_about(brokers, effort, count, f"{kind}, {count} connections")


def turn_about(
    brokers: tuple[Broker, ...], effort: Effort, count: int, size: str
) -> Iterator[Figure]:
    lanes: dict[str, list[Lane]] = {}

    def prepare(broker: Broker) -> None:
        groups = [f"commit-{count}-{number}" for number in range(count // MEMBERS)]
        seats = form_once(broker, groups, MEMBERS)
        lanes[broker.name] = commit_lanes(seats, TOPIC, PARTITIONS, OFFSETS)
        drive(broker, lanes[broker.name], seconds=effort.pick(WARM_SECONDS, 1.0), is_free=True)

    def load(broker: Broker) -> Iterator[Sample]:
        driven = drive(broker, lanes[broker.name], seconds=effort.pick(SECONDS, 1.0))
        yield from load_samples(driven, size)

    wanted = load_quantities(size, rate=at_least(1.0), p99=at_most(1.0))
    yield from contest(brokers, effort.rounds, wanted, load, prepare)


if __name__ == "__main__":
    tell_beside(__doc__, measure, rounds=ROUNDS)
