"""Parked fetches complete exactly once: with enough bytes or at their deadline."""

from collections.abc import Iterator
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.node.fetch_purgatory import FetchParams, LogReadResult, PartitionFetch
from kohort.types import Millis, Offset, Partition, Topic
from tests.node.broker_harness import BrokerHarness, new_batch

PARTITIONS = 3
BATCH = new_batch("x" * 40)

Step: TypeAlias = tuple[str, int, int]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, PARTITIONS - 1), st.just(0)),
        st.tuples(st.just("fetch"), st.integers(1, 2**PARTITIONS - 1), st.integers(0, 4)),
        st.tuples(st.just("advance"), st.integers(1, 40), st.just(0)),
    ),
    max_size=25,
)


class Asker:
    """One fetch from the end of its partitions, with a minimum size and at most 50 ms."""

    def __init__(self, harness: BrokerHarness, partitions: tuple[int, ...], batches: int) -> None:
        self.harness = harness
        self.due = harness.now + 50
        self.bytes_min = batches * len(BATCH)
        self.answers: list[tuple[int, int]] = []
        fetch = FetchParams(
            partitions=tuple(self._wanted(partition) for partition in partitions),
            bytes_min=self.bytes_min,
            bytes_max=1 << 20,
            wait_ms=Millis(50),
            is_committed_only=False,
        )
        result = harness.broker.purgatory.submit(fetch, self)
        if not isinstance(result, int):
            self.deliver(result)

    def _wanted(self, partition: int) -> PartitionFetch:
        log = self.harness.catalog.partition(Topic("t"), partition)
        assert log is not None
        return PartitionFetch(
            topic=Topic("t"),
            partition=Partition(partition),
            offset=Offset(log.end_offset),
            bytes_max=1 << 20,
            leader_epoch=-1,
        )

    def deliver(self, reply: list[LogReadResult]) -> None:
        self.answers.append((self.harness.now, sum(len(read.records) for read in reply)))

    def fail(self, error: Exception) -> None:
        raise error

    def check(self) -> None:
        assert len(self.answers) <= 1, "answered twice"
        if not self.answers:
            assert self.harness.now < self.due, "forgotten"
            return
        ((at, size),) = self.answers
        assert at <= self.due
        assert size >= self.bytes_min or at == self.due


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerHarness]:
    harness = BrokerHarness(tmp_path_factory.mktemp("fetches"))
    harness.create("t", PARTITIONS)
    yield harness
    harness.close()


@given(steps=STEPS)
def test_every_fetch_completes_once_with_min_bytes_or_at_its_deadline(
    harness: BrokerHarness, steps: list[Step]
) -> None:
    """One harness serves all examples: every fetch begins at the end, and none outlives its own."""
    askers: list[Asker] = []
    for verb, number, batches in [*steps, ("advance", 50, 0)]:
        match verb:
            case "append":
                harness.produce(BATCH, partition=number)
            case "fetch":
                chosen = tuple(p for p in range(PARTITIONS) if number & 1 << p)
                askers.append(Asker(harness, chosen, batches))
            case _:
                harness.advance(number)
        for asker in askers:
            asker.check()
    assert len(harness.broker.purgatory) == 0
