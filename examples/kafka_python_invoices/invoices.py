"""Writes an invoice for every order, from one topic to another, at least once.

The offsets of a batch are committed when the broker has acknowledged all its invoices. An order
that cannot be read goes to a dead-letter topic, so that it does not block the partition.
"""

import json
import logging
import os
import signal
import threading
from dataclasses import dataclass
from types import FrameType

from kafka import KafkaConsumer, KafkaProducer
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import KafkaConnectionError, KafkaError
from kafka.producer.future import FutureRecordMetadata

LOG = logging.getLogger("invoices")

ACKNOWLEDGED_WITHIN_S = 30
RETRY_AFTER_S = 0.5


@dataclass(frozen=True)
class Topics:
    orders: str = "orders"
    invoices: str = "invoices"
    dead_letters: str = "orders-dead-letters"


class InvoiceService:
    def __init__(self, topics: Topics, bootstrap_servers: str, **consumer_options: object) -> None:
        self._topics = topics
        self._stopped = threading.Event()
        self._producer = KafkaProducer(bootstrap_servers=bootstrap_servers)
        self._consumer = KafkaConsumer(
            topics.orders,
            bootstrap_servers=bootstrap_servers,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **consumer_options,
        )
        # Load the partitions of the topic. If the leader of a group joins without them, the group
        # rebalances a second time. kafka-python 3.0 loses its new assignment if a poll ends then.
        self._consumer.partitions_for_topic(topics.orders)

    def run(self) -> None:
        """Write invoices until `stop` is called. Raises KafkaError if one is refused."""
        try:
            while not self._stopped.is_set():
                orders = self._poll()
                if orders:
                    self._write(orders)
                    self._commit()
        finally:
            self._consumer.close()
            self._producer.close()

    def stop(self) -> None:
        self._stopped.set()

    def _poll(self) -> list[ConsumerRecord]:
        try:
            batches = self._consumer.poll(timeout_ms=500)
        except KafkaConnectionError as error:
            LOG.warning("the broker is not available: %s", error)
            self._stopped.wait(RETRY_AFTER_S)
            return []
        return [record for batch in batches.values() for record in batch]

    def _write(self, orders: list[ConsumerRecord]) -> None:
        sent = [self._send(order) for order in orders]
        for each in sent:
            each.get(timeout=ACKNOWLEDGED_WITHIN_S)

    def _send(self, order: ConsumerRecord) -> FutureRecordMetadata:
        try:
            invoice = make_invoice(order.value)
        except (ValueError, KeyError) as error:
            LOG.warning("order at %s-%s: %r", order.partition, order.offset, error)
            headers = [("error", type(error).__name__.encode())]
            return self._producer.send(
                self._topics.dead_letters, key=order.key, value=order.value, headers=headers
            )
        return self._producer.send(self._topics.invoices, key=order.key, value=invoice)

    def _commit(self) -> None:
        try:
            self._consumer.commit()
        except KafkaError as error:
            # The next commit includes these offsets. After a rebalance, the new owner of the
            # partition reads the orders again and repeats the invoices.
            LOG.warning("not committed: %r", error)


def make_invoice(order: bytes) -> bytes:
    fields = json.loads(order)
    total = fields["count"] * fields["price"]
    return json.dumps({"order": fields["id"], "total": total}).encode()


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    service = InvoiceService(Topics(), os.environ["BOOTSTRAP_SERVERS"], group_id="invoices")

    def stop(_signal: int, _frame: FrameType | None) -> None:
        service.stop()

    signal.signal(signal.SIGTERM, stop)
    service.run()


if __name__ == "__main__":
    main()
