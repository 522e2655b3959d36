"""Produces the orders of the shop on its own thread."""

import threading
import time
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from kohort.admin.cluster_connection import open_cluster
from kohort.admin.topics import create_topic
from kohort.demo.orders import make_order, order_count
from kohort.demo.services import ORDERS, PARTITIONS
from kohort.demo.threads import OnFailure, start_thread
from kohort.types import Millis, Topic

_INTERVAL_S: Final = 0.1
_FLUSH_S: Final = 5.0
_ADMIN_TIMEOUT_MS: Final = Millis(15_000)
_BURST_MAX: Final = 500
"""Limits the burst after the machine or this process was suspended."""
_NO_LOG: Final = {"log_level": 0}
"""Errors are raised; librdkafka's log would disturb the terminal."""


class OrderNotDelivered(Exception):
    """An order was not acknowledged by the node."""


def create_orders_topic(bootstrap_servers: str) -> None:
    with open_cluster(bootstrap_servers, timeout_ms=_ADMIN_TIMEOUT_MS) as cluster:
        create_topic(cluster, Topic(ORDERS), partitions=PARTITIONS, replication=1)


class OrderProducer:
    def __init__(self, bootstrap_servers: str, seed: int, on_failure: OnFailure) -> None:
        self._seed = seed
        self._closing = threading.Event()
        self._delivered = 0
        self._failure: KafkaError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "client.id": "shop-front",
                "linger.ms": 50,
                "message.timeout.ms": 30_000,
                **_NO_LOG,
            }
        )
        self._thread = start_thread("order producer", self._run, on_failure)

    @property
    def delivered(self) -> int:
        """Number of orders that the node has acknowledged."""
        return self._delivered

    def close(self) -> None:
        """Produce no more orders, and flush those in flight if the node still answers."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        started_at = time.monotonic()
        number = 0
        while not self._closing.wait(_INTERVAL_S):
            due = order_count(Millis(int((time.monotonic() - started_at) * 1_000)))
            for _ in range(min(due - number, _BURST_MAX)):
                order = make_order(self._seed, number)
                self._producer.produce(
                    ORDERS, key=order.key, value=order.value, on_delivery=self._on_delivery
                )
                number += 1
            self._producer.poll(0)
            self._check()
        if self._producer.flush(_FLUSH_S):
            raise OrderNotDelivered("the last orders were not acknowledged")
        self._check()

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._delivered += 1
        else:
            self._failure = error

    def _check(self) -> None:
        if self._failure is not None:
            raise OrderNotDelivered(f"an order was not acknowledged: {self._failure.str()}")
