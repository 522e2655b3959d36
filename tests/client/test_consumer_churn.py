"""Group churn loses no records; without crashes, none is read twice."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.client.churn import GroupChurn
from tests.client.node_cluster import SETTINGS, Cluster
from tests.node.served_node import ServedNode
from tests.wait import pause

PARTITIONS = 200
MEMBERS = 20
STEPS, STEPS_MAX = 40, 400
RECORDS_A_STEP = 250
GENERATIONS = 5
"""Minimum number of rebalances."""


@pytest.fixture
def seed() -> int:
    """Random; a failure prints it, and KOHORT_SEED sets it."""
    drawn = int(os.environ.get("KOHORT_SEED", time.time_ns() % 2**32))
    print(f"KOHORT_SEED={drawn}")
    return drawn


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate process, so that busy threads do not slow it down."""
    with ServedNode(tmp_path_factory.mktemp("churn"), SETTINGS) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers)
        assert node.stop() == 0
        assert "Traceback" not in node.log


def run(churn: GroupChurn, doings: Sequence[Callable[[], None]]) -> None:
    for _ in range(3):
        churn.join()
    for step in range(STEPS_MAX):
        churn.random.choice(doings)()
        churn.produce(RECORDS_A_STEP)
        pause(churn.random.random() / 10)
        # On a busy machine a group takes longer to become stable than these steps.
        if step >= STEPS and churn.ledger.generation >= GENERATIONS:
            break
    churn.settle()
    assert churn.ledger.generation >= GENERATIONS


@pytest.mark.parametrize(
    "assignor", [pytest.param("range", marks=pytest.mark.full), "cooperative-sticky"]
)
def test_members_that_leave_cleanly_process_every_record_once(
    served: Cluster, tmp_path: Path, seed: int, assignor: str
) -> None:
    churn = GroupChurn(served, tmp_path, seed, partitions=PARTITIONS, members_max=MEMBERS)
    churn.options |= {"partition_assignment_strategy": assignor, "session_timeout_ms": 20_000}

    run(churn, (churn.join, churn.join, churn.leave, churn.dawdle))

    assert churn.ledger.seen == churn.written


@pytest.mark.parametrize(
    "assignor", [pytest.param("range", marks=pytest.mark.full), "cooperative-sticky"]
)
def test_crashing_members_lose_no_records(
    served: Cluster, tmp_path: Path, seed: int, assignor: str
) -> None:
    churn = GroupChurn(served, tmp_path, seed, partitions=PARTITIONS, members_max=MEMBERS)
    churn.options |= {"partition_assignment_strategy": assignor}

    run(churn, (churn.join, churn.join, churn.leave, churn.die, churn.dawdle))

    assert churn.ledger.seen.keys() == churn.written.keys()


@pytest.mark.full
def test_killed_processes_lose_no_records(served: Cluster, tmp_path: Path, seed: int) -> None:
    churn = GroupChurn(served, tmp_path, seed, partitions=PARTITIONS, members_max=4)
    processes = (churn.start_process, churn.start_process, churn.kill_process)
    threads = (churn.join, churn.leave, churn.dawdle, churn.dawdle)

    run(churn, (*processes, *threads, *threads))

    seen = churn.ledger.seen.keys() | churn.seen_by_processes()
    assert seen == churn.written.keys()
