"""Fetches that wait: each is answered once, with enough or when its time is up, never later."""

from collections.abc import Iterator
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.node.fetches import Fetch, Read, Wanted
from kohort.types import Millis, Offset, Partition, Topic
from tests.node.asking import Scene, new_batch

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
    """One fetch: from the end of its partitions, for so many batches, for at most 50 ms."""

    def __init__(self, scene: Scene, partitions: tuple[int, ...], batches: int) -> None:
        self.scene = scene
        self.due = scene.now + 50
        self.bytes_min = batches * len(BATCH)
        self.answers: list[tuple[int, int]] = []
        fetch = Fetch(
            wanted=tuple(self._wanted(partition) for partition in partitions),
            bytes_min=self.bytes_min,
            bytes_max=1 << 20,
            wait_ms=Millis(50),
            is_committed_only=False,
            deliver=self._deliver,
        )
        scene.broker.fetches.submit(fetch, scene.now)

    def _wanted(self, partition: int) -> Wanted:
        log = self.scene.catalog.partition(Topic("t"), partition)
        assert log is not None
        return Wanted(
            topic=Topic("t"),
            partition=Partition(partition),
            offset=Offset(log.end_offset),
            bytes_max=1 << 20,
            leader_epoch=-1,
        )

    def _deliver(self, reads: list[Read]) -> None:
        self.answers.append((self.scene.now, sum(len(read.records) for read in reads)))

    def check(self) -> None:
        assert len(self.answers) <= 1, "answered twice"
        if not self.answers:
            assert self.scene.now < self.due, "forgotten"
            return
        ((at, size),) = self.answers
        assert at <= self.due
        assert size >= self.bytes_min or at == self.due


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = Scene(tmp_path_factory.mktemp("fetches"))
    scene.create("t", PARTITIONS)
    yield scene
    scene.close()


@given(steps=STEPS)
def test_every_fetch_is_answered_once_with_enough_or_in_time(
    scene: Scene, steps: list[Step]
) -> None:
    """One scene serves all examples: every fetch begins at the end, and none outlives its own."""
    askers: list[Asker] = []
    for verb, number, batches in [*steps, ("advance", 50, 0)]:
        match verb:
            case "append":
                scene.produce(BATCH, partition=number)
            case "fetch":
                chosen = tuple(p for p in range(PARTITIONS) if number & 1 << p)
                askers.append(Asker(scene, chosen, batches))
            case _:
                scene.advance(number)
        for asker in askers:
            asker.check()
    assert len(scene.broker.fetches) == 0
