"""Orders are a function of seed and number, and valid JSON except the truncated ones."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kohort.demo.orders import is_invalid, make_order, order_count
from kohort.types import Millis

SEEDS = st.integers(0, 1_000)
NUMBERS = st.integers(0, 100_000)


@given(SEEDS, NUMBERS)
def test_same_seed_and_number_give_the_same_order(seed: int, number: int) -> None:
    assert make_order(seed, number) == make_order(seed, number)


@given(SEEDS, NUMBERS.filter(lambda number: not is_invalid(number)))
def test_valid_order_is_one_json_object(seed: int, number: int) -> None:
    order = make_order(seed, number)

    fields = json.loads(order.value)

    assert fields["id"] == number
    assert fields["customer"].encode() == order.key
    assert set(fields) == {"id", "customer", "country", "item", "quantity", "amount"}


def test_few_orders_are_invalid_json() -> None:
    invalid = [number for number in range(5_000) if is_invalid(number)]

    assert 0 < len(invalid) <= 50
    for number in invalid:
        try:
            json.loads(make_order(1, number).value)
        except ValueError:
            continue
        raise AssertionError(f"order {number} is valid JSON")


@given(st.integers(0, 3_600_000), st.integers(0, 10_000))
def test_order_count_never_decreases(at_ms: int, later_ms: int) -> None:
    assert order_count(Millis(0)) == 0
    assert order_count(Millis(at_ms)) <= order_count(Millis(at_ms + later_ms))
