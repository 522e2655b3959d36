"""Records become Kafka's bytes and come back, in every version that Kafka ever wrote.

The vectors were written by Apache Kafka's own classes; see tests/wire/vectors.
"""

import json
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.commands import OffsetColumns, PartitionColumns
from kohort.coordinator.record_codec import (
    EncodedRecord,
    Skipped,
    decode_record,
    encode_columns,
    encode_record,
)
from kohort.coordinator.records import (
    ClassicGroupMember,
    ClassicGroupMetadata,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    OffsetsCommitted,
    TransactionEnded,
    UnknownRecord,
)
from kohort.types import (
    ZERO_UUID,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    Uuid,
)
from kohort.wire.batch import assemble_simple_batch, encode_simple_batch
from kohort.wire.consumer_offsets import RECORD_SCHEMAS, OffsetCommitValue, encode_value

VECTORS = json.loads(
    (Path(__file__).parents[1] / "wire" / "vectors" / "records.json").read_text(encoding="utf-8")
)

OFFSET_KEY, OLD_OFFSET_KEY = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x07", b"\x00\x00"
OLD_OFFSET_KEY += OFFSET_KEY[2:]
GROUP_KEY = b"\x00\x02\x00\x01g"

MEMBER = ClassicGroupMember(
    member_id=MemberId("a-1"),
    instance_id=InstanceId("i"),
    client_id="a",
    client_host="/10.0.0.1",
    rebalance_timeout_ms=Millis(60_000),
    session_timeout_ms=Millis(10_000),
    subscription=b"reads",
    assignment=b"has",
)
FORMED = ClassicGroupMetadata(
    group_id=GroupId("g"),
    protocol_type="consumer",
    generation=Generation(7),
    protocol="range",
    leader=MemberId("a-1"),
    state_since_ms=Millis(1_700_000_000_000),
    members=(MEMBER,),
)
OFFSET = OffsetCommitted(
    group_id=GroupId("g"),
    topic=Topic("t"),
    partition=Partition(7),
    offset=Offset(42),
    leader_epoch=3,
    metadata="half of it",
    commit_ms=Millis(1_700_000_000_000),
    topic_id=Uuid(bytes(range(16))),
)


def vectors(name: str) -> list[Any]:
    return [
        pytest.param(bytes.fromhex(each["hex"]), each["version"], each["fields"], id=f"{name}-{n}")
        for n, each in enumerate(VECTORS)
        if each["name"] == name
    ]


# Writing


@pytest.mark.parametrize(
    "record",
    [
        OFFSET,
        OffsetRemoved(group_id=GroupId("g"), topic=Topic("t"), partition=Partition(7)),
        FORMED,
        GroupRemoved(group_id=GroupId("g")),
        ClassicGroupMetadata(
            group_id=GroupId(""),
            protocol_type="",
            generation=Generation(0),
            protocol=None,
            leader=None,
            state_since_ms=Millis(-1),
            members=(),
        ),
    ],
)
def test_encoded_records_decode_to_the_same_record(
    record: OffsetCommitted | OffsetRemoved | ClassicGroupMetadata | GroupRemoved,
) -> None:
    encoded = encode_record(record)

    assert decode_record(encoded.key, encoded.value) == record


def test_offsets_have_value_version_4_and_group_metadata_version_3() -> None:
    offset, formed = encode_record(OFFSET), encode_record(FORMED)

    assert (offset.key[:2], (offset.value or b"")[:2]) == (b"\x00\x01", b"\x00\x04")
    assert (formed.key[:2], (formed.value or b"")[:2]) == (b"\x00\x02", b"\x00\x03")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["t", "u", "topic" * 30]).map(Topic),
            st.integers(0, 200).map(Partition),
            st.integers(-(2**63), 2**63 - 1).map(Offset),
            st.integers(-(2**31), 2**31 - 1),
            st.sampled_from([ZERO_UUID, Uuid(bytes(range(16)))]),
        ),
        min_size=1,
        max_size=80,
    )
)
def test_columnar_commit_has_the_bytes_of_single_commits(
    offsets: list[tuple[Topic, Partition, Offset, int, Uuid]],
) -> None:
    topics, partitions, numbers, epochs, topic_ids = zip(*offsets, strict=True)
    columns = OffsetColumns(
        partition_columns=PartitionColumns(topics, partitions, topic_ids),
        offsets=numbers,
        leader_epochs=epochs,
    )
    for group_id in (GroupId("g"), GroupId("another group" * 20)):
        committed = OffsetsCommitted(group_id=group_id, columns=columns, commit_ms=Millis(77))
        pairs = [encode_record(record) for record in committed]

        together = encode_columns(committed)

        assert assemble_simple_batch(together, len(columns), Millis(77)) == encode_simple_batch(
            pairs, Millis(77)
        )


