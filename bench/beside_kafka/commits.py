"""Commits of ten partitions: each member sends the next, with other offsets, when one is answered.

Once with the page cache, where a broker answers when the system has the bytes, and once synced,
where it answers when the disk has them (Kohort's `kohort.durability`, Kafka's
`log.flush.interval.messages`). Groups have ten members, each on a connection of its own; broker and
generator have a core each.
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
from bench.kit.driving import Lane, commit_lanes, drive, form_once
from bench.kit.figures import Figure, at_least, at_most
from bench.kit.harness import Effort

CONNECTIONS, QUICK_CONNECTIONS = (10, 50, 500), (10, 50)
MEMBERS = 10
TOPIC, PARTITIONS = "orders", 10
OFFSETS = range(1, 33)
SECONDS, WARM_SECONDS = 5.0, 15.0
KINDS = {"page cache": False, "synced": True}

ROUNDS = 7
"""The slowest hundredth differs much from round to round, with neighbours and with compaction."""


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
