"""Many topics and partitions: create, write, restart after kill -9, clean stop, delete.

Each round has two brokers of each kind: one gets many topics with one partition each, the other one
topic with many partitions and a record in each. Times of requests end when the metadata of all
topics shows the change. Nothing else is synced by either: topics are, records are not.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from bench.beside_kafka.contest import Quantity, Sample, contest, fresh, tell_beside
from bench.kit.brokers import BROKERS, Broker, CannotDo
from bench.kit.client import Client
from bench.kit.figures import Figure, at_most
from bench.kit.harness import Effort
from kohort.types import ErrorCode, Millis, Partition, Topic
from kohort.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from kohort.wire.batch import NewBatch, NewRecord, encode

ROUNDS = 1
SINGLY = 1_000
PER_REQUEST = 1_000
PATIENCE_MS = 300_000
WIDE = "wide"

NO_SLOWER = at_most(1.0)
Step = tuple[Callable[[], object], ...]
"""What is done and timed as one."""


def measure(effort: Effort) -> Iterator[Figure]:
    count = effort.pick(10_000, 1_000)
    yield from contest(BROKERS, effort.rounds, _quantities(TOPIC_STEPS, count), many_topics(count))
    yield from contest(BROKERS, effort.rounds, _quantities(WIDE_STEPS, count), wide_topic(count))


TOPIC_STEPS = (
    "create {singly} topics, one request each",
    "create the rest of {count} topics, 1,000 per request",
    "{count} topics: restart after kill",
    "{count} topics: clean stop",
    "{count} topics: start after a clean stop",
    "delete {count} topics, 1,000 per request",
)
WIDE_STEPS = (
    "create one topic of {count} partitions",
    "first record in each of {count} partitions",
    "{count} written partitions: restart after kill",
    "{count} written partitions: clean stop",
    "{count} written partitions: start after a clean stop",
    "delete one topic of {count} partitions",
)


def _quantities(steps: tuple[str, ...], count: int) -> tuple[Quantity, ...]:
    return tuple(Quantity(name=_name(step, count), unit="s", target=NO_SLOWER) for step in steps)


def _name(step: str, count: int) -> str:
    return step.format(count=f"{count:,}", singly=f"{min(SINGLY, count):,}")


def _timed(names: tuple[str, ...], count: int, steps: tuple[Step, ...]) -> Iterator[Sample]:
    for name, step in zip(names, steps, strict=True):
        began = time.perf_counter()
        for action in step:
            action()
        yield Sample(quantity=_name(name, count), amount=time.perf_counter() - began)


# Many topics


def many_topics(count: int) -> Callable[[type[Broker]], Iterator[Sample]]:
    names = [f"t{number}" for number in range(count)]
    singly = min(SINGLY, count)

    def measured(kind: type[Broker]) -> Iterator[Sample]:
        with fresh(kind) as broker:
            shows_all = partial(wait_for, broker, count)
            steps: tuple[Step, ...] = (
                (partial(create, broker, names[:singly], 1), partial(wait_for, broker, singly)),
                (partial(create, broker, names[singly:], PER_REQUEST), shows_all),
                (broker.kill, broker.start, shows_all),
                (broker.stop,),
                (broker.start, shows_all),
                (partial(delete, broker, names), partial(wait_for, broker, 0)),
            )
            yield from _timed(TOPIC_STEPS, count, steps)

    return measured


def create(broker: Broker, names: list[str], per_request: int) -> None:
    with Client(broker.port) as client:
        for first in range(0, len(names), per_request):
            topics = tuple(_new(name) for name in names[first : first + per_request])
            request = CreateTopicsRequest(topics=topics, timeout_ms=Millis(PATIENCE_MS))
            for result in client.ask(request, 7).topics:
                _check(broker, result.error_code, "create")


def _new(name: str, partitions: int = 1) -> CreatableTopic:
    return CreatableTopic(name=Topic(name), num_partitions=partitions, replication_factor=1)


def delete(broker: Broker, names: list[str]) -> None:
    with Client(broker.port) as client:
        for first in range(0, len(names), PER_REQUEST):
            asked = tuple(Topic(name) for name in names[first : first + PER_REQUEST])
            request = DeleteTopicsRequest(topic_names=asked, timeout_ms=Millis(PATIENCE_MS))
            for result in client.ask(request, 5).responses:
                _check(broker, result.error_code, "delete")


def wait_for(broker: Broker, partitions: int) -> None:
    """Until the metadata has this number of partitions, each with a leader."""

    def shows_all(client: Client) -> bool:
        topics = client.ask(MetadataRequest(topics=None), 9).topics
        return partitions == sum(
            each.error_code == 0 and each.leader_id >= 0
            for topic in topics
            if not (topic.name or "").startswith("__")
            for each in topic.partitions
        )

    broker.wait_for(shows_all, f"{partitions} partitions")


# One topic of many partitions


def wide_topic(count: int) -> Callable[[type[Broker]], Iterator[Sample]]:
    def measured(kind: type[Broker]) -> Iterator[Sample]:
        with fresh(kind) as broker:
            has_records = partial(wait_for_records, broker, count)
            steps: tuple[Step, ...] = (
                (partial(create_wide, broker, count), partial(wait_for, broker, count)),
                (partial(write, broker, count),),
                (broker.kill, broker.start, has_records),
                (broker.stop,),
                (broker.start, has_records),
                (partial(delete, broker, [WIDE]), partial(wait_for, broker, 0)),
            )
            yield from _timed(WIDE_STEPS, count, steps)

    return measured


def create_wide(broker: Broker, partitions: int) -> None:
    with Client(broker.port) as client:
        request = CreateTopicsRequest(
            topics=(_new(WIDE, partitions),), timeout_ms=Millis(PATIENCE_MS)
        )
        (result,) = client.ask(request, 7).topics
        _check(broker, result.error_code, "create")


def write(broker: Broker, partitions: int) -> None:
    now = Millis(round(time.time() * 1000))
    batch = encode(NewBatch(records=(NewRecord(key=None, value=b"x", timestamp=now),)))
    with Client(broker.port) as client:
        for first in range(0, partitions, PER_REQUEST):
            numbers = range(first, min(partitions, first + PER_REQUEST))
            data = tuple(PartitionProduceData(index=Partition(n), records=batch) for n in numbers)
            topic = TopicProduceData(name=Topic(WIDE), partition_data=data)
            request = ProduceRequest(
                transactional_id=None, acks=1, timeout_ms=Millis(PATIENCE_MS), topic_data=(topic,)
            )
            _produce(broker, client, request)


def _produce(broker: Broker, client: Client, request: ProduceRequest) -> None:
    """Kafka shows a leader before the leader accepts records: repeat until it does."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while True:
        answers = client.ask(request, 9).responses[0].partition_responses
        failed = {each.index: each.error_code for each in answers if each.error_code}
        if not failed:
            return
        if set(failed.values()) != {ErrorCode.NOT_LEADER_OR_FOLLOWER} or time.monotonic() > end:
            _check(broker, next(iter(failed.values())), "produce")
        (topic,) = request.topic_data
        data = tuple(each for each in topic.partition_data if each.index in failed)
        request = replace(request, topic_data=(replace(topic, partition_data=data),))
        time.sleep(0.02)


def wait_for_records(broker: Broker, partitions: int) -> None:
    """Until every partition says that its log ends after one record."""
    asked = ListOffsetsTopic(
        name=Topic(WIDE),
        partitions=tuple(
            ListOffsetsPartition(partition_index=Partition(number), timestamp=Millis(-1))
            for number in range(partitions)
        ),
    )

    def has_all(client: Client) -> bool:
        (topic,) = client.ask(ListOffsetsRequest(topics=(asked,)), 6).topics
        return all(each.error_code == 0 and each.offset == 1 for each in topic.partitions)

    wait_for(broker, partitions)
    broker.wait_for(has_all, "one record in every partition")


def _check(broker: Broker, code: int, what: str) -> None:
    if code:
        raise CannotDo(f"{broker.name}: {what}: {ErrorCode(code).name}")


if __name__ == "__main__":
    tell_beside(__doc__, measure, ROUNDS)
