"""OffsetFetch of all offsets of 1 to 1,000 groups in one request, as group tools send it.

Each group has committed ten partitions. One connection sends the next request when the last is
answered. Broker and generator have a core each.
"""

from collections.abc import Iterator

from bench.beside_kafka.contest import Quantity, Sample, both, contest, tell_beside
from bench.kit import request_frames
from bench.kit.brokers import Broker, CannotDo
from bench.kit.client import Client
from bench.kit.figures import Figure
from bench.kit.harness import Effort
from bench.kit.load_driver import Lane, drive, form_once
from kohort.wire.envelope import decode_response

SIZES, QUICK_SIZES = (1, 10, 100, 1_000), (1, 10)
TOPIC, PARTITIONS = "orders", 10
SECONDS, WARM_SECONDS = 4.0, 10.0


def measure(effort: Effort) -> Iterator[Figure]:
    sizes = effort.pick(SIZES, QUICK_SIZES)
    groups = [f"group-{number}" for number in range(sizes[-1])]
    with both() as brokers:
        for broker in brokers:
            commit_once(broker, groups)
        for size in sizes:
            yield from turn_about(brokers, effort, groups[:size])


def commit_once(broker: Broker, groups: list[str]) -> None:
    broker.create_topic(TOPIC, PARTITIONS)
    with Client(broker.port) as client:
        for seat in form_once(broker, groups, 1):
            client.ask_raw(
                request_frames.commit(
                    seat.group,
                    seat.member_id,
                    seat.generation,
                    topic=TOPIC,
                    partitions=PARTITIONS,
                    offset=7,
                )
            )


def turn_about(brokers: tuple[Broker, ...], effort: Effort, groups: list[str]) -> Iterator[Figure]:
    name = f"groups in one request: {len(groups):,}"
    # Kafka tells a group's topics in no order: answers are alike in size, not byte for byte.
    lanes = [Lane(frames=[request_frames.fetch_offsets(groups)], is_same=False)]

    def prepare(broker: Broker) -> None:
        assert_all_told(broker, groups)
        drive(broker, lanes, seconds=effort.pick(WARM_SECONDS, 1.0), is_free=True)

    def ask(broker: Broker) -> Iterator[Sample]:
        driven = drive(broker, lanes, seconds=effort.pick(SECONDS, 1.0))
        yield Sample(
            quantity=name,
            amount=driven.p50_ms,
            generator=driven.generator,
            broker=driven.broker,
        )
        yield Sample(quantity=f"{name}, p99", amount=driven.p99_ms)

    wanted = (Quantity(name=name, unit="ms"), Quantity(name=f"{name}, p99", unit="ms"))
    yield from contest(brokers, effort.rounds, wanted, ask, prepare)


def assert_all_told(broker: Broker, groups: list[str]) -> None:
    with Client(broker.port) as client:
        answer = client.ask_raw(request_frames.fetch_offsets(groups))
    told = decode_response(answer, request_frames.FETCH_KEY, request_frames.FETCH_VERSION)[1].groups
    count = sum(len(topic.partitions) for group in told for topic in group.topics)
    if count != len(groups) * PARTITIONS:
        raise CannotDo(f"{broker.name} tells {count} offsets of {len(groups) * PARTITIONS}")


if __name__ == "__main__":
    tell_beside(__doc__, measure)
