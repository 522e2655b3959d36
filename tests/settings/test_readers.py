"""Readers of option values: what they accept, and why they refuse the rest."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest

from kohort.settings.readers import (
    BadValue,
    did_you_mean,
    read_address,
    read_addresses,
    read_choice,
    read_decimal,
    read_flag,
    read_function,
    read_list,
    read_number,
    read_pairs,
    read_text,
    read_word,
)


class Mode(StrEnum):
    FAST = "fast"
    SAFE = "safe"


@pytest.mark.parametrize(
    ("read", "given", "expected"),
    [
        (read_number, 5, 5),
        (read_number, " -5 ", -5),
        (read_decimal, "0.5", 0.5),
        (read_flag, " True ", True),
        (read_flag, False, False),
        (read_text, None, None),
        (read_text, "a", "a"),
        (read_function, None, None),
        (read_function, len, len),
        (lambda text: read_choice(text, Mode), "fast", Mode.FAST),
        (lambda text: read_word(text, {"off": 0, "none": 0}, ["off"]), "None", 0),
        (read_list, " a, b,,c ", ("a", "b", "c")),
        (read_address, "[::1]:9092", ("::1", 9092)),
        (read_address, "PLAINTEXT://host:9092", ("host", 9092)),
        (read_addresses, "a:1, b:2", (("a", 1), ("b", 2))),
        (read_addresses, ["a:1"], (("a", 1),)),
    ],
)
def test_a_value_is_read_into_its_type(
    read: Callable[[Any], Any], given: object, expected: object
) -> None:
    assert read(given) == expected


@pytest.mark.parametrize(
    ("read", "given", "reason"),
    [
        (read_number, "soon", "not a whole number"),
        (read_number, "", "not a whole number"),
        (read_number, "1_000", "not a whole number"),
        (read_number, "\u0663", "not a whole number"),
        (read_number, True, "not a whole number"),
        (read_number, 1.5, "not a whole number"),
        (lambda given: read_number(given, 1), 0, "less than 1"),
        (lambda given: read_number(given, 1, 9), 10, "not between 1 and 9"),
        (read_decimal, "half", "not a number"),
        (lambda given: read_decimal(given, 0, 1), "nan", "not between 0 and 1"),
        (read_flag, "perhaps", "neither true nor false"),
        (read_flag, 1, "neither true nor false"),
        (read_text, "", "empty"),
        (read_text, 7, "not text"),
        (read_text, "a" * 40_000, "too long"),
        (read_function, 7, "not callable"),
        (lambda given: read_choice(given, Mode), "Fast", "none of fast, safe"),
        (lambda given: read_word(given, {"off": 0}, ["off"]), 7, "none of off"),
        (read_address, "host", "'host' is not HOST:PORT"),
        (read_address, "host:0", "is not HOST:PORT"),
        (read_address, "host:65536", "is not HOST:PORT"),
        (read_address, ":1", "is not HOST:PORT"),
        (read_address, None, "is not HOST:PORT"),
        (read_addresses, 7, "not a list of addresses"),
        (read_addresses, [], "empty list of addresses"),
    ],
)
def test_a_bad_value_is_refused_with_the_reason(
    read: Callable[[Any], Any], given: object, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        read(given)


def test_a_port_of_zero_is_for_listeners() -> None:
    assert read_address("127.0.0.1:0", port_min=0) == ("127.0.0.1", 0)


def test_pairs_are_split_at_the_first_equals_sign() -> None:
    assert read_pairs(["a = b=c", "d="], "--set") == {"a": "b=c", "d": ""}
    assert read_pairs(["a=1", "a=2"], "--set", may_repeat=True) == {"a": "2"}


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        (["nonsense"], "--set 'nonsense' is not NAME=VALUE"),
        (["=1"], "is not NAME=VALUE"),
        (["a=1", "a=2"], "--set a is given twice"),
    ],
)
def test_invalid_or_repeated_pairs_are_rejected(pairs: list[str], reason: str) -> None:
    with pytest.raises(BadValue, match=reason):
        read_pairs(pairs, "--set")


def test_a_similar_name_is_proposed_if_there_is_one() -> None:
    assert did_you_mean("sesion", ["session", "group"]) == "; did you mean session?"
    assert did_you_mean("xyz", ["session", "group"]) == ""
