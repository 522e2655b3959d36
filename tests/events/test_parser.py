"""The parser of `__kohort_events`: parts are joined, bad input is rejected, new fields are kept."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.events.parser import BadEvent, EventReader, parse_event
from kohort.events.schema import EVENTS, OffsetsExpiredEvent, RebalanceEndedEvent
from kohort.types import Partition, Topic, TopicPartition
from tests.admin.group_monitor.cluster_records import NOW, at, rebalance_ended, rebalance_started

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def encoded(event: object) -> bytes:
    return json.dumps(event).encode()


def parts_of(event: dict[str, Any], name: str, count: int) -> list[bytes]:
    """The event in parts, each with a share of one list."""
    items = event[name]
    return [
        encoded({**event, "part": number, "parts": count, name: items[number - 1 :: count]})
        for number in range(1, count + 1)
    ]


def ended_in_parts() -> tuple[dict[str, Any], list[bytes]]:
    event = rebalance_ended(3, {name: ((), (number,)) for number, name in enumerate("abc")})
    return event, parts_of(event, "participants", 3)


def test_a_rebalance_that_ended_has_all_its_fields() -> None:
    event = parse_event([encoded(rebalance_ended(3, {"a": ((1, 0), (0,)), "b": ((), (1,))}))])

    assert isinstance(event.details, RebalanceEndedEvent)
    assert (event.name, event.at, event.group_ids) == ("rebalance-ended", NOW, ("billing",))
    assert (event.details.generation_before, event.details.generation) == (2, 3)
    first, second = event.details.participants
    assert (first.had, first.got) == ((at(0), at(1)), (at(0),))
    assert (second.had, second.got) == ((), (at(1),))


def test_an_event_in_parts_is_complete_with_its_last_part() -> None:
    event, parts = ended_in_parts()
    reader = EventReader()

    first, second, whole = (reader.read(each) for each in parts)

    assert first is None
    assert second is None
    assert whole is not None
    assert whole.body == event
    assert whole == parse_event([encoded(event)]) == parse_event(parts)


def test_partitions_in_parts_are_joined_by_topic() -> None:
    event = {"event": "offsets-expired", "at": 1, "group_id": "g"}
    shares: list[dict[str, list[int]]] = [{"t": [0, 1]}, {"t": [2], "u": [0]}]
    parts = [
        encoded({**event, "part": number, "parts": 2, "partitions": share})
        for number, share in enumerate(shares, start=1)
    ]

    found = parse_event(parts)

    assert found.body == {**event, "partitions": {"t": [0, 1, 2], "u": [0]}}
    assert isinstance(found.details, OffsetsExpiredEvent)
    assert found.details.partitions == tuple(
        TopicPartition(Topic(topic), Partition(number))
        for topic, number in (("t", 0), ("t", 1), ("t", 2), ("u", 0))
    )


def test_part_without_the_earlier_parts_is_dropped() -> None:
    reader = EventReader()

    assert reader.read(encoded({**rebalance_started(1, "a"), "part": 2, "parts": 2})) is None
    assert reader.read(encoded(rebalance_started(1, "a"))) == parse_event(
        [encoded(rebalance_started(1, "a"))]
    )


def test_missing_and_swapped_parts_are_refused() -> None:
    _, (one, two, three) = ended_in_parts()

    with pytest.raises(BadEvent, match="found 2 of 3 parts"):
        parse_event([one, two])
    with pytest.raises(BadEvent, match="found 2 of 3 parts"):
        parse_event([two, three])
    with pytest.raises(BadEvent, match="part 2 belongs to another event"):
        parse_event([one, three, two])


def test_unknown_events_and_fields_are_kept_in_the_body() -> None:
    body = {"event": "comet-seen", "at": 1, "group_id": "g", "tail": {"long": True}}

    event = parse_event([encoded(body)])

    assert (event.name, event.group_id, event.details, event.body) == (
        "comet-seen",
        "g",
        None,
        body,
    )
    newer = parse_event([encoded({**rebalance_started(1, "a"), "mood": "calm"})])
    assert newer.details == parse_event([encoded(rebalance_started(1, "a"))]).details


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "without a value"),
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "a JSON list"),
        (b'{"at":1,"group_id":"g"}', "without a name"),
        (b'{"event":3,"at":1,"group_id":"g"}', "event is 3"),
        (b'{"event":"x","group_id":"g"}', "without a time"),
        (b'{"event":"x","at":1}', "without a group"),
        (b'{"event":"x","at":1,"group_ids":[]}', "without a group"),
        (b'{"event":"x","at":1,"group_ids":[7]}', "group_ids is 7"),
        (b'{"event":"x","at":"noon","group_id":"g"}', "at is 'noon'"),
        (b'{"event":"x","at":true,"group_id":"g"}', "at is True"),
        (b'{"event":"x","at":99999999999999999999,"group_id":"g"}', "at is 9999"),
        (b'{"event":"member-gone","at":1,"group_id":"g"}', "party is missing"),
        (b'{"event":"member-id-issued","at":1,"group_id":"g","party":"me"}', "party is 'me'"),
        (b'{"event":"group-deleted","at":1,"group_id":"g","is_expired":1}', "is_expired is 1"),
        (b'{"event":"offsets-expired","at":1,"group_id":"g","partitions":{"t":["0"]}}', "parti"),
        (b'{"event":"offsets-expired","at":1,"group_id":"g","partitions":{"t":0}}', "partitions"),
        (b'{"event":"offsets-expired","at":1,"group_id":"g","partitions":[]}', "partitions is"),
    ],
)
def test_what_is_not_an_event_is_refused_with_the_reason(value: bytes | None, reason: str) -> None:
    with pytest.raises(BadEvent, match=reason):
        parse_event([value])


@pytest.mark.parametrize(
    ("name", "found"),
    [("generation", 2**32), ("removals", [1]), ("participants", {}), ("trigger", None)],
)
def test_a_field_of_another_type_is_refused(name: str, found: object) -> None:
    with pytest.raises(BadEvent, match=f"^{name if found != [1] else 'removals'} is"):
        parse_event([encoded({**rebalance_ended(1, {}), name: found})])


@pytest.mark.parametrize(("part", "parts"), [(0, 2), (3, 2), ("1", 2), (1, None), (True, 2)])
def test_a_part_without_a_valid_number_is_refused(part: object, parts: object) -> None:
    with pytest.raises(BadEvent, match="part"):
        EventReader().read(encoded({**rebalance_started(1, "a"), "part": part, "parts": parts}))


@given(
    st.sampled_from(sorted(EVENTS)),
    st.dictionaries(
        st.sampled_from(
            [*sorted(rebalance_ended(1, {})), "group_ids", "part", "parts", "partitions"]
        ),
        JSON,
    ),
)
def test_any_json_is_an_event_or_refused(name: str, fields: dict[str, Any]) -> None:
    value = encoded({**rebalance_ended(1, {"a": ((), (0,))}), "event": name, **fields})
    reader = EventReader()

    for read in (lambda: parse_event([value, value]), lambda: reader.read(value)):
        with suppress(BadEvent):
            read()