def test_encoder_cache_does_not_keep_unused_partitions() -> None:
    places = PartitionColumns((Topic("t"),), (Partition(0),), (ZERO_UUID,))
    columns = OffsetColumns(partition_columns=places, offsets=(Offset(1),), leader_epochs=(-1,))
    encode_columns(OffsetsCommitted(group_id=GroupId("g"), columns=columns, commit_ms=Millis(77)))
    reference = weakref.ref(places)

    del places, columns

    assert reference() is None


@given(st.integers(0, 2**63 - 1), st.integers(-1, 2**31 - 1), st.integers(0, 2**63 - 1))
def test_plain_offset_fast_path_has_the_schema_bytes(
    offset: int, leader_epoch: int, commit_ms: int
) -> None:
    record = OffsetCommitted(
        group_id=GroupId("g"),
        topic=Topic("t"),
        partition=Partition(0),
        offset=Offset(offset),
        leader_epoch=leader_epoch,
        commit_ms=Millis(commit_ms),
    )
    declared = OffsetCommitValue(
        offset=Offset(offset), leader_epoch=leader_epoch, commit_timestamp=Millis(commit_ms)
    )

    encoded = encode_record(record)

    assert encoded.value == encode_value(declared, 4)
    assert decode_record(encoded.key, encoded.value) == record


def test_explicit_expiry_is_written_as_version_1() -> None:
    expiring = OffsetCommitted(
        group_id=OFFSET.group_id,
        topic=OFFSET.topic,
        partition=OFFSET.partition,
        offset=OFFSET.offset,
        leader_epoch=3,
        commit_ms=OFFSET.commit_ms,
        expire_ms=Millis(1_800_000_000_000),
        topic_id=OFFSET.topic_id,
    )

    encoded = encode_record(expiring)
    decoded = decode_record(encoded.key, encoded.value)

    assert (encoded.value or b"")[:2] == b"\x00\x01"
    assert isinstance(decoded, OffsetCommitted)
    assert decoded.expire_ms == 1_800_000_000_000
    assert (decoded.leader_epoch, decoded.topic_id) == (-1, ZERO_UUID)


def test_tombstone_has_no_value() -> None:
    removed = OffsetRemoved(group_id=GroupId("g"), topic=Topic("t"), partition=Partition(7))

    assert encode_record(removed) == EncodedRecord(key=OFFSET_KEY, value=None)
    assert encode_record(GroupRemoved(group_id=GroupId("g"))) == EncodedRecord(
        key=GROUP_KEY, value=None
    )
    assert decode_record(OLD_OFFSET_KEY, None) == removed


def test_producer_of_the_batch_is_in_the_record() -> None:
    encoded = encode_record(OFFSET)

    decoded = decode_record(encoded.key, encoded.value, ProducerId(9), ProducerEpoch(2))

    assert isinstance(decoded, OffsetCommitted)
    assert (decoded.producer_id, decoded.producer_epoch) == (9, 2)


# Reading what Apache Kafka wrote


@pytest.mark.parametrize(("value", "version", "fields"), vectors("OffsetCommitValue"))
@pytest.mark.parametrize("key", [OLD_OFFSET_KEY, OFFSET_KEY], ids=["key-0", "key-1"])
def test_every_version_of_an_offset_is_decoded(
    key: bytes, value: bytes, version: int, fields: dict[str, Any]
) -> None:
    record = decode_record(key, value)

    assert record == OffsetCommitted(
        group_id=GroupId("g"),
        topic=Topic("t"),
        partition=Partition(7),
        offset=fields["offset"],
        leader_epoch=fields["leaderEpoch"],
        metadata=fields["metadata"],
        commit_ms=fields["commitTimestamp"],
        expire_ms=None if fields["expireTimestamp"] == -1 else fields["expireTimestamp"],
        topic_id=Uuid(bytes.fromhex(fields["topicId"])),
    )
    is_ours = version == (1 if record.expire_ms else 4)
    assert not is_ours or encode_record(record).value == value


@pytest.mark.parametrize(("value", "version", "fields"), vectors("GroupMetadataValue"))
def test_every_version_of_group_metadata_is_decoded(
    value: bytes, version: int, fields: dict[str, Any]
) -> None:
    record = decode_record(GROUP_KEY, value)

    assert record == ClassicGroupMetadata(
        group_id=GroupId("g"),
        protocol_type=fields["protocolType"],
        generation=fields["generation"],
        protocol=fields["protocol"],
        leader=fields["leader"],
        state_since_ms=fields["currentStateTimestamp"],
        members=tuple(_member(each, version) for each in fields["members"]),
    )
    assert version != 3 or encode_record(record).value == value


