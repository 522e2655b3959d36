"""The service runs as a process, so that a test can kill it. The broker runs in the test."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kohort.testing import Namespace

SERVICE = Path(__file__).with_name("payments.py")

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def group(kohort_cluster: Namespace) -> str:
    return kohort_cluster.group("payments")


@pytest.fixture
def orders(kohort_cluster: Namespace) -> str:
    return kohort_cluster.topic("orders", partitions=4)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "payments.db"


@pytest.fixture
def start(kohort_cluster: Namespace, group: str, orders: str, database: Path) -> Iterator[Start]:
    """Starts an instance of the service with the given client id."""
    started = []

    def start(client_id: str = "payments") -> "subprocess.Popen[bytes]":
        options = {
            "bootstrap.servers": kohort_cluster.bootstrap_servers,
            "client.id": client_id,
            "group.id": group,
            # A member learns of a rebalance with its next heartbeat.
            "heartbeat.interval.ms": 100,
        }
        environment = {
            "KAFKA_OPTIONS": json.dumps(options),
            "TOPIC": orders,
            "DATABASE": f"{database}",
        }
        process = subprocess.Popen([sys.executable, SERVICE], env={**os.environ, **environment})
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def order(number: int) -> tuple[str, str]:
    return f"{number}", json.dumps({"id": f"{number}", "amount": 10})


def paid(database: Path) -> dict[str, int]:
    with closing(sqlite3.connect(database)) as connection:
        return dict(connection.execute("SELECT order_id, amount FROM payments"))


def test_every_order_is_paid_and_committed(
    kohort_cluster: Namespace, group: str, orders: str, database: Path, start: Start
) -> None:
    kohort_cluster.produce(orders, [order(number) for number in range(20)])

    start()

    kohort_cluster.wait_for(group, lag=0)
    assert paid(database) == {f"{number}": 10 for number in range(20)}


def test_an_order_is_not_lost_if_the_database_refuses_it(
    kohort_cluster: Namespace, group: str, orders: str, database: Path, start: Start
) -> None:
    service = start()
    kohort_cluster.wait_for(group, stable=True)
    with closing(sqlite3.connect(database)) as other:
        other.execute("BEGIN EXCLUSIVE")
        kohort_cluster.produce(orders, [order(1)])
        assert service.wait(timeout=10) != 0

    start()

    kohort_cluster.wait_for(group, lag=0)
    assert paid(database) == {"1": 10}


def test_an_order_is_paid_once_if_the_service_is_killed_before_it_commits(
    kohort_cluster: Namespace, group: str, orders: str, database: Path, start: Start
) -> None:
    kohort_cluster.produce(orders, [order(1)])
    with kohort_cluster.faults.drop("OffsetCommit", group=group) as commits:
        killed = start("killed")
        commits.wait()
        killed.kill()
        killed.wait()
    assert paid(database) == {"1": 10}
    assert kohort_cluster.committed(group) == {}

    start("next")
    kohort_cluster.faults.expire_session(group, "killed")

    kohort_cluster.wait_for(group, lag=0)
    assert paid(database) == {"1": 10}


def test_a_lost_answer_to_a_commit_changes_nothing(
    kohort_cluster: Namespace, group: str, orders: str, database: Path, start: Start
) -> None:
    with kohort_cluster.faults.drop("OffsetCommit", group=group, after=True, times=1) as lost:
        start()
        kohort_cluster.produce(orders, [order(1)])
        lost.wait()
    kohort_cluster.produce(orders, [order(2)])

    kohort_cluster.wait_for(group, lag=0)
    assert paid(database) == {"1": 10, "2": 10}


def test_the_other_instance_continues_when_one_is_killed(
    kohort_cluster: Namespace, group: str, orders: str, database: Path, start: Start
) -> None:
    killed = start("killed")
    start("other")
    kohort_cluster.wait_for(group, members=2, stable=True, assigned=4)

    killed.kill()
    kohort_cluster.produce(orders, [order(number) for number in range(20)])
    kohort_cluster.faults.expire_session(group, "killed")

    kohort_cluster.wait_for(group, members=1, stable=True, lag=0)
    assert len(paid(database)) == 20
