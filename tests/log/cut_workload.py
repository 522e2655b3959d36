"""A workload on the real catalog: everything that writes files, with very small segments.

Records, commits, topics and producer ids are acknowledged as the node does it: after the sync of
the files that the catalog has returned, or when the call of the catalog returns.
"""

from pathlib import Path
from random import Random

from kohort.events.internal_topics import CONSUMER_OFFSETS
from kohort.log.appended_batch import TrustedBatch
from kohort.log.catalog import Catalog
from kohort.log.os_disk import OsDisk
from kohort.log.partition import PartitionLog
from kohort.types import Millis, Offset, Topic, Uuid
from kohort.wire.batch import assign_offset
from tests.log.cut_history import History, PartitionHistory, TopicState
from tests.log.log_setup import COMPACTED, NOW, SMALL_SEGMENTS, new_batch, new_record

RECORDS, CHURN = Topic("records"), Topic("churn")
PRODUCER_ID = 7
GROUPS = 5
RETAINED = {**SMALL_SEGMENTS, "retention.bytes": "4000"}


def run_workload(directory: Path, history: History, rng: Random, rounds: int) -> None:
    work = Workload(directory, history, rng)
    for number in range(rounds):
        work.run_round(number)
    work.stop()


class Workload:
    def __init__(self, directory: Path, history: History, rng: Random) -> None:
        self._directory = directory
        self._history = history
        self._rng = rng
        self._now = NOW
        self._ids = 0
        self._sequence = 0
        self._unacked: list[tuple[PartitionHistory, int]] = []
        self._states: dict[Topic, TopicState] = {}
        self._open()
        self._create(RECORDS, 2, RETAINED)
        self._create(CONSUMER_OFFSETS, 1, COMPACTED)

    def _open(self) -> None:
        self._catalog, _ = Catalog.open(OsDisk(self._directory), self._now, cluster_id="power")

    def run_round(self, number: int) -> None:
        rng = self._rng
        self._now = Millis(self._now + 1000)
        for _ in range(rng.randint(1, 3)):
            self._produce(rng.randrange(2))
        for _ in range(rng.randint(1, 2)):
            self._commit()
        if rng.random() < 0.8:
            self._sync()
        if CHURN in self._states and rng.random() < 0.7:
            self._produce_churn()
        if number % 4 == 1:
            self._clean()
        if number % 3 == 2:
            self._churn()
        if number % 7 == 3:
            self._reserve()
        if number % 9 == 5:
            self._delete_records()
        if number % 11 == 10:
            self.stop()
            self._open()

    def stop(self) -> None:
        """Cleanly. Everything is synced."""
        self._catalog.close(self._now)
        self._acknowledge()

    # Records and commits

    def _produce(self, partition: int) -> None:
        """To partition 0 as an idempotent producer."""
        log, facts = self._find(RECORDS, partition)
        records = [
            new_record(f"k{log.end_offset + each}", self._value(), self._now)
            for each in range(self._rng.randint(1, 3))
        ]
        if partition:
            batch = new_batch(*records)
        else:
            batch = new_batch(
                *records, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=self._sequence
            )
            self._sequence += len(records)
            self._history.batches.setdefault((RECORDS, 0), {})[log.end_offset + len(records)] = (
                batch
            )
        self._append(log, facts, batch, records)

    def _produce_churn(self) -> None:
        state = self._states[CHURN]
        log, facts = self._find(CHURN, self._rng.randrange(state.partition_count))
        records = [new_record("c", self._value(), self._now)]
        self._append(log, facts, new_batch(*records), records)

    def _append(
        self, log: PartitionLog, facts: PartitionHistory, batch: bytes, records: list
    ) -> None:
        for number, record in enumerate(records, start=log.end_offset):
            facts.records[number] = (record.key, record.value)
        end = log.end_offset + len(records)
        facts.written_end.put(self._history.now, end)
        self._unacked.append((facts, end))
        log.append(batch, self._now)

    def _commit(self) -> None:
        """As the groups do: several batches in one write."""
        log, facts = self._find(CONSUMER_OFFSETS, 0)
        batches = []
        offset = log.end_offset
        for _ in range(self._rng.randint(1, 3)):
            record = new_record(f"g{self._rng.randrange(GROUPS)}", self._value(), self._now)
            data = bytearray(new_batch(record))
            assign_offset(data, base_offset=offset, partition_leader_epoch=0)
            batches.append(TrustedBatch(bytes(data), 1, self._now))
            facts.records[offset] = (record.key, record.value)
            offset = Offset(offset + 1)
        facts.written_end.put(self._history.now, offset)
        self._unacked.append((facts, offset))
        errors = log.append_trusted_batches(batches, self._now)
        assert not any(errors), errors

    def _value(self) -> str:
        """Different every time, and of any size."""
        self._ids += 1
        return f"{self._ids}".ljust(self._rng.choice((10, 40, 120, 300)), ".")

    def _sync(self) -> None:
        for each in self._catalog.take_pending_syncs():
            each.sync()
        self._acknowledge()

    def _acknowledge(self) -> None:
        now = self._history.now
        for facts, end in self._unacked:
            facts.acked_end.put(now, end)
        self._unacked.clear()

    # Cleaning

    def _clean(self) -> None:
        """Retention, compaction and checkpoints. Compaction in small steps or at once."""
        before = self._history.now
        budget = self._rng.choice((None, 500, 2000))
        while True:
            result = self._catalog.clean(self._now, budget)
            assert result.failure is None, result.failure
            if result.is_done:
                break
            self._now = Millis(self._now + 1000)
        for number in range(2):
            log, facts = self._find(RECORDS, number)
            facts.start.put(before, log.start_offset)

    def _delete_records(self) -> None:
        log, facts = self._find(RECORDS, 1)
        # What is not synced is not deleted: clients have not seen it.
        self._sync()
        start = Offset(self._rng.randint(log.start_offset, log.end_offset))
        facts.start.put(self._history.now, start)
        log.delete_before(start)
        facts.acked_start.put(self._history.now, start)

    # Topics

    def _churn(self) -> None:
        state = self._states.get(CHURN)
        if state is None:
            self._create(CHURN, self._rng.randint(1, 2), SMALL_SEGMENTS)
            return
        match self._rng.randrange(3):
            case 0:
                self._add_partition(state)
            case 1:
                self._alter(state)
            case _:
                self._delete()

    def _create(self, name: Topic, count: int, settings: dict[str, str]) -> None:
        self._ids += 1
        topic_id = Uuid(self._ids.to_bytes(16))
        state = TopicState(
            topic_id=topic_id, partition_count=count, settings=tuple(sorted(settings.items()))
        )
        for number in range(count):
            self._history.add_partition(topic_id, number, is_compacted=settings is COMPACTED)
        self._history.begin(name, state)
        self._catalog.create_topic(name, topic_id, count, settings)
        self._changed(name, state)

    def _add_partition(self, state: TopicState) -> None:
        count = state.partition_count + 1
        state = TopicState(topic_id=state.topic_id, partition_count=count, settings=state.settings)
        self._history.add_partition(state.topic_id, count - 1, is_compacted=False)
        self._history.begin(CHURN, state)
        self._catalog.add_partitions(CHURN, count)
        self._changed(CHURN, state)

    def _alter(self, state: TopicState) -> None:
        self._ids += 1
        settings = {**SMALL_SEGMENTS, "retention.ms": f"{10**9 + self._ids}"}
        state = TopicState(
            topic_id=state.topic_id,
            partition_count=state.partition_count,
            settings=tuple(sorted(settings.items())),
        )
        self._history.begin(CHURN, state)
        self._catalog.alter_settings(CHURN, settings)
        self._changed(CHURN, state)

    def _delete(self) -> None:
        state = self._states.pop(CHURN)
        gone = {
            id(self._history.partition(state, number)) for number in range(state.partition_count)
        }
        self._unacked = [each for each in self._unacked if id(each[0]) not in gone]
        self._history.begin(CHURN, None)
        self._catalog.delete_topic(CHURN)
        self._history.acknowledge(CHURN)

    def _changed(self, name: Topic, state: TopicState) -> None:
        self._states[name] = state
        self._history.acknowledge(name)

    def _reserve(self) -> None:
        first = self._catalog.reserve_producer_ids(10)
        self._history.producer_ids.put(self._history.now, first + 10)

    def _find(self, name: Topic, number: int) -> tuple[PartitionLog, PartitionHistory]:
        log = self._catalog.partition(name, number)
        assert log is not None
        return log, self._history.partition(self._states[name], number)
