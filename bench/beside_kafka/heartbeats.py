"""Heartbeats: each member, on its own connection, sends the next one when the last is answered.

Groups have ten members. The broker has one core and the generator another. In the rows *cores free*
the system schedules both, so that Kafka's threads can use more than one core.
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
from bench.kit.figures import Figure, at_least
from bench.kit.harness import Effort
from bench.kit.load_driver import Lane, drive, form_once, heartbeat_lanes

CONNECTIONS, QUICK_CONNECTIONS = (10, 50, 500), (10, 50)
FREE_CONNECTIONS = 50
MEMBERS = 10
SECONDS, WARM_SECONDS = 5.0, 15.0


def measure(effort: Effort) -> Iterator[Figure]:
    with both() as brokers:
        for count in effort.pick(CONNECTIONS, QUICK_CONNECTIONS):
            lanes: dict[str, list[Lane]] = {}
            yield from turn_about(brokers, effort, count, lanes)
            if count == FREE_CONNECTIONS:
                yield from turn_about(brokers, effort, count, lanes, is_free=True)


def turn_about(
    brokers: tuple[Broker, ...],
    effort: Effort,
    count: int,
    lanes: dict[str, list[Lane]],
    *,
    is_free: bool = False,
) -> Iterator[Figure]:
    size = f"{count} connections" + (", cores free" if is_free else "")

    def prepare(broker: Broker) -> None:
        if broker.name not in lanes:
            groups = [f"beat-{count}-{number}" for number in range(count // MEMBERS)]
            lanes[broker.name] = heartbeat_lanes(form_once(broker, groups, MEMBERS))
        drive(broker, lanes[broker.name], seconds=effort.pick(WARM_SECONDS, 1.0), is_free=True)

    def load(broker: Broker) -> Iterator[Sample]:
        seconds = effort.pick(SECONDS, 1.0)
        driven = drive(broker, lanes[broker.name], seconds=seconds, is_free=is_free)
        yield from load_samples(driven, size)

    wanted = load_quantities(size, rate=None if is_free else at_least(1.0))
    yield from contest(brokers, effort.rounds, wanted, load, prepare)


if __name__ == "__main__":
    tell_beside(__doc__, measure)
