"""A node on a thread with a topic, and consumers that poll on threads of their own."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka

import kohort
from kohort.admin import topics
from kohort.admin.cluster_connection import open_cluster
from kohort.node.broker_thread import BrokerThread
from kohort.node.config import BrokerConfig
from kohort.types import Topic
from tests.cli.cluster_setup import SETTINGS

PARTITIONS = 4


class WaitNode:
    """A broker with its control operations."""

    def __init__(self, data: Path, **settings: object) -> None:
        texts = {name: str(each).lower() for name, each in {**SETTINGS, **settings}.items()}
        self.broker = BrokerThread(BrokerConfig(texts), data)
        self.bootstrap_servers = str(self.broker.start("127.0.0.1", 0))
        with open_cluster(self.bootstrap_servers) as cluster:
            topics.create_topic(cluster, Topic("orders"), partitions=PARTITIONS)

    def stop(self) -> None:
        self.broker.stop()


def consume(
    bootstrap_servers: str, client_id: str, stopping: threading.Event, assignor: str = "range"
) -> None:
    """Poll with kohort.Consumer, and commit often."""
    consumer = kohort.Consumer(
        bootstrap_servers=bootstrap_servers,
        group_id="billing",
        client_id=client_id,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=50,
        heartbeat_interval_ms=50,
        partition_assignment_strategy=assignor,
    )
    try:
        consumer.subscribe(["orders"])
        while not stopping.is_set():
            consumer.poll(20)
    finally:
        # If the node has ended, no broker answers the commit and the leave request.
        consumer.close(timeout_ms=1000)


def consume_with_librdkafka(
    bootstrap_servers: str, client_id: str, stopping: threading.Event, assignor: str = "range"
) -> None:
    """Poll with confluent-kafka, and commit often."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "billing",
            "client.id": client_id,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 50,
            "heartbeat.interval.ms": 50,
            "partition.assignment.strategy": assignor,
        }
    )
    consumer.subscribe(["orders"])
    while not stopping.is_set():
        consumer.poll(0.02)
    consumer.close()


@contextmanager
def consumers(
    bootstrap_servers: str,
    *client_ids: str,
    run: Callable[[str, str, threading.Event, str], None] = consume,
    assignor: str = "range",
) -> Iterator[None]:
    """Members of the group billing, which leave it at the end."""
    stopping = threading.Event()
    threads = [
        threading.Thread(target=run, args=(bootstrap_servers, client_id, stopping, assignor))
        for client_id in client_ids
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
