"""The app has fixed names of topics and groups, so every test has a broker of its own."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from faststream.kafka import KafkaBroker
from shipping import LocalCarrier, Order, make_app

from kohort.testing import Namespace

pytestmark = [pytest.mark.anyio, pytest.mark.kohort(fresh=True)]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def topics(kohort_cluster: Namespace) -> None:
    kohort_cluster.create_topic("orders", partitions=2)
    kohort_cluster.create_topic("shipments")


class UnreliableCarrier(LocalCarrier):
    """Fails at the first attempt."""

    def __init__(self) -> None:
        self.attempts = 0

    async def ship(self, order: Order) -> str:
        self.attempts += 1
        if self.attempts == 1:
            raise ConnectionError("the carrier is not available")
        return await super().ship(order)


@asynccontextmanager
async def running(cluster: Namespace, carrier: LocalCarrier) -> AsyncIterator[None]:
    app = make_app(KafkaBroker(cluster.bootstrap_servers), carrier)
    await app.start()
    try:
        yield
    finally:
        await app.stop()


def shipped(cluster: Namespace) -> list[int]:
    return sorted(json.loads(each.value)["order_id"] for each in cluster.records("shipments"))


def order(number: int) -> str:
    return Order(id=number, address="Station Road 1").model_dump_json()


async def test_every_order_is_shipped(kohort_cluster: Namespace) -> None:
    kohort_cluster.produce("orders", [order(1), order(2), order(3)])

    async with running(kohort_cluster, LocalCarrier()):
        await asyncio.to_thread(kohort_cluster.wait_for, "shipping", lag=0)

    assert shipped(kohort_cluster) == [1, 2, 3]


async def test_an_order_is_not_lost_if_the_carrier_fails(kohort_cluster: Namespace) -> None:
    kohort_cluster.produce("orders", [order(1)])

    carrier = UnreliableCarrier()
    async with running(kohort_cluster, carrier):
        await asyncio.to_thread(kohort_cluster.wait_for, "shipping", lag=0)

    assert carrier.attempts == 2
    assert shipped(kohort_cluster) == [1]


async def test_an_order_is_not_lost_if_its_shipment_is_refused(kohort_cluster: Namespace) -> None:
    kohort_cluster.produce("orders", [order(1)])

    refused = kohort_cluster.faults.error(
        "Produce", "MESSAGE_TOO_LARGE", topic="shipments", times=1
    )
    async with running(kohort_cluster, LocalCarrier()):
        await asyncio.to_thread(kohort_cluster.wait_for, "shipping", lag=0)

    assert refused.count == 1
    assert shipped(kohort_cluster) == [1]
