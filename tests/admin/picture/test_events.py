"""Events of a node as values, and what is no event."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.picture.events import BadEvent, PartJoiner, read_ended, read_event, read_started
from kohort.admin.picture.picture import Picture
from tests.admin.picture.folding import NOW, at, ended, started

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_rebalance_that_ended_is_told_in_full() -> None:
    event = ended(3, {"a": ((0, 1), (0,)), "b": ((), (1,))})

    told = read_ended(event)

    assert (told.generation_before, told.generation, told.is_exact) == (2, 3, True)
    assert (told.started_ms, told.joined_ms, told.ended_ms) == (NOW - 500, NOW - 20, NOW)
    assert told.key == str(NOW - 500)
    first, second = told.participants
    assert (first.had, first.got) == ((at(0), at(1)), (at(0),))
    assert (second.had, second.got) == ((), (at(1),))


def test_an_event_in_parts_is_whole_once_its_last_part_is_there() -> None:
    event = ended(3, {name: ((), (number,)) for number, name in enumerate("abc")})
    people = event["participants"]
    parts = [
        {**event, "part": number, "parts": 3, "participants": people[number - 1 : number]}
        for number in (1, 2, 3)
    ]
    joiner = PartJoiner()

    first, second, whole = (joiner.take(each) for each in parts)

    assert first is None
    assert second is None
    assert whole is not None
    assert whole["participants"] == people


def test_a_part_without_the_ones_before_it_is_dropped() -> None:
    joiner = PartJoiner()

    assert joiner.take({**started(1, "a"), "part": 2, "parts": 2}) is None
    assert joiner.take(started(1, "a")) == started(1, "a")


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'{"event": 3}', b'{"event": "x"}'])
def test_what_is_no_event_is_refused(value: bytes | None) -> None:
    with pytest.raises(BadEvent):
        read_event(value)


@given(st.dictionaries(st.sampled_from(sorted(ended(1, {"a": ((), ())}))), JSON))
def test_an_event_whose_fields_make_no_sense_is_refused_and_nothing_else(
    fields: dict[str, Any],
) -> None:
    event = {**ended(1, {"a": ((), (0,))}), **fields}

    for reader in (read_ended, read_started):
        with suppress(BadEvent):
            reader(event)


@given(JSON | st.builds(lambda fields: {**ended(1, {"a": ((), (0,))}), **fields}, st.just({})))
def test_whatever_is_in_the_topic_the_picture_goes_on(told: Any) -> None:
    picture = Picture()

    picture.fold_event(json.dumps(told).encode())

    assert picture.has_events
