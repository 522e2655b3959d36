"""Options: spellings, defaults, errors, and consistency with the table."""

import dataclasses
from typing import Any

import pytest

import kohort
from kohort.assignors import STICKY, get_assignor
from kohort.client.errors import ConfigurationError
from kohort.client.options import (
    GivenOptions,
    IsolationLevel,
    OffsetReset,
    Options,
    member_settings,
    read_options,
)
from kohort.client.options_table import OPTIONS


def options_of(**given: object) -> Options:
    return read_options(given.items())


def test_defaults_are_those_of_kafka() -> None:
    options = options_of()

    assert options.session_timeout_ms == 45_000
    assert options.max_poll_records == 500
    assert options.auto_offset_reset is OffsetReset.LATEST
    assert [each.name for each in options.partition_assignment_strategy] == [
        "range",
        "cooperative-sticky",
    ]


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_accepts_both_spellings_and_its_default(name: str) -> None:
    option = OPTIONS[name]
    default = option.default
    if name == "bootstrap.servers":
        default = [f"{host}:{port}" for host, port in default]

    dotted = read_options([(name, default)])
    keyword = read_options([(option.keyword, default)])

    assert dotted == keyword
    assert getattr(dotted, option.keyword) == option.default


def test_every_option_has_a_meaning() -> None:
    for option in OPTIONS.values():
        assert option.meaning.endswith((".", "(KIP-345).", "(KIP-392)."))
        assert option.kind


def test_given_options_and_options_have_the_same_fields() -> None:
    keywords = [option.keyword for option in OPTIONS.values()]

    assert sorted(GivenOptions.__annotations__) == sorted(keywords)
    assert sorted(field.name for field in dataclasses.fields(Options)) == sorted(keywords)


@pytest.mark.parametrize(
    ("spelling", "given", "keyword", "read"),
    [
        ("bootstrap.servers", "a:1, b:2", "bootstrap_servers", (("a", 1), ("b", 2))),
        ("bootstrap_servers", ["a:1"], "bootstrap_servers", (("a", 1),)),
        ("metadata.broker.list", "[::1]:9", "bootstrap_servers", (("::1", 9),)),
        ("bootstrap_servers", "PLAINTEXT://a:1", "bootstrap_servers", (("a", 1),)),
        ("fetch.wait.max.ms", 7, "fetch_max_wait_ms", 7),
        ("fetch_message_max_bytes", 7, "max_partition_fetch_bytes", 7),
        ("session.timeout.ms", "9000", "session_timeout_ms", 9000),
        ("enable.auto.commit", "False", "enable_auto_commit", False),
        ("auto.offset.reset", "beginning", "auto_offset_reset", OffsetReset.EARLIEST),
        ("auto.offset.reset", "error", "auto_offset_reset", OffsetReset.NONE),
        ("isolation.level", "read_committed", "isolation_level", IsolationLevel.READ_COMMITTED),
        (
            "partition.assignment.strategy",
            "roundrobin, range",
            "partition_assignment_strategy",
            (get_assignor("roundrobin"), get_assignor("range")),
        ),
        (
            "partition.assignment.strategy",
            ["org.apache.kafka.clients.consumer.StickyAssignor"],
            "partition_assignment_strategy",
            (STICKY,),
        ),
        (
            "partition.assignment.strategy",
            STICKY,
            "partition_assignment_strategy",
            (STICKY,),
        ),
        ("value_deserializer", bytes.decode, "value_deserializer", bytes.decode),
    ],
)
def test_options_are_parsed(spelling: str, given: object, keyword: str, read: object) -> None:
    options = read_options([(spelling, given)])

    assert getattr(options, keyword) == read


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"sesion_timeout_ms": 1}, r"no option sesion_timeout_ms; did you mean session_timeout_ms"),
        ({"session.timeout": 1}, r"did you mean session\.timeout\.ms"),
        ({"zzz": 1}, "there is no option zzz$"),
        ({"session_timeout_ms": "soon"}, "session.timeout.ms='soon': not a whole number"),
        ({"session_timeout_ms": True}, "not a whole number"),
        ({"session_timeout_ms": 0}, "not between 1 and"),
        ({"max_poll_records": -5}, "not between"),
        ({"enable_auto_commit": "perhaps"}, "neither true nor false; it takes true or false"),
        ({"auto_offset_reset": "middle"}, "none of earliest, latest, none"),
        ({"isolation_level": 1}, "none of read_uncommitted, read_committed"),
        ({"bootstrap_servers": "localhost"}, "'localhost' is not HOST:PORT"),
        ({"bootstrap_servers": "host:0"}, "is not HOST:PORT"),
        ({"bootstrap_servers": []}, "empty list of addresses"),
        ({"bootstrap_servers": 9092}, "not a list of addresses"),
        ({"group_id": ""}, "group.id='': empty"),
        ({"group_id": 7}, "not text"),
        ({"client_id": "x" * 40_000}, "too long"),
        ({"partition_assignment_strategy": "fair"}, "no assignor 'fair'; there are range"),
        ({"partition_assignment_strategy": []}, "give at least one assignor"),
        ({"partition_assignment_strategy": [7]}, "neither an Assignor nor the name of one"),
        ({"key_deserializer": "utf-8"}, "not callable"),
        ({"security_protocol": "SASL_SSL"}, "none of PLAINTEXT"),
        ({"group_instance_id": "me"}, "needs a group.id"),
        ({"fetch_max_wait_ms": 30_000}, r"must be lower than request\.timeout\.ms"),
        (
            {"group_id": "g", "heartbeat_interval_ms": 45_000},
            r"heartbeat\.interval\.ms=45000 must be lower",
        ),
        ({"group.id": "a", "group_id": "b"}, r"group\.id is given twice"),
    ],
    ids=str,
)
def test_an_invalid_option_raises_a_clear_error(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        kohort.Consumer(given)


def test_a_consumer_accepts_a_mapping_and_keywords() -> None:
    with kohort.Consumer({"bootstrap.servers": "127.0.0.1:1"}, client_id="me") as consumer:
        assert consumer.assignment() == frozenset()

    with pytest.raises(ConfigurationError, match="given twice"):
        kohort.Consumer({"client.id": "you"}, client_id="me")


def test_a_configuration_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no option"):
        options_of(nothing=1)


def test_member_settings_are_taken_from_the_options() -> None:
    settings = member_settings(options_of(group_id="g", session_timeout_ms=9_000))

    assert settings.group_id == "g"
    assert settings.session_timeout_ms == 9_000
