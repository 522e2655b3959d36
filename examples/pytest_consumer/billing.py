"""A service that sums the amounts of orders per customer, and commits after every batch."""

import json
from collections import Counter

from confluent_kafka import Consumer


class Billing:
    def __init__(self, bootstrap_servers: str, group_id: str = "billing") -> None:
        self.totals: Counter[str] = Counter()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": group_id,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe(["orders"])

    def run_once(self, timeout: float = 1.0) -> int:
        """Handle one batch of orders; return how many there were."""
        messages = [each for each in self._consumer.consume(100, timeout) if not each.error()]
        for message in messages:
            order = json.loads(message.value())
            self.totals[order["customer"]] += order["amount"]
        if messages:
            self._consumer.commit(asynchronous=False)
        return len(messages)

    def close(self) -> None:
        self._consumer.close()
