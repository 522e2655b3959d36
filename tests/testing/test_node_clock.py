"""`NodeClock`, and what clients whose own timers are real see of a clock that is moved."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

import kohort
from kohort.node.broker_thread import BrokerThread
from kohort.node.config import BrokerConfig
from kohort.testing.clock import NodeClock
from tests.wait import wait_until

SESSION_S = 45


class ClockedNode:
    """A node with a manual clock, for client libraries."""

    def __init__(self, data: Path) -> None:
        settings = {"kohort.clock": "manual", "group.initial.rebalance.delay.ms": "0"}
        self.thread = BrokerThread(BrokerConfig(settings), data)
        self.bootstrap_servers = str(self.thread.start("127.0.0.1", 0))
        self.clock = NodeClock(self.thread)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ClockedNode]:
    node = ClockedNode(tmp_path)
    yield node
    node.thread.stop()


class RefusedChannel:
    """No request is expected."""

    def request(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        raise AssertionError(f"{operation} {body}")


def test_the_clock_begins_with_real_time_and_moves_by_the_amount(node: ClockedNode) -> None:
    began = node.clock.now

    result = node.clock.advance(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)

    passed = timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)
    assert result.now == node.clock.now == began + passed
    assert began.tzinfo is UTC
    assert node.clock.now_ms == round((began + passed).timestamp() * 1000)


@pytest.mark.parametrize(
    "amounts", [{}, {"seconds": 0}, {"minutes": -1}, {"hours": 1, "minutes": -60}]
)
def test_the_clock_only_moves_forward(amounts: dict[str, int]) -> None:
    clock = NodeClock(RefusedChannel())

    with pytest.raises(ValueError, match=r"the clock only moves forward.*advance\(minutes=5\)"):
        clock.advance(**amounts)


# Real clients


def poll_until(consumer: kohort.Consumer, is_reached: Callable[[], bool], what: str) -> None:
    def poll() -> bool:
        consumer.poll(timeout_ms=20)
        return is_reached()

    wait_until(poll, 20, what)


def test_a_kohort_consumer_that_is_evicted_joins_again(node: ClockedNode) -> None:
    assigned: list[object] = []

    class Listener(kohort.ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Any) -> None:
            assigned.append(partitions)

    with kohort.Consumer(
        bootstrap_servers=node.bootstrap_servers,
        group_id="g",
        session_timeout_ms=SESSION_S * 1_000,
        heartbeat_interval_ms=100,
    ) as consumer:
        consumer.subscribe(["t"], listener=Listener())
        poll_until(consumer, lambda: len(assigned) == 1, "an assignment")

        result = node.clock.advance(seconds=SESSION_S + 1)

        assert [(each.kind, each.group) for each in result.timers] == [("session", "g")]
        poll_until(consumer, lambda: len(assigned) == 2, "another assignment")


def test_librdkafka_joins_again_after_it_was_evicted(node: ClockedNode) -> None:
    assigned: list[object] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap_servers})
    producer.produce("t", b"first")
    assert producer.flush(20) == 0
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": node.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_S * 1_000,
            "heartbeat.interval.ms": 100,
        }
    )
    consumer.subscribe(["t"], on_assign=lambda _, partitions: assigned.append(partitions))

    def poll_for(value: bytes) -> None:
        def poll() -> bool:
            message = consumer.poll(0.05)
            return message is not None and not message.error() and message.value() == value

        wait_until(poll, 20, f"the record {value!r}")

    poll_for(b"first")
    evicted = node.clock.advance(seconds=SESSION_S + 1)
    producer.produce("t", b"second")
    assert producer.flush(20) == 0
    poll_for(b"second")
    wait_until(lambda: consumer.poll(0.05) is None and len(assigned) > 1, 20, "another assignment")
    consumer.close()

    assert [(each.kind, each.group) for each in evicted.timers] == [("session", "g")]