def _member(fields: dict[str, Any], version: int) -> ClassicGroupMember:
    return ClassicGroupMember(
        member_id=fields["memberId"],
        instance_id=fields["groupInstanceId"],
        client_id=fields["clientId"],
        client_host=fields["clientHost"],
        # The first version knew one timeout for both.
        rebalance_timeout_ms=fields["rebalanceTimeout" if version else "sessionTimeout"],
        session_timeout_ms=fields["sessionTimeout"],
        subscription=bytes.fromhex(fields["subscription"]),
        assignment=bytes.fromhex(fields["assignment"]),
    )


@pytest.mark.parametrize(
    ("key", "version", "fields"), [*vectors("OffsetCommitKey"), *vectors("LegacyOffsetCommitKey")]
)
def test_every_version_of_an_offset_key_is_decoded(
    key: bytes, version: int, fields: dict[str, Any]
) -> None:
    removed = decode_record(key, None)

    assert removed == OffsetRemoved(
        group_id=fields["group"], topic=fields["topic"], partition=fields["partition"]
    )
    assert version != 1 or encode_record(removed).key == key


@pytest.mark.parametrize(("value", "version", "fields"), vectors("LegacyOffsetCommitValue"))
def test_oldest_offset_and_key_versions_are_decoded(
    value: bytes, version: int, fields: dict[str, Any]
) -> None:
    record = decode_record(OLD_OFFSET_KEY, value)

    assert version == 0
    assert isinstance(record, OffsetCommitted)
    assert (record.offset, record.metadata) == (fields["offset"], fields["metadata"])
    assert (record.commit_ms, record.leader_epoch) == (fields["commitTimestamp"], -1)


# Unknown kinds, and records that cannot be read

KEYS_OF_OTHERS = [
    each for each in VECTORS if each["name"].endswith("Key") and each["version"] not in (0, 1, 2)
]


@pytest.mark.parametrize("vector", KEYS_OF_OTHERS, ids=lambda vector: vector["name"])
@pytest.mark.parametrize("value", [None, b"\x00\x00", b"anything"])
def test_records_of_other_group_types_keep_their_bytes(
    vector: dict[str, Any], value: bytes | None
) -> None:
    key = bytes.fromhex(vector["hex"])

    record = decode_record(key, value)

    assert record == UnknownRecord(key=key, value=value)
    assert record.kind == vector["version"]
    assert encode_record(record) == EncodedRecord(key=key, value=value)


def test_all_newer_record_types_are_covered() -> None:
    assert {each["version"] for each in KEYS_OF_OTHERS} == set(RECORD_SCHEMAS) - {0, 1, 2}


@pytest.mark.parametrize("number", [9, 15, 17, 99])
def test_record_of_an_undefined_type_keeps_its_bytes(number: int) -> None:
    key = number.to_bytes(2) + b"whatever"

    record = decode_record(key, b"\x00\x00")

    assert isinstance(record, UnknownRecord)
    assert record.kind == number
    assert encode_record(record) == EncodedRecord(key=key, value=b"\x00\x00")


def test_a_record_without_a_key_is_skipped() -> None:
    assert decode_record(None, b"value") == Skipped(key=b"", reason="no key")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (b"\x00", None),
        (b"\xff\xffnegative kind", None),
        (OFFSET_KEY[:-1], None),
        (OFFSET_KEY + b"\x00", None),
        (OFFSET_KEY, b""),
        (OFFSET_KEY, b"\x00\x04\x00"),
        (OFFSET_KEY, b"\x00\x63" + bytes(30)),
        (GROUP_KEY, b"\x00\x03\xff"),
        (GROUP_KEY, b"\x00\x05" + bytes(30)),
    ],
)
def test_damaged_records_are_skipped_with_a_reason(key: bytes, value: bytes | None) -> None:
    skipped = decode_record(key, value)

    assert isinstance(skipped, Skipped)
    assert skipped.key == key
    assert skipped.reason


@given(
    number=st.sampled_from([*RECORD_SCHEMAS, 99]),
    rest=st.binary(max_size=40),
    value=st.none() | st.binary(max_size=60),
)
def test_random_bytes_do_not_stop_decoding(number: int, rest: bytes, value: bytes | None) -> None:
    read = decode_record(number.to_bytes(2) + rest, value)

    assert not isinstance(read, TransactionEnded)
