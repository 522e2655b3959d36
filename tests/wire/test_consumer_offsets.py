"""Records of `__consumer_offsets`: Apache Kafka's test vectors, and round trips."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.types import Generation, GroupId, MemberId, Millis, Offset, Partition, Topic, Uuid
from kohort.wire.consumer_offsets import (
    RECORD_SCHEMAS,
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    CurrentTopicPartitions,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from kohort.wire.consumer_protocol import encode_versioned
from kohort.wire.errors import MalformedMessage, UnencodableMessage, UnsupportedVersion
from kohort.wire.schema import schema_of
from tests.wire.kafka_vectors import KafkaVector, all_vectors, vectors_of
from tests.wire.strategies import VARIANTS, build, values

KEYS = {kind.key.__name__: kind.key for kind in RECORD_SCHEMAS.values()}
KEY_OF_VALUE = {kind.value.__name__: kind.key for kind in RECORD_SCHEMAS.values()}
VALUES = {kind.value.__name__: kind.value for kind in RECORD_SCHEMAS.values()}

# Kafka has separate classes for the two oldest versions of an offset commit.
KEYS_OF_KAFKA = KEYS | {"LegacyOffsetCommitKey": OffsetCommitKey}
VALUES_OF_KAFKA = VALUES | {"LegacyOffsetCommitValue": OffsetCommitValue}

RECORDED_KEYS = vectors_of(*KEYS_OF_KAFKA)
RECORDED_VALUES = vectors_of(*VALUES_OF_KAFKA)

every_record_type = pytest.mark.parametrize("number", RECORD_SCHEMAS)

COMMIT_KEY = OffsetCommitKey(group=GroupId("g"), topic=Topic("t"), partition=Partition(3))
COMMIT = OffsetCommitValue(
    offset=Offset(9), metadata="m", commit_timestamp=Millis(5), topic_id=Uuid(b"i" * 16)
)


def decode_vector(name: str, data: bytes) -> Any:
    if name in KEYS_OF_KAFKA:
        return decode_key(data)
    return decode_value(KEY_OF_VALUE[VALUES_OF_KAFKA[name].__name__](), data)


# Apache Kafka's test vectors


@pytest.mark.parametrize("vector", RECORDED_KEYS, ids=str)
def test_keys_match_apache_kafka(vector: KafkaVector) -> None:
    key = vector.value(KEYS_OF_KAFKA[vector.name])

    assert decode_key(vector.data) == key
    assert encode_versioned(key, vector.version) == vector.data


@pytest.mark.parametrize("vector", RECORDED_VALUES, ids=str)
def test_values_match_apache_kafka(vector: KafkaVector) -> None:
    value = vector.value(VALUES_OF_KAFKA[vector.name])

    assert decode_vector(vector.name, vector.data) == value
    assert encode_value(value, vector.version) == vector.data


def test_every_record_type_and_version_has_a_kafka_vector() -> None:
    keys = {(KEYS_OF_KAFKA[each.name], each.version) for each in RECORDED_KEYS}
    values_seen = {(VALUES_OF_KAFKA[each.name], each.version) for each in RECORDED_VALUES}

    assert keys == {(kind.key, number) for number, kind in RECORD_SCHEMAS.items()}
    assert values_seen == {(v, n) for v in VALUES.values() for n in schema_of(v).versions}
    assert len(RECORDED_KEYS) + len(RECORDED_VALUES) == len(all_vectors()) - 16


def test_non_classic_member_has_a_null_tag() -> None:
    key = ConsumerGroupMemberMetadataKey()
    untagged = encode_value(ConsumerGroupMemberMetadataValue(), 0)
    tagged = encode_value(ConsumerGroupMemberMetadataValue(classic_member_metadata=None), 0)

    assert tagged == untagged[:-1] + bytes.fromhex("01 00 01 00")
    assert decode_value(key, tagged).classic_member_metadata is None
    assert decode_value(key, untagged).classic_member_metadata == ClassicMemberMetadata()


def test_assignment_epochs_without_a_tag_are_empty() -> None:
    def written(*parts: CurrentTopicPartitions) -> bytes:
        return encode_value(ConsumerGroupCurrentMemberAssignmentValue(assigned_partitions=parts), 0)

    plain, null = CurrentTopicPartitions(), CurrentTopicPartitions(assignment_epochs=None)

    assert plain.assignment_epochs == ()
    assert written(plain)[-3:] == bytes.fromhex("00 01 00")
    assert written(null)[-6:] == bytes.fromhex("01 00 01 00 01 00")
    assert written(plain)[:-3] == written(null)[:-6]


# Round trips and errors


@every_record_type
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_sample_keys_and_values_round_trip(number: int, variant: Any) -> None:
    kind = RECORD_SCHEMAS[number]
    key = build(kind.key, number, variant)

    assert decode_key(encode_versioned(key, number)) == key
    for version in schema_of(kind.value).versions:
        value = build(kind.value, version, variant)
        assert decode_value(key, encode_value(value, version)) == value


@every_record_type
@given(data=st.data())
def test_random_keys_and_values_round_trip(number: int, data: st.DataObject) -> None:
    kind = RECORD_SCHEMAS[number]
    key = data.draw(values(kind.key, number), label="key")
    version = data.draw(st.sampled_from(schema_of(kind.value).versions), label="version")
    value = data.draw(values(kind.value, version), label="value")

    assert decode_key(encode_key(key)) == key
    assert decode_value(key, encode_value(value, version)) == value


def test_record_types_of_classic_and_consumer_groups_are_supported() -> None:
    assert sorted(RECORD_SCHEMAS) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 16]


def test_offset_commit_key_is_encoded_with_its_newest_type() -> None:
    assert encode_key(COMMIT_KEY)[:2] == b"\x00\x01"
    assert encode_key(GroupMetadataKey(group=GroupId("g"))) == b"\x00\x02\x00\x01g"
    assert decode_key(b"\x00\x00" + encode_key(COMMIT_KEY)[2:]) == COMMIT_KEY


@every_record_type
def test_null_value_is_a_tombstone(number: int) -> None:
    assert decode_value(RECORD_SCHEMAS[number].key(), None) is None


@pytest.mark.parametrize("number", [9, 10, 11, 15, 17, 23, 32_767])
def test_unknown_record_type_is_unsupported(number: int) -> None:
    with pytest.raises(UnsupportedVersion) as error:
        decode_key(number.to_bytes(2, "big") + b"\x00\x01g")
    assert (error.value.api_key, error.value.version) == (None, number)


def test_future_value_version_is_unsupported() -> None:
    with pytest.raises(UnsupportedVersion, match="OffsetCommitValue: version 5"):
        decode_value(COMMIT_KEY, b"\x00\x05" + bytes(40))
    with pytest.raises(UnsupportedVersion, match="ConsumerGroupMetadataValue: version 1"):
        encode_value(ConsumerGroupMetadataValue(), 1)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x80\x00\x00\x01g"])
def test_record_without_a_version_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage, match="record key: version at byte 0"):
        decode_key(data)
    with pytest.raises(MalformedMessage, match="GroupMetadataValue: version at byte 0"):
        decode_value(GroupMetadataKey(), data)


@pytest.mark.parametrize("vector", RECORDED_KEYS + RECORDED_VALUES, ids=str)
def test_record_truncated_at_any_byte_is_malformed(vector: KafkaVector) -> None:
    for length in range(len(vector.data)):
        with pytest.raises(MalformedMessage) as error:
            decode_vector(vector.name, vector.data[:length])
        assert 0 <= error.value.position <= length


def test_bytes_after_a_record_are_malformed() -> None:
    with pytest.raises(MalformedMessage):
        decode_key(encode_key(COMMIT_KEY) + b"x")
    with pytest.raises(MalformedMessage):
        decode_value(COMMIT_KEY, encode_value(COMMIT, 4) + b"x")


def test_older_version_drops_only_ignorable_fields() -> None:
    older = decode_value(COMMIT_KEY, encode_value(COMMIT, 0))
    orphan = GroupMetadataValue(leader=MemberId("m"), current_state_timestamp=Millis(8))

    assert older == replace(COMMIT, topic_id=OffsetCommitValue().topic_id)
    assert decode_value(GroupMetadataKey(), encode_value(orphan, 1)) == replace(
        orphan, current_state_timestamp=Millis(-1)
    )
    with pytest.raises(UnencodableMessage, match="GroupMetadataValue v3: generation"):
        encode_value(replace(orphan, generation=Generation(2**31)), 3)


def test_zero_metadata_hash_is_not_encoded() -> None:
    key = ConsumerGroupMetadataKey(group_id=GroupId("g"))
    value = ConsumerGroupMetadataValue(epoch=1, metadata_hash=-1)

    assert encode_value(replace(value, metadata_hash=0), 0) == bytes.fromhex("0000 00000001 00")
    assert encode_value(value, 0) == bytes.fromhex("0000 00000001 01 00 08") + b"\xff" * 8
    assert decode_value(key, encode_value(value, 0)) == value
