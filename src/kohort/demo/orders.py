"""The content and the rate of orders: pure functions of a seed, a number and a time."""

import json
from math import cos, pi
from random import Random
from typing import Final

from kohort.types import Millis, value

SCHEMA: Final = (
    "id BIGINT NOT NULL, customer STRING NOT NULL, country STRING, item STRING, quantity INT, "
    "amount DECIMAL(10, 2)"
)
"""Schema of an order as Spark DDL."""

_PER_SECOND: Final = 60
_AMPLITUDE: Final = 0.5
_PERIOD_MS: Final = 40_000
"""The rate of orders is a sine wave with this period."""

_CUSTOMERS: Final = 500
_COUNTRIES: Final = ("DE", "NG", "EC", "JP", "CA")
_PRICES: Final = {"kettle": 3490, "lamp": 5900, "rug": 12900, "mug": 990, "chair": 8450}
"""In cents."""

_INVALID_EVERY: Final = 500


@value
class Order:
    key: bytes
    value: bytes


def make_order(seed: int, number: int) -> Order:
    """Orders of one customer have the same key. Some values are invalid JSON."""
    random = Random(f"{seed}/order/{number}")  # noqa: S311  # reproducible on purpose
    customer = f"customer-{random.randrange(_CUSTOMERS):03d}"
    item = random.choice(sorted(_PRICES))
    quantity = random.randint(1, 4)
    cents = _PRICES[item] * quantity
    fields = {
        "id": number,
        "customer": customer,
        "country": random.choice(_COUNTRIES),
        "item": item,
        "quantity": quantity,
        "amount": cents / 100,
    }
    text = json.dumps(fields)
    if is_invalid(number):
        text = text[: len(text) // 2]
    return Order(key=customer.encode(), value=text.encode())


def is_invalid(number: int) -> bool:
    """Whether the value of this order is truncated and so no JSON."""
    return number % _INVALID_EVERY == _INVALID_EVERY - 1


def order_count(at_ms: Millis) -> int:
    """Number of orders that are placed from the start to this time."""
    wave = _AMPLITUDE * _PERIOD_MS / (2 * pi) * (1 - cos(2 * pi * at_ms / _PERIOD_MS))
    return int(_PER_SECOND * (at_ms + wave) / 1_000)
