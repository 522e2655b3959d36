"""A node that is killed again and again under its clients, and looked through after every start.

Every promise must hold: an acknowledged record is where its producer was told, a committed offset
never moves back, nothing is there twice and nothing is missing in between. The seed draws the
moments of the kills; how far the workers have come by then is up to the machine.

    python -m tests.node.killing --kills 1000 --durability os --seed 7
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from kohort.types import ErrorCode, Millis, Offset, Partition
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
from tests.node.calling import Caller
from tests.node.serving import Served
from tests.node.working import (
    TOPIC,
    Committing,
    Gate,
    Producing,
    Work,
    Worker,
    value_of,
    wait_for_groups,
)
from tests.waiting import pause, wait_until

PARTITIONS = 3

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    # Retention and compaction are always at work when the node dies.
    "log.retention.check.interval.ms": 50,
    "offsets.topic.segment.bytes": 1_048_576,
}
SEGMENT_BYTES = 200_000

RUN_S_MAX = 0.25
"""How long a node lives at most."""

RECORDS_KEPT = 20_000
"""What is older is deleted now and then, so that looking through the log takes no longer."""


class Killing:
    """One data directory, the workers, and whoever kills and looks."""

    def __init__(self, directory: Path, seed: int, durability: str) -> None:
        self._directory = directory
        self._settings = {**SETTINGS, "kohort.durability": durability}
        self._random = Random(seed)  # noqa: S311  # drawn again from the same seed
        self._gate = Gate()
        draw = self._random.getrandbits
        partitions = [Partition(index) for index in range(PARTITIONS)]
        self._producers = [Producing(each, Random(draw(32))) for each in partitions]  # noqa: S311
        self._member = Committing("member", Random(draw(32)))  # noqa: S311
        self._committers = [self._member, Committing("outsider", Random(draw(32)))]  # noqa: S311
        works: list[Work] = [*self._producers, *self._committers]
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
        on_look: Callable[[str], None] = lambda _: None,
        on_death: Callable[[Path], None] = lambda _: None,
    ) -> None:
        """Tells what it saw after every start; shows the data before it."""
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
                on_look(self._look(node))
        finally:
            self._gate.end()
            node.kill()
        for worker in self._workers:
            worker.join()

    def _start(self) -> Served:
        """Some die before they are ready."""
        while self.kills and self._random.random() < 0.2:
            unlucky = Served(self._directory, self._settings, is_awaited=False)
            pause(self._random.uniform(0, 0.5))
            self._kill(unlucky)
        return Served(self._directory, self._settings)

    def _end(self, node: Served) -> None:
        """Some die while they stop."""
        if self._random.random() < 0.1:
            node.terminate()
            pause(self._random.uniform(0, 0.05))
        self._kill(node)

    def _kill(self, node: Served) -> None:
        node.kill()
        self.kills += 1

    def _wait_for_workers(self) -> None:
        wait_until(self._are_workers_waiting, 30, "workers that notice")
        for worker in self._workers:
            if worker.surprise is not None:
                raise worker.surprise

    def _are_workers_waiting(self) -> bool:
        alive = sum(worker.is_alive() for worker in self._workers)
        return self._gate.waiting == alive

    def _prepare(self, node: Served) -> None:
        size = CreatableTopicConfig(name="internal.segment.bytes", value=str(SEGMENT_BYTES))
        topic = CreatableTopic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, configs=(size,)
        )
        with Caller(node.address) as caller:
            answer = caller.ask(CreateTopicsRequest(topics=(topic,)), 7)
            assert answer.topics[0].error_code == 0, answer
            self._member.join(caller)

    # Looking

    def _look(self, node: Served) -> str:
        with Caller(node.address) as caller:
            for producer in self._producers:
                self._look_at_records(caller, producer)
            wait_for_groups(caller)
            for committer in self._committers:
                self._look_at_offset(caller, committer)
            self._look_at_producer_id(caller)
            if self._random.random() < 0.2:
                self._delete_some(caller)
        commits = sum(committer.acked for committer in self._committers)
        return f"{self.kills} kills, {self.records_acked} records, offsets up to {commits}"

    def _look_at_records(self, caller: Caller, producer: Producing) -> None:
        partition = producer.partition
        start = self._deleted[partition]
        expected = start
        for offset, value in read_all(caller, partition, start):
            assert offset == expected, f"{TOPIC}-{partition}: {offset} follows {expected - 1}"
            assert value == value_of(partition, offset), f"{TOPIC}-{partition}@{offset}: {value!r}"
            expected += 1
        acked, sent = producer.records_acked, producer.records_sent
        assert acked <= expected <= sent, (
            f"{TOPIC}-{partition} ends at {expected}; {acked} were acknowledged, {sent} sent"
        )

    def _look_at_offset(self, caller: Caller, committer: Committing) -> None:
        offset, metadata = fetch_offset(caller, committer)
        least = max(committer.acked, self._committed.get(committer.group_id, 0))
        assert least <= max(offset, 0) <= committer.sent, (
            f"{committer.name}: {offset} is committed; it was {least}, {committer.sent} were sent"
        )
        assert offset < 0 or metadata.startswith(f"{offset}/"), f"{committer.name}: {metadata}"
        self._committed[committer.group_id] = max(offset, 0)

    def _look_at_producer_id(self, caller: Caller) -> None:
        given = caller.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id
        assert given not in self._producer_ids, f"producer id {given} was given twice"
        self._producer_ids.add(given)

    def _delete_some(self, caller: Caller) -> None:
        for producer in self._producers:
            before = producer.records_acked - RECORDS_KEPT // PARTITIONS
            if before <= self._deleted[producer.partition]:
                continue
            asked = DeleteRecordsPartition(
                partition_index=producer.partition, offset=Offset(before)
            )
            topic = DeleteRecordsTopic(name=TOPIC, partitions=(asked,))
            answer = caller.ask(DeleteRecordsRequest(topics=(topic,), timeout_ms=Millis(1000)), 2)
            result = answer.topics[0].partitions[0]
            assert (result.error_code, result.low_watermark) == (0, before), result
            self._deleted[producer.partition] = before


def read_all(caller: Caller, partition: Partition, start: int) -> Sequence[tuple[int, bytes]]:
    """Every record from an offset, which is where the log must begin, to the end of the log."""
    found: list[tuple[int, bytes]] = []
    offset = start
    while True:
        data = fetch(caller, partition, offset)
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


def fetch(caller: Caller, partition: Partition, offset: int) -> Any:
    asked = FetchPartition(
        partition=partition, fetch_offset=Offset(offset), partition_max_bytes=4 << 20
    )
    topic = FetchTopic(topic=TOPIC, partitions=(asked,))
    request = FetchRequest(max_wait_ms=Millis(0), min_bytes=0, topics=(topic,))
    return caller.ask(request, 12).responses[0].partitions[0]


def fetch_offset(caller: Caller, committer: Committing) -> tuple[int, str]:
    topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(Partition(0),))
    group = OffsetFetchRequestGroup(group_id=committer.group_id, topics=(topic,))
    (answer,) = caller.ask(OffsetFetchRequest(groups=(group,)), 8).groups
    assert answer.error_code == 0, ErrorCode(answer.error_code).name
    (partition,) = answer.topics[0].partitions
    assert partition.error_code == 0, ErrorCode(partition.error_code).name
    return partition.committed_offset, partition.metadata or ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a node again and again, and look.")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--durability", choices=("fsync", "os"), default="fsync")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    options = parser.parse_args()
    print(f"seed {options.seed}, durability {options.durability}", flush=True)
    with tempfile.TemporaryDirectory(prefix="kohort-killing-") as directory:
        killing = Killing(Path(directory), options.seed, options.durability)
        killing.run(options.kills, on_look=lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
