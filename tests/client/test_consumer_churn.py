"""A group in turmoil loses nothing; and where all leave as they should, nothing is read twice."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.client.churning import Turmoil
from tests.client.clusters import SETTINGS, Cluster
from tests.node.serving import Served
from tests.waiting import pause

PARTITIONS = 200
MEMBERS = 20
STEPS, STEPS_MAX = 40, 400
RECORDS_A_STEP = 250
GENERATIONS = 5
"""With fewer there was no turmoil."""


@pytest.fixture
def seed() -> int:
    """A new one every time; a failure shows it, and KOHORT_SEED takes it."""
    drawn = int(os.environ.get("KOHORT_SEED", time.time_ns() % 2**32))
    print(f"KOHORT_SEED={drawn}")
    return drawn


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A process of its own, so that twenty busy threads do not slow it down."""
    with Served(tmp_path_factory.mktemp("churn"), SETTINGS) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)
        assert node.stop() == 0
        assert "Traceback" not in node.journal


def run(turmoil: Turmoil, doings: Sequence[Callable[[], None]]) -> None:
    for _ in range(3):
        turmoil.join()
    for step in range(STEPS_MAX):
        turmoil.random.choice(doings)()
        turmoil.produce(RECORDS_A_STEP)
        pause(turmoil.random.random() / 10)
        # On a busy machine a group takes longer to come together than these steps do.
        if step >= STEPS and turmoil.ledger.generation >= GENERATIONS:
            break
    turmoil.settle()
    assert turmoil.ledger.generation >= GENERATIONS


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_orderly_members_process_every_record_exactly_once(
    served: Cluster, tmp_path: Path, seed: int, assignor: str
) -> None:
    turmoil = Turmoil(served, tmp_path, seed, partitions=PARTITIONS, members_max=MEMBERS)
    turmoil.options |= {"partition_assignment_strategy": assignor, "session_timeout_ms": 20_000}

    run(turmoil, (turmoil.join, turmoil.join, turmoil.leave, turmoil.dawdle))

    assert turmoil.ledger.seen == turmoil.written


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_members_that_die_lose_nothing(
    served: Cluster, tmp_path: Path, seed: int, assignor: str
) -> None:
    turmoil = Turmoil(served, tmp_path, seed, partitions=PARTITIONS, members_max=MEMBERS)
    turmoil.options |= {"partition_assignment_strategy": assignor}

    run(turmoil, (turmoil.join, turmoil.join, turmoil.leave, turmoil.die, turmoil.dawdle))

    assert turmoil.ledger.seen.keys() == turmoil.written.keys()


def test_processes_that_are_killed_lose_nothing(served: Cluster, tmp_path: Path, seed: int) -> None:
    turmoil = Turmoil(served, tmp_path, seed, partitions=PARTITIONS, members_max=4)
    processes = (turmoil.start_process, turmoil.start_process, turmoil.kill_process)
    threads = (turmoil.join, turmoil.leave, turmoil.dawdle, turmoil.dawdle)

    run(turmoil, (*processes, *threads, *threads))

    seen = turmoil.ledger.seen.keys() | turmoil.seen_by_processes()
    assert seen == turmoil.written.keys()
