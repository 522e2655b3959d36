"""The shop's orders: drawn from a seed, and all of one kind but for the garbled ones."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kohort.demo.shop import is_garbled, order, orders_until
from kohort.types import Millis

SEEDS = st.integers(0, 1_000)
NUMBERS = st.integers(0, 100_000)


@given(SEEDS, NUMBERS)
def test_the_same_seed_and_number_give_the_same_order(seed: int, number: int) -> None:
    assert order(seed, number) == order(seed, number)


@given(SEEDS, NUMBERS.filter(lambda number: not is_garbled(number)))
def test_an_order_is_one_json_object(seed: int, number: int) -> None:
    made = order(seed, number)

    fields = json.loads(made.value)

    assert fields["id"] == number
    assert fields["customer"].encode() == made.key
    assert set(fields) == {"id", "customer", "country", "item", "quantity", "amount"}


def test_a_few_orders_are_garbled() -> None:
    garbled = [number for number in range(5_000) if is_garbled(number)]

    assert 0 < len(garbled) <= 50
    for number in garbled:
        try:
            json.loads(order(1, number).value)
        except ValueError:
            continue
        raise AssertionError(f"order {number} is none, and can be read")


@given(st.integers(0, 3_600_000), st.integers(0, 10_000))
def test_orders_only_grow_in_number(at_ms: int, later_ms: int) -> None:
    assert orders_until(Millis(0)) == 0
    assert orders_until(Millis(at_ms)) <= orders_until(Millis(at_ms + later_ms))
