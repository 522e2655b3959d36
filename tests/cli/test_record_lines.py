"""Records are formatted as lines and parsed from lines; invalid lines are rejected."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.cli.record_lines import (
    BadRecordLine,
    ParsedRecord,
    RecordField,
    format_json,
    format_plain,
    parse_json,
    parse_plain,
)
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.types import Millis, Offset, Partition, Topic
from kohort.wire.batch_header import TimestampType

contents = st.one_of(st.none(), st.binary(max_size=30), st.text(max_size=20).map(str.encode))
records = st.builds(
    ConsumerRecord,
    topic=st.just(Topic("orders")),
    partition=st.integers(0, 9).map(Partition),
    offset=st.integers(0, 2**60).map(Offset),
    timestamp=st.integers(0, 2**45).map(Millis),
    timestamp_type=st.sampled_from(TimestampType),
    key=contents,
    value=contents,
    headers=st.lists(st.tuples(st.text(max_size=5), contents), max_size=3).map(tuple),
    leader_epoch=st.just(0),
)


def new_record(key: bytes | None = b"key", value: bytes | None = b"value") -> ConsumerRecord:
    return ConsumerRecord(
        topic=Topic("orders"),
        partition=Partition(1),
        offset=Offset(42),
        timestamp=Millis(1_700_000_000_000),
        timestamp_type=TimestampType.CREATE_TIME,
        key=key,
        value=value,
        headers=(("trace", b"7"), ("none", None)),
        leader_epoch=0,
    )


@given(record=records)
def test_parsed_json_equals_the_formatted_record(record: ConsumerRecord) -> None:
    line = format_json(record)

    assert line.count(b"\n") == 1
    assert line.isascii()
    assert parse_json(line) == ParsedRecord(
        key=record.key,
        value=record.value,
        headers=record.headers,
        partition=record.partition,
        timestamp=record.timestamp,
    )


def test_json_contains_all_fields_of_a_record() -> None:
    assert json.loads(format_json(new_record(value=b"\xff"))) == {
        "topic": "orders",
        "partition": 1,
        "offset": 42,
        "timestamp": 1_700_000_000_000,
        "timestamp_type": "create_time",
        "key": "key",
        "value_base64": "/w==",
        "headers": [{"name": "trace", "value": "7"}, {"name": "none", "value": None}],
    }


def test_json_value_that_is_not_a_string_is_produced_as_json() -> None:
    line = b'{"value": {"id": 7, "tags": ["a"]}, "headers": {"trace": "1"}}'

    assert parse_json(line) == ParsedRecord(
        key=None, value=b'{"id":7,"tags":["a"]}', headers=(("trace", b"1"),)
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"{}", "'value' is missing"),
        (b'{"value": "a", "valeu": "b"}', "unknown field 'valeu'"),
        (b'{"value": "a", "value_base64": "YQ=="}', "both"),
        (b'{"value_base64": "?"}', "not Base64"),
        (b'{"value_base64": 7}', "not Base64"),
        (b'{"value": "a", "partition": "0"}', "whole number"),
        (b'{"value": "a", "partition": true}', "whole number"),
        (b'{"value": "a", "headers": "b"}', "headers"),
        (b'{"value": "a", "headers": [7]}', "a header must be"),
        (b'{"value": "\\ud800"}', "not valid Unicode"),
    ],
)
def test_invalid_json_line_is_rejected(line: bytes, reason: str) -> None:
    with pytest.raises(BadRecordLine, match=reason):
        parse_json(line)


def test_fields_are_printed_before_the_value() -> None:
    shown = format_plain(new_record(), list(RecordField), null=b"null", is_terminal=False)

    assert shown == b"orders\t1\t42\t1700000000000\ttrace=7,none=null\tkey\tvalue\n"


def test_control_characters_are_escaped_only_for_a_terminal() -> None:
    record = new_record(key=None, value=b"\x1b[2J\xff caf\xc3\xa9")

    piped = format_plain(record, [RecordField.KEY], null=b"-", is_terminal=False)
    shown = format_plain(record, [RecordField.KEY], null=b"-", is_terminal=True)

    assert piped == b"-\t\x1b[2J\xff caf\xc3\xa9\n"
    assert shown == "-\t\\x1b[2J\\xff café\n".encode()


def test_first_separator_divides_key_and_value() -> None:
    assert parse_plain(b"a:b:c", separator=b":", null=None) == ParsedRecord(key=b"a", value=b"b:c")
    assert parse_plain(b"a:b", separator=None, null=None) == ParsedRecord(key=None, value=b"a:b")
    assert parse_plain(b":NULL", separator=b":", null=b"NULL") == ParsedRecord(key=b"", value=None)
    with pytest.raises(BadRecordLine, match="no key separator"):
        parse_plain(b"a", separator=b":", null=None)
