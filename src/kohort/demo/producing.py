"""The shop's front: places orders as fast as `shop` says, on a thread of its own."""

import threading
import time
from typing import Final

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kohort.demo.cast import ORDERS, PARTITIONS
from kohort.demo.parts import OnEnd, start_part
from kohort.demo.shop import order, orders_until
from kohort.types import Millis

_LOOK_S: Final = 0.1
_FLUSH_S: Final = 5.0
_ANSWER_S: Final = 15.0
_AT_ONCE_MAX: Final = 500
"""After a pause, the machine's or ours, what is due is not sent in one go."""
_SILENT: Final = {"log_level": 0}
"""What goes wrong is told by errors, not on the terminal."""


class NotPlaced(Exception):
    """An order could not be placed."""


def make_topic(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, **_SILENT})
    (made,) = admin.create_topics([NewTopic(ORDERS, PARTITIONS, 1)]).values()
    made.result(_ANSWER_S)


class Front:
    def __init__(self, bootstrap_servers: str, seed: int, on_end: OnEnd) -> None:
        self._seed = seed
        self._closing = threading.Event()
        self._placed = 0
        self._failure: KafkaError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "client.id": "shop-front",
                "linger.ms": 50,
                "message.timeout.ms": 30_000,
                **_SILENT,
            }
        )
        self._thread = start_part("shop front", self._place, on_end)

    @property
    def placed(self) -> int:
        """Orders that the node has acknowledged."""
        return self._placed

    def close(self) -> None:
        """No order is placed any more; those on their way arrive, if the node still answers."""
        self._closing.set()
        self._thread.join()

    def _place(self) -> None:
        began_at = time.monotonic()
        number = 0
        while not self._closing.wait(_LOOK_S):
            due = orders_until(Millis(int((time.monotonic() - began_at) * 1_000)))
            for _ in range(min(due - number, _AT_ONCE_MAX)):
                placed = order(self._seed, number)
                self._producer.produce(
                    ORDERS, key=placed.key, value=placed.value, on_delivery=self._note
                )
                number += 1
            self._producer.poll(0)
            self._check()
        if self._producer.flush(_FLUSH_S):
            raise NotPlaced("the last orders were not acknowledged")
        self._check()

    def _note(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._placed += 1
        else:
            self._failure = error

    def _check(self) -> None:
        if self._failure is not None:
            raise NotPlaced(f"an order was not acknowledged: {self._failure.str()}")
