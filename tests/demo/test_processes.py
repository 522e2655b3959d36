"""Actions on real consumer processes, none of which outlives the demo."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from kohort.demo.processes import ConsumerProcesses
from kohort.demo.producer import OrderProducer, create_orders_topic
from kohort.demo.schedule import Action, ActionKind, Incident
from kohort.types import Millis
from tests.wait import wait_until

NAME = "checkout-1"
TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A node with a producer of orders."""
    failures: list[tuple[str, str]] = []
    with kohort.Node(settings={"group.initial.rebalance.delay.ms": 0}) as node:
        create_orders_topic(node.bootstrap_servers)
        producer = OrderProducer(
            node.bootstrap_servers, 1, lambda part, why: failures.append((part, why))
        )
        yield node.bootstrap_servers
        producer.close()
    assert not failures


class Harness:
    """Consumer processes and their reported failures."""

    def __init__(self, servers: str, logs: Path) -> None:
        self.failures: list[tuple[str, str]] = []
        self.processes = ConsumerProcesses(
            servers, logs, lambda name, why: self.failures.append((name, why))
        )

    def execute(self, kind: ActionKind, duration_ms: int = 0) -> None:
        self.processes.execute(
            Action(
                at_ms=Millis(0),
                consumer=NAME,
                kind=kind,
                incident=Incident.STORM,
                duration_ms=Millis(duration_ms),
            )
        )

    @property
    def records(self) -> int:
        return sum(self.processes.consumed().values())

    def await_records(self, more_than: int = 0) -> None:
        wait_until(lambda: self.records > more_than, TIMEOUT_S, "records to be consumed")


@pytest.fixture
def harness(servers: str, tmp_path: Path) -> Iterator[Harness]:
    harness = Harness(servers, tmp_path)
    yield harness
    harness.processes.kill()


def test_restarted_consumer_continues_to_consume(harness: Harness) -> None:
    harness.execute(ActionKind.START)
    harness.await_records()

    harness.execute(ActionKind.STOP)
    harness.execute(ActionKind.START)
    before = harness.records
    harness.await_records(before)
    harness.processes.close()

    assert harness.failures == []


def test_close_works_while_a_consumer_is_crashed(harness: Harness) -> None:
    harness.execute(ActionKind.START)
    harness.await_records()

    harness.execute(ActionKind.CRASH)
    harness.processes.close()

    assert harness.failures == []
    assert harness.records > 0


@pytest.mark.parametrize("kind", [ActionKind.SUSPEND, ActionKind.STALL])
def test_suspended_or_stalled_consumer_leaves_on_close(harness: Harness, kind: ActionKind) -> None:
    harness.execute(ActionKind.START)
    harness.await_records()

    harness.execute(kind, duration_ms=600_000)
    harness.processes.close()

    assert harness.failures == []


def test_resumed_consumer_continues_to_consume(harness: Harness) -> None:
    harness.execute(ActionKind.START)
    harness.await_records()

    harness.execute(ActionKind.SUSPEND)
    harness.execute(ActionKind.RESUME)
    harness.await_records(harness.records)

    assert harness.failures == []


def test_failed_consumer_is_reported_with_its_last_log_line(tmp_path: Path) -> None:
    harness = Harness("nowhere", tmp_path)

    harness.execute(ActionKind.START)
    wait_until(lambda: harness.failures, TIMEOUT_S, "the failure to be reported")
    harness.processes.close()

    ((name, why),) = harness.failures
    assert name == NAME
    assert "nowhere" in why


def test_no_consumer_starts_after_kill(harness: Harness) -> None:
    harness.processes.kill()

    harness.execute(ActionKind.START)

    assert harness.records == 0
    assert not list(harness.processes.logs.iterdir())
