"""Tests of the billing service against a real broker in this process: no JVM, no Docker."""

import json
import time
from collections.abc import Iterator

import pytest
from billing import Billing
from confluent_kafka import Producer

import kohort


@pytest.fixture
def node() -> Iterator[kohort.Node]:
    # Kafka waits 3 s for more members before a group's first rebalance; a test need not wait.
    with kohort.Node() as node:
        yield node


def place_orders(node: kohort.Node, *orders: tuple[str, int]) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap_servers})
    for customer, amount in orders:
        order = {"customer": customer, "amount": amount}
        producer.produce("orders", key=customer, value=json.dumps(order))
    producer.flush(10)


def run_until(billing: Billing, count: int) -> None:
    deadline = time.monotonic() + 30
    handled = 0
    while handled < count:
        assert time.monotonic() < deadline, f"only {handled} of {count} orders were handled"
        handled += billing.run_once()


def test_amounts_are_summed_per_customer(node: kohort.Node) -> None:
    place_orders(node, ("ada", 3), ("bob", 5), ("ada", 4))
    billing = Billing(node.bootstrap_servers)

    run_until(billing, 3)
    billing.close()

    assert billing.totals == {"ada": 7, "bob": 5}


def test_a_restarted_service_continues_after_its_last_commit(node: kohort.Node) -> None:
    place_orders(node, ("ada", 3))
    first = Billing(node.bootstrap_servers)
    run_until(first, 1)
    first.close()

    place_orders(node, ("ada", 4))
    second = Billing(node.bootstrap_servers)
    run_until(second, 1)
    second.close()

    assert second.totals == {"ada": 4}
