"""Kills a node repeatedly while clients use it, and checks its data after every start.

An acknowledged record is at its offset, a committed offset never decreases, no record is duplicated
or missing, and exactly the acknowledged topics exist. Segments are small. The seed determines the
times of the kills; the progress of the workers depends on the machine.

    python -m tests.node.kill_loop --kills 1000 --durability os --seed 7
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from kohort.types import ErrorCode, Millis, Offset, Partition, Topic
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from kohort.wire.batch import iter_records, split
from tests.node.kill_workers import (
    TOPIC,
    CommitterWork,
    Gate,
    ProducerWork,
    Work,
    Worker,
    value_of,
    wait_for_groups,
)
from tests.node.raw_client import RawClient
from tests.node.served_node import ServedNode
from tests.node.topic_churn import ChurnWork
from tests.wait import pause, wait_until

PARTITIONS = 3
FIRST = Partition(0)

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    # Retention and compaction run all the time.
    "log.retention.check.interval.ms": 50,
    "offsets.topic.segment.bytes": 1_048_576,
}
SEGMENT_BYTES = 20_000

RUN_S_MAX = 0.25
"""The longest time between two kills."""

RECORDS_KEPT = 20_000
"""Older records are deleted sometimes, to limit the duration of the checks."""


class KillLoop:
    """One data directory, its workers, the kills and the checks."""

    def __init__(self, directory: Path, seed: int, durability: str) -> None:
        self._directory = directory
        self._settings = {**SETTINGS, "kohort.durability": durability}
        self._random = Random(seed)  # noqa: S311  # reproducible from the seed
        self._gate = Gate()
        draw = self._random.getrandbits
        partitions = [Partition(index) for index in range(PARTITIONS)]
        self._producers = [
            ProducerWork(each, Random(draw(32)))  # noqa: S311
            for each in partitions
        ]
        self._member = CommitterWork("member", Random(draw(32)))  # noqa: S311
        self._committers = [self._member, CommitterWork("outsider", Random(draw(32)))]  # noqa: S311
        self._churn = ChurnWork(Random(draw(32)))  # noqa: S311
        works: list[Work] = [*self._producers, *self._committers, self._churn]
        self._workers = [Worker(self._gate, work) for work in works]
        self._deleted = dict.fromkeys(partitions, 0)
        self._committed: dict[str, int] = {}
        self._producer_ids: set[int] = set()
        self.kills = 0

    @property
    def records_acked(self) -> int:
        return sum(producer.records_acked for producer in self._producers)

    def run(
        self,
        kills: int,
        on_check: Callable[[str], None] = lambda _: None,
        on_death: Callable[[Path], None] = lambda _: None,
    ) -> None:
        """Calls `on_check` after each check and `on_death` after each kill."""
        node = self._start()
        self._prepare(node)
        for worker in self._workers:
            worker.start()
        try:
            while self.kills < kills:
                self._gate.open(node.address)
                pause(self._random.uniform(0, RUN_S_MAX))
                self._gate.close()
                self._end(node)
                self._wait_for_workers()
                on_death(node.data)
                node = self._start()
                on_check(self._check(node))
        finally:
            self._gate.end()
            node.kill()
        for worker in self._workers:
            worker.join()

    def _start(self) -> ServedNode:
        """Start a node; some are killed before they are ready."""
        while self.kills and self._random.random() < 0.2:
            unlucky = ServedNode(self._directory, self._settings, is_awaited=False)
            pause(self._random.uniform(0, 0.5))
            self._kill(unlucky)
        return ServedNode(self._directory, self._settings)

    def _end(self, node: ServedNode) -> None:
        """Kill a node; some are killed during shutdown."""
        if self._random.random() < 0.1:
            node.terminate()
            pause(self._random.uniform(0, 0.05))
        self._kill(node)

    def _kill(self, node: ServedNode) -> None:
        node.kill()
        self.kills += 1

    def _wait_for_workers(self) -> None:
        wait_until(self._are_workers_waiting, 30, "workers that noticed the kill")
        for worker in self._workers:
            if worker.failure is not None:
                raise worker.failure

    def _are_workers_waiting(self) -> bool:
        alive = sum(worker.is_alive() for worker in self._workers)
        return self._gate.waiting == alive

    def _prepare(self, node: ServedNode) -> None:
        size = CreatableTopicConfig(name="internal.segment.bytes", value=str(SEGMENT_BYTES))
        topic = CreatableTopic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, configs=(size,)
        )
        with RawClient(node.address) as client:
            answer = client.ask(CreateTopicsRequest(topics=(topic,)), 7)
            assert answer.topics[0].error_code == 0, answer
            self._member.join(client)

    # Checks

    def _check(self, node: ServedNode) -> str:
        with RawClient(node.address) as client:
            for producer in self._producers:
                self._check_records(client, producer)
            wait_for_groups(client)
            for committer in self._committers:
                self._check_offset(client, committer)
            self._check_producer_id(client)
            self._churn.check(client, lambda client, topic: read_all(client, FIRST, 0, topic))
            if self._random.random() < 0.2:
                self._delete_some(client)
        commits = sum(committer.acked for committer in self._committers)
        churned = f"{self._churn.created} topics created, {self._churn.deleted} deleted"
        return (
            f"{self.kills} kills, {self.records_acked} records, offsets up to {commits}, {churned}"
        )

    def _check_records(self, client: RawClient, producer: ProducerWork) -> None:
        partition = producer.partition
        start = self._deleted[partition]
        expected = start
        for offset, value in read_all(client, partition, start):
            assert offset == expected, f"{TOPIC}-{partition}: {offset} follows {expected - 1}"
            assert value == value_of(partition, offset), f"{TOPIC}-{partition}@{offset}: {value!r}"
            expected += 1
        acked, sent = producer.records_acked, producer.records_sent
        assert acked <= expected <= sent, (
            f"{TOPIC}-{partition} ends at {expected}; {acked} were acknowledged, {sent} sent"
        )

    def _check_offset(self, client: RawClient, committer: CommitterWork) -> None:
        offset, metadata = fetch_offset(client, committer)
        least = max(committer.acked, self._committed.get(committer.group_id, 0))
        assert least <= max(offset, 0) <= committer.sent, (
            f"{committer.name}: {offset} is committed; it was {least}, {committer.sent} were sent"
        )
        assert offset < 0 or metadata.startswith(f"{offset}/"), f"{committer.name}: {metadata}"
        self._committed[committer.group_id] = max(offset, 0)

    def _check_producer_id(self, client: RawClient) -> None:
        given = client.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id
        assert given not in self._producer_ids, f"producer id {given} was issued twice"
        self._producer_ids.add(given)

    def _delete_some(self, client: RawClient) -> None:
        for producer in self._producers:
            before = producer.records_acked - RECORDS_KEPT // PARTITIONS
            if before <= self._deleted[producer.partition]:
                continue
            asked = DeleteRecordsPartition(
                partition_index=producer.partition, offset=Offset(before)
            )
            topic = DeleteRecordsTopic(name=TOPIC, partitions=(asked,))
            answer = client.ask(DeleteRecordsRequest(topics=(topic,), timeout_ms=Millis(1000)), 2)
            result = answer.topics[0].partitions[0]
            assert (result.error_code, result.low_watermark) == (0, before), result
            self._deleted[producer.partition] = before


def read_all(
    client: RawClient, partition: Partition, start: int, topic: Topic = TOPIC
) -> Sequence[tuple[int, bytes]]:
    """Read all records from the log start offset, which must be `start`."""
    found: list[tuple[int, bytes]] = []
    offset = start
    while True:
        data = fetch(client, partition, offset, topic)
        assert data.error_code == 0, ErrorCode(data.error_code).name
        assert data.log_start_offset == start, f"begins at {data.log_start_offset}, not {start}"
        if not data.records:
            assert data.high_watermark == offset
            return found
        for position, header in split(data.records, truncated_ok=True):
            found += [
                (record.offset, record.value or b"")
                for record in iter_records(data.records, position)
                if record.offset >= offset
            ]
            offset = header.next_offset


def fetch(client: RawClient, partition: Partition, offset: int, name: Topic) -> Any:
    asked = FetchPartition(
        partition=partition, fetch_offset=Offset(offset), partition_max_bytes=4 << 20
    )
    topic = FetchTopic(topic=name, partitions=(asked,))
    request = FetchRequest(max_wait_ms=Millis(0), min_bytes=0, topics=(topic,))
    return client.ask(request, 12).responses[0].partitions[0]


def fetch_offset(client: RawClient, committer: CommitterWork) -> tuple[int, str]:
    topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(Partition(0),))
    group = OffsetFetchRequestGroup(group_id=committer.group_id, topics=(topic,))
    (answer,) = client.ask(OffsetFetchRequest(groups=(group,)), 8).groups
    assert answer.error_code == 0, ErrorCode(answer.error_code).name
    (partition,) = answer.topics[0].partitions
    assert partition.error_code == 0, ErrorCode(partition.error_code).name
    return partition.committed_offset, partition.metadata or ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a node repeatedly and check its data.")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--durability", choices=("fsync", "os"), default="fsync")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    options = parser.parse_args()
    print(f"seed {options.seed}, durability {options.durability}", flush=True)
    with tempfile.TemporaryDirectory(prefix="kohort-killing-") as directory:
        killing = KillLoop(Path(directory), options.seed, options.durability)
        killing.run(options.kills, on_check=lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
