"""librdkafka survives kills of the node without lost or duplicate records."""

import os
import socket
import threading
import time
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, KafkaException, Message, Producer

from kohort.types import Partition
from tests.node.kill_loop import read_all
from tests.node.kill_workers import TOPIC
from tests.node.raw_client import RawClient
from tests.node.served_node import ServedNode
from tests.wait import pause, wait_until

KILLS = 4
RECORDS = 4000

RETRY_OPTIONS = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "error_cb": lambda _: None,
    "log_level": 0,
}


class Committing(threading.Thread):
    """A consumer that commits what it has read, and remembers the acknowledged commits."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(name="committing", daemon=True)
        self._servers = bootstrap_servers
        self.is_over = threading.Event()
        self.values: list[bytes] = []
        self.committed: list[int] = []

    def run(self) -> None:
        consumer = Consumer(
            {
                **RETRY_OPTIONS,
                "bootstrap.servers": self._servers,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
            }
        )
        consumer.subscribe([TOPIC])
        while not self.is_over.is_set():
            messages = [each for each in consumer.consume(200, 0.1) if each.error() is None]
            self.values += [each.value() or b"" for each in messages]
            if messages:
                self._commit(consumer, messages[-1])
        consumer.close()

    def _commit(self, consumer: Consumer, message: Message) -> None:
        try:
            (told,) = consumer.commit(message=message, asynchronous=False) or []
        except KafkaException:
            return
        if told.error is None:
            self.committed.append(told.offset)


def test_librdkafka_has_no_lost_or_duplicate_records(tmp_path: Path) -> None:
    seed = int(os.environ.get("KOHORT_SEED", time.time_ns() % 2**32))
    print(f"KOHORT_SEED={seed}")
    random = Random(seed)  # noqa: S311  # nothing here is secret
    port = free_port()
    node = ServedNode(tmp_path, port=port)
    delivered: dict[int, bytes] = {}
    consuming = Committing(node.bootstrap_servers)
    producer = Producer(
        {
            **RETRY_OPTIONS,
            "bootstrap.servers": node.bootstrap_servers,
            "enable.idempotence": True,
            "batch.num.messages": 20,
            "linger.ms": 1,
        }
    )

    def note(error: object, message: Message) -> None:
        assert error is None, error
        offset, value = message.offset(), message.value()
        assert offset is not None
        assert value is not None
        delivered[offset] = value

    consuming.start()
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%d" % number, partition=0, on_delivery=note)
        if number % (RECORDS // (KILLS + 1)) == RECORDS // (KILLS + 1) - 1 and number < RECORDS - 1:
            producer.poll(random.uniform(0, 0.3))
            node.kill()
            pause(random.uniform(0, 0.2))
            node = ServedNode(tmp_path, port=port)
    assert producer.flush(60) == 0
    wait_until(lambda: len(set(consuming.values)) == RECORDS, 30, "all records seen")
    wait_until(lambda: consuming.committed[-1:] == [RECORDS], 10, "all records committed")
    consuming.is_over.set()
    consuming.join()

    with node, RawClient(node.address) as client:
        kept = read_all(client, Partition(0), 0)
    assert [value for _, value in kept] == [b"%d" % number for number in range(RECORDS)]
    assert dict(kept) == delivered
    assert consuming.committed == sorted(consuming.committed)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
