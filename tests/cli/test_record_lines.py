"""Records become lines and lines become records; what makes no sense is refused with a reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.cli.record_lines import (
    BadLine,
    Field,
    NewLine,
    read_json,
    read_plain,
    write_json,
    write_plain,
)
from kohort.client.fetching.records import ConsumerRecord
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


def record(key: bytes | None = b"key", value: bytes | None = b"value") -> ConsumerRecord:
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


@given(told=records)
def test_what_is_written_as_json_is_read_as_it_was(told: ConsumerRecord) -> None:
    line = write_json(told)

    assert line.count(b"\n") == 1
    assert line.isascii()
    assert read_json(line) == NewLine(
        key=told.key,
        value=told.value,
        headers=told.headers,
        partition=told.partition,
        timestamp=told.timestamp,
    )


def test_json_says_all_there_is_about_a_record() -> None:
    assert json.loads(write_json(record(value=b"\xff"))) == {
        "topic": "orders",
        "partition": 1,
        "offset": 42,
        "timestamp": 1_700_000_000_000,
        "timestamp_type": "create_time",
        "key": "key",
        "value_base64": "/w==",
        "headers": [{"name": "trace", "value": "7"}, {"name": "none", "value": None}],
    }


def test_a_value_that_is_no_text_is_meant_as_json() -> None:
    line = b'{"value": {"id": 7, "tags": ["a"]}, "headers": {"trace": "1"}}'

    assert read_json(line) == NewLine(
        key=None, value=b'{"id":7,"tags":["a"]}', headers=(("trace", b"1"),)
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"{}", "has no value"),
        (b'{"value": "a", "valeu": "b"}', "no 'valeu'"),
        (b'{"value": "a", "value_base64": "YQ=="}', "both"),
        (b'{"value_base64": "?"}', "not Base64"),
        (b'{"value_base64": 7}', "not Base64"),
        (b'{"value": "a", "partition": "0"}', "whole number"),
        (b'{"value": "a", "partition": true}', "whole number"),
        (b'{"value": "a", "headers": "b"}', "headers"),
        (b'{"value": "a", "headers": [7]}', "a header is"),
        (b'{"value": "\\ud800"}', "not Unicode"),
    ],
)
def test_json_that_says_no_record_is_refused(line: bytes, reason: str) -> None:
    with pytest.raises(BadLine, match=reason):
        read_json(line)


def test_fields_stand_before_the_value() -> None:
    shown = write_plain(record(), list(Field), null=b"null", is_for_eyes=False)

    assert shown == b"orders\t1\t42\t1700000000000\ttrace=7,none=null\tkey\tvalue\n"


def test_bytes_go_through_a_pipe_as_they_are_and_to_a_terminal_so_that_it_obeys_none() -> None:
    told = record(key=None, value=b"\x1b[2J\xff caf\xc3\xa9")

    piped = write_plain(told, [Field.KEY], null=b"-", is_for_eyes=False)
    shown = write_plain(told, [Field.KEY], null=b"-", is_for_eyes=True)

    assert piped == b"-\t\x1b[2J\xff caf\xc3\xa9\n"
    assert shown == "-\t\\x1b[2J\\xff café\n".encode()


def test_a_separator_parts_key_and_value_once() -> None:
    assert read_plain(b"a:b:c", separator=b":", null=None) == NewLine(key=b"a", value=b"b:c")
    assert read_plain(b"a:b", separator=None, null=None) == NewLine(key=None, value=b"a:b")
    assert read_plain(b":NULL", separator=b":", null=b"NULL") == NewLine(key=b"", value=None)
    with pytest.raises(BadLine, match="no key separator"):
        read_plain(b"a", separator=b":", null=None)
