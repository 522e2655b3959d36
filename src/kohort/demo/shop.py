"""What customers order, and how fast: pure functions of a seed, a number and a time."""

import json
from math import cos, pi
from random import Random
from typing import Final

from kohort.types import Millis, value

SCHEMA: Final = (
    "id BIGINT NOT NULL, customer STRING NOT NULL, country STRING, item STRING, quantity INT, "
    "amount DECIMAL(10, 2)"
)
"""Of an order, in Spark's words."""

_PER_SECOND: Final = 60
_SWING: Final = 0.5
_PERIOD_MS: Final = 40_000
"""Custom comes in waves."""

_CUSTOMERS: Final = 500
_COUNTRIES: Final = ("DE", "NG", "EC", "JP", "CA")
_ITEMS: Final = {"kettle": 3490, "lamp": 5900, "rug": 12900, "mug": 990, "chair": 8450}
"""With the price in cents."""

_GARBLED_EVERY: Final = 500


@value
class Order:
    key: bytes
    value: bytes


def order(seed: int, number: int) -> Order:
    """Orders of a customer have the same key. Some are garbled, as in real shops."""
    chance = Random(f"{seed}/order/{number}")  # noqa: S311  # as the schedule's
    customer = f"customer-{chance.randrange(_CUSTOMERS):03d}"
    item = chance.choice(sorted(_ITEMS))
    quantity = chance.randint(1, 4)
    cents = _ITEMS[item] * quantity
    fields = {
        "id": number,
        "customer": customer,
        "country": chance.choice(_COUNTRIES),
        "item": item,
        "quantity": quantity,
        "amount": cents / 100,
    }
    text = json.dumps(fields)
    if is_garbled(number):
        text = text[: len(text) // 2]
    return Order(key=customer.encode(), value=text.encode())


def is_garbled(number: int) -> bool:
    """Whether that order's value is no JSON."""
    return number % _GARBLED_EVERY == _GARBLED_EVERY - 1


def orders_until(at_ms: Millis) -> int:
    """How many have been placed since the beginning."""
    wave = _SWING * _PERIOD_MS / (2 * pi) * (1 - cos(2 * pi * at_ms / _PERIOD_MS))
    return int(_PER_SECOND * (at_ms + wave) / 1_000)
