"""The service runs in a thread of the test, beside the broker."""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from invoices import InvoiceService, Topics
from kafka.errors import MessageSizeTooLargeError

from kohort.testing import Namespace


class Deployment:
    def __init__(self, cluster: Namespace) -> None:
        self.cluster = cluster
        self.group = cluster.group("invoices")
        self.topics = Topics(
            orders=cluster.topic("orders", partitions=2),
            invoices=cluster.topic("invoices"),
            dead_letters=cluster.topic("dead-letters"),
        )

    @contextmanager
    def service(self) -> Iterator["Future[None]"]:
        """Run the service. An error that has stopped it is raised at the end of the block."""
        service = InvoiceService(
            self.topics,
            self.cluster.bootstrap_servers,
            group_id=self.group,
            # A member learns of a rebalance with its next heartbeat.
            heartbeat_interval_ms=100,
        )
        with ThreadPoolExecutor() as executor:
            running = executor.submit(service.run)
            try:
                yield running
            finally:
                service.stop()
                running.result(timeout=10)

    def order(self, *numbers: int) -> None:
        orders = [{"id": number, "count": 2, "price": 5} for number in numbers]
        self.cluster.produce(self.topics.orders, map(json.dumps, orders))

    def invoiced(self) -> list[int]:
        found = self.cluster.records(self.topics.invoices)
        return sorted(json.loads(record.value)["order"] for record in found)


@pytest.fixture
def deployment(kohort_cluster: Namespace) -> Deployment:
    return Deployment(kohort_cluster)


def test_every_order_has_an_invoice(deployment: Deployment) -> None:
    deployment.order(1, 2, 3)

    with deployment.service():
        deployment.cluster.wait_for(deployment.group, lag=0)

    assert deployment.invoiced() == [1, 2, 3]


def test_an_order_that_cannot_be_read_does_not_block_the_next_one(deployment: Deployment) -> None:
    deployment.cluster.produce(deployment.topics.orders, "{", partition=0)
    deployment.cluster.produce(
        deployment.topics.orders, '{"id": 1, "count": 1, "price": 1}', partition=0
    )

    with deployment.service():
        deployment.cluster.wait_for(deployment.group, lag=0)

    assert deployment.invoiced() == [1]
    (dead,) = deployment.cluster.records(deployment.topics.dead_letters)
    assert dead.value == b"{"
    assert dict(dead.headers)["error"] == b"JSONDecodeError"


def test_an_order_is_not_committed_if_its_invoice_is_refused(deployment: Deployment) -> None:
    deployment.order(1, 2, 3)
    faults = deployment.cluster.faults
    with (
        pytest.raises(MessageSizeTooLargeError),
        faults.error("Produce", "MESSAGE_TOO_LARGE", topic=deployment.topics.invoices),
        deployment.service() as running,
    ):
        running.result(timeout=10)

    with deployment.service():
        deployment.cluster.wait_for(deployment.group, lag=0)

    assert deployment.invoiced() == [1, 2, 3]


@pytest.mark.kohort(fresh=True)
def test_the_service_continues_when_the_broker_is_restarted(deployment: Deployment) -> None:
    with deployment.service():
        deployment.order(1)
        deployment.cluster.wait_for(deployment.group, lag=0)
        deployment.cluster.restart()
        deployment.order(2)
        deployment.cluster.wait_for(deployment.group, members=1, stable=True, lag=0)

    assert deployment.invoiced() == [1, 2]
