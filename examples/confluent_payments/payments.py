"""Pays every order once: reads orders from Kafka, stores payments in SQLite, then commits.

An offset is committed only when its payment is stored. If the service crashes in between, the order
is read again. The order id is the key of the payment, so that the second write changes nothing.
"""

import json
import logging
import os
import signal
import sqlite3
from collections.abc import Sequence
from types import FrameType

from confluent_kafka import Consumer, KafkaException, Message

LOG = logging.getLogger("payments")


class PaymentStore:
    """Payments by order id."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, timeout=0.1)
        with self._database:
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS payments (order_id TEXT PRIMARY KEY, amount INTEGER)"
            )

    def add(self, orders: Sequence[dict[str, object]]) -> None:
        """Store payments in one transaction. A payment that exists stays as it is."""
        with self._database:
            self._database.executemany(
                "INSERT INTO payments VALUES (:id, :amount) ON CONFLICT DO NOTHING", orders
            )

    def close(self) -> None:
        self._database.close()


class PaymentService:
    def __init__(self, consumer: Consumer, store: PaymentStore) -> None:
        self._consumer = consumer
        self._store = store
        self._is_stopped = False

    def run(self) -> None:
        """Pay orders until `stop` is called."""
        while not self._is_stopped:
            orders = self._read(self._consumer.consume(100, timeout=0.1))
            if orders:
                self._store.add(orders)
                self._commit()

    def stop(self) -> None:
        self._is_stopped = True

    def _read(self, messages: Sequence[Message]) -> list[dict[str, object]]:
        orders = []
        for message in messages:
            if error := message.error():
                # librdkafka retries by itself, unless the error is fatal.
                if error.fatal():
                    raise KafkaException(error)
                LOG.warning("%s", error)
            else:
                orders.append(json.loads(message.value() or b"null"))
        return orders

    def _commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            # The next commit includes these offsets. After a rebalance, the new owner of the
            # partition reads the orders again.
            LOG.warning("not committed: %s", error)


def main() -> None:
    """The environment has the options of the consumer, as JSON, the topic and the database."""
    logging.basicConfig(level=logging.INFO)
    options = json.loads(os.environ["KAFKA_OPTIONS"])
    consumer = Consumer({"auto.offset.reset": "earliest", **options, "enable.auto.commit": False})
    store = PaymentStore(os.environ["DATABASE"])
    consumer.subscribe([os.environ["TOPIC"]])
    service = PaymentService(consumer, store)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        service.stop()

    signal.signal(signal.SIGTERM, stop)
    try:
        service.run()
    finally:
        consumer.close()
        store.close()


if __name__ == "__main__":
    main()
