"""The consumer protocol: subscriptions and assignments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.types import Generation, Partition, Topic
from kohort.wire.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kohort.wire.errors import MalformedMessage, UnsupportedVersion
from tests.wire.kafka_vectors import KafkaVector, vectors_of
from tests.wire.strategies import values

VERSIONS = range(4)

every_version = pytest.mark.parametrize("version", VERSIONS)

OWNED = (TopicPartitions(topic=Topic("t"), partitions=(Partition(0), Partition(2))),)
SUBSCRIPTION = Subscription(
    topics=(Topic("t"),),
    user_data=b"u",
    owned_partitions=OWNED,
    generation_id=Generation(7),
    rack_id="r",
)


@every_version
@given(data=st.data())
def test_subscription_round_trip(version: int, data: st.DataObject) -> None:
    subscription = data.draw(values(Subscription, version))

    assert decode_subscription(encode_subscription(subscription, version)) == subscription


@every_version
@given(data=st.data())
def test_assignment_round_trip(version: int, data: st.DataObject) -> None:
    assignment = data.draw(values(Assignment, version))

    assert decode_assignment(encode_assignment(assignment, version)) == assignment


@pytest.mark.parametrize("vector", vectors_of("ConsumerProtocolSubscription"), ids=str)
def test_subscriptions_match_apache_kafka(vector: KafkaVector) -> None:
    subscription = vector.value(Subscription)

    assert decode_subscription(vector.data) == subscription
    assert encode_subscription(subscription, vector.version) == vector.data


@pytest.mark.parametrize("vector", vectors_of("ConsumerProtocolAssignment"), ids=str)
def test_assignments_match_apache_kafka(vector: KafkaVector) -> None:
    assignment = vector.value(Assignment)

    assert decode_assignment(vector.data) == assignment
    assert encode_assignment(assignment, vector.version) == vector.data


@pytest.mark.parametrize("name", ["ConsumerProtocolSubscription", "ConsumerProtocolAssignment"])
def test_apache_kafka_has_the_same_versions(name: str) -> None:
    assert {vector.version for vector in vectors_of(name)} == set(VERSIONS)


def test_newest_version_is_the_default() -> None:
    assert encode_subscription(SUBSCRIPTION)[:2] == b"\x00\x03"
    assert encode_assignment(Assignment())[:2] == b"\x00\x03"
    assert encode_subscription(SUBSCRIPTION, 1)[:2] == b"\x00\x01"


def test_older_version_omits_newer_fields() -> None:
    oldest = decode_subscription(encode_subscription(SUBSCRIPTION, 0))

    assert oldest == Subscription(topics=(Topic("t"),), user_data=b"u")
    assert (oldest.owned_partitions, oldest.generation_id, oldest.rack_id) == ((), -1, None)


@pytest.mark.parametrize("version", [4, 5, 32_767])
@pytest.mark.parametrize("more", [b"", b"\x00", b"fields of a later day"])
def test_newer_version_is_decoded_as_the_newest_known(version: int, more: bytes) -> None:
    newer = version.to_bytes(2, "big") + encode_subscription(SUBSCRIPTION, 3)[2:] + more

    assert decode_subscription(newer) == SUBSCRIPTION


@every_version
def test_bytes_after_the_known_fields_are_ignored(version: int) -> None:
    assignment = Assignment(assigned_partitions=OWNED, user_data=b"")

    assert decode_assignment(encode_assignment(assignment, version) + b"more") == assignment


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x80\x00" + bytes(20)])
def test_invalid_version_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage, match="Subscription: version at byte 0"):
        decode_subscription(data)
    with pytest.raises(MalformedMessage, match="Assignment: version at byte 0"):
        decode_assignment(data)


@every_version
def test_data_truncated_at_any_byte_is_malformed(version: int) -> None:
    whole = encode_subscription(SUBSCRIPTION, version)

    for length in range(len(whole)):
        with pytest.raises(MalformedMessage) as error:
            decode_subscription(whole[:length])
        assert 0 <= error.value.position <= length


def test_encoding_an_unknown_version_is_unsupported() -> None:
    with pytest.raises(UnsupportedVersion):
        encode_subscription(SUBSCRIPTION, 4)
    with pytest.raises(UnsupportedVersion):
        encode_assignment(Assignment(), -1)
