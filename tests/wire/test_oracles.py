"""Encoded bytes equal those of kio and kafka-python, for every message and version they have."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kohort.wire.consumer_protocol import Assignment, Subscription
from kohort.wire.header import RequestHeader, ResponseHeader
from kohort.wire.message_codec import decode, encode
from kohort.wire.schema import schema_of
from tests.wire.oracles import ORACLES, Oracle
from tests.wire.strategies import MESSAGES, VARIANTS, Message, build, values

every_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=repr)
every_message = pytest.mark.parametrize("message", MESSAGES, ids=str)

UNKNOWN = {
    "kio": set(),
    "kafka-python": {  # it does not support KIP-848 yet
        (name, version)
        for name in (
            "ConsumerGroupHeartbeatRequest",
            "ConsumerGroupHeartbeatResponse",
            "ConsumerGroupDescribeRequest",
            "ConsumerGroupDescribeResponse",
        )
        for version in (0, 1)
    },
}
"""The messages that an oracle does not have."""

UNKNOWN_WITHOUT_KEY = {
    "kio": {("RequestHeader", 0)},
    "kafka-python": {("RequestHeader", 0)},
}
"""Headers and embedded data. No supported API uses the oldest request header."""

WITHOUT_KEY = (RequestHeader, ResponseHeader, Subscription, Assignment)


def sample_values(cls: type, version: int) -> Iterator[tuple[str, Any]]:
    """A value for every variant, and one with all defaults."""
    yield "default", cls()
    for variant in VARIANTS:
        yield variant.name, build(cls, version, variant)


def known_versions(oracle: Oracle, cls: type) -> list[int]:
    return [v for v in schema_of(cls).versions if oracle.knows(cls, v)]


def unknown(oracle: Oracle, cls: type) -> set[tuple[str, int]]:
    versions = set(schema_of(cls).versions) - set(known_versions(oracle, cls))
    return {(cls.__name__, version) for version in versions}


def assert_same_bytes(oracle: Oracle, value: Any, version: int, variant: str) -> None:
    value = oracle.clamp(value, version)
    what = f"{type(value).__name__} v{version}, {variant}"

    theirs = oracle.encode(value, version)

    assert encode(value, version).hex() == theirs.hex(), what
    assert decode(type(value), version, theirs) == value, what


@every_oracle
def test_messages_without_an_oracle_are_listed(oracle: Oracle) -> None:
    assert set().union(*(unknown(oracle, m.cls) for m in MESSAGES)) == UNKNOWN[repr(oracle)]
    assert (
        set().union(*(unknown(oracle, cls) for cls in WITHOUT_KEY))
        == UNKNOWN_WITHOUT_KEY[repr(oracle)]
    )


def test_number_of_messages_and_versions() -> None:
    assert len(MESSAGES) == 2 * 35
    assert sum(len(message.versions) for message in MESSAGES) == 404


@every_oracle
@every_message
def test_sample_values_match_the_oracles(message: Message, oracle: Oracle) -> None:
    for version in known_versions(oracle, message.cls):
        for name, value in sample_values(message.cls, version):
            assert_same_bytes(oracle, value, version, name)


@every_oracle
@pytest.mark.parametrize("cls", WITHOUT_KEY)
def test_sample_headers_and_embedded_data_match_the_oracles(cls: type, oracle: Oracle) -> None:
    for version in known_versions(oracle, cls):
        for name, value in sample_values(cls, version):
            assert_same_bytes(oracle, value, version, name)


@every_message
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_random_values_match_the_oracles(message: Message, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(message.versions), label="version")
    value = data.draw(values(message.cls, version), label="value")

    for oracle in ORACLES:
        if oracle.knows(message.cls, version):
            assert_same_bytes(oracle, value, version, "random")


@pytest.mark.parametrize("cls", WITHOUT_KEY)
@given(data=st.data())
def test_random_headers_and_embedded_data_match_the_oracles(cls: type, data: st.DataObject) -> None:
    oracle = data.draw(st.sampled_from(ORACLES), label="oracle")
    version = data.draw(st.sampled_from(known_versions(oracle, cls)), label="version")
    value = data.draw(values(cls, version), label="value")

    assert_same_bytes(oracle, value, version, "random")
