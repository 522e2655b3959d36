"""Records become Kafka's bytes and come back, in every version that Kafka ever wrote.

The vectors were written by Apache Kafka's own classes; see tests/wire/vectors.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.commands import OffsetColumns, Places
from kohort.coordinator.recordcodec import (
    Encoded,
    Skipped,
    decode_record,
    encode_columns,
    encode_offsets,
    encode_pair,
    encode_record,
    find_subscribed_topics,
)
from kohort.coordinator.records import (
    FormedMember,
    GenerationFormed,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    OffsetsCommitted,
    TransactionEnded,
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
from kohort.wire.batch import encode_moment, seal_moment
from kohort.wire.consumer_offsets import KINDS, OffsetCommitValue, encode_value
from kohort.wire.embedded import Subscription, TopicPartitions, encode_subscription

VECTORS = json.loads(
    (Path(__file__).parents[1] / "wire" / "vectors" / "records.json").read_text(encoding="utf-8")
)

OFFSET_KEY, OLD_OFFSET_KEY = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x07", b"\x00\x00"
OLD_OFFSET_KEY += OFFSET_KEY[2:]
GROUP_KEY = b"\x00\x02\x00\x01g"

MEMBER = FormedMember(
    member_id=MemberId("a-1"),
    instance_id=InstanceId("i"),
    client_id="a",
    client_host="/10.0.0.1",
    rebalance_timeout_ms=Millis(60_000),
    session_timeout_ms=Millis(10_000),
    subscription=b"reads",
    assignment=b"has",
)
FORMED = GenerationFormed(
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
        GenerationFormed(
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
def test_what_was_written_is_read_again(
    record: OffsetCommitted | OffsetRemoved | GenerationFormed | GroupRemoved,
) -> None:
    encoded = encode_record(record)

    assert decode_record(encoded.key, encoded.value) == record


def test_offsets_are_written_as_version_4_and_generations_as_3() -> None:
    offset, formed = encode_record(OFFSET), encode_record(FORMED)

    assert (offset.key[:2], (offset.value or b"")[:2]) == (b"\x00\x01", b"\x00\x04")
    assert (formed.key[:2], (formed.value or b"")[:2]) == (b"\x00\x02", b"\x00\x03")


PLAIN = st.builds(
    OffsetCommitted,
    group_id=st.sampled_from(["g", "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n" * 40]).map(GroupId),
    topic=st.sampled_from(["t", "topic" * 30]).map(Topic),
    partition=st.integers(0, 200).map(Partition),
    offset=st.integers(-(2**63), 2**63 - 1).map(Offset),
    leader_epoch=st.integers(-(2**31), 2**31 - 1),
    commit_ms=st.just(Millis(77)),
)


@given(st.lists(PLAIN, min_size=1, max_size=80))
def test_plain_offsets_have_the_same_bytes_together_as_one_by_one(
    records: list[OffsetCommitted],
) -> None:
    pairs = [encode_pair(record) for record in records]

    together = encode_offsets(records, Millis(77))

    assert together is not None
    assert seal_moment(together, len(records), Millis(77)) == encode_moment(pairs, Millis(77))


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
def test_offsets_told_by_columns_have_the_same_bytes_as_one_by_one(
    offsets: list[tuple[Topic, Partition, Offset, int, Uuid]],
) -> None:
    topics, partitions, numbers, epochs, topic_ids = zip(*offsets, strict=True)
    columns = OffsetColumns(
        places=Places(topics, partitions, topic_ids), offsets=numbers, leader_epochs=epochs
    )
    for group_id in (GroupId("g"), GroupId("another group" * 20)):
        committed = OffsetsCommitted(group_id=group_id, columns=columns, commit_ms=Millis(77))
        pairs = [encode_pair(record) for record in committed]

        together = encode_columns(committed)

        assert seal_moment(together, len(columns), Millis(77)) == encode_moment(pairs, Millis(77))


@pytest.mark.parametrize(
    "odd",
    [
        {"metadata": "half of it"},
        {"expire_ms": Millis(1)},
        {"topic_id": Uuid(bytes(range(16)))},
        {"producer_id": ProducerId(1), "producer_epoch": ProducerEpoch(0)},
        {"commit_ms": Millis(78)},
    ],
)
def test_offsets_that_are_not_plain_are_not_taken_for_it(odd: dict[str, Any]) -> None:
    plain = OffsetCommitted(
        group_id=GroupId("g"),
        topic=Topic("t"),
        partition=Partition(0),
        offset=Offset(1),
        commit_ms=Millis(77),
    )

    assert encode_offsets([plain], Millis(77)) is not None
    assert encode_offsets([plain, replace(plain, **odd)], Millis(77)) is None
    assert encode_offsets([plain, FORMED], Millis(77)) is None


@given(st.integers(0, 2**63 - 1), st.integers(-1, 2**31 - 1), st.integers(0, 2**63 - 1))
def test_a_plain_offset_has_the_bytes_its_declaration_gives(
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


def test_an_expiry_is_written_as_version_1_which_holds_neither_epoch_nor_topic_id() -> None:
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


def test_a_tombstone_is_a_key_without_a_value() -> None:
    removed = OffsetRemoved(group_id=GroupId("g"), topic=Topic("t"), partition=Partition(7))

    assert encode_record(removed) == Encoded(key=OFFSET_KEY, value=None)
    assert encode_record(GroupRemoved(group_id=GroupId("g"))) == Encoded(key=GROUP_KEY, value=None)
    assert decode_record(OLD_OFFSET_KEY, None) == removed


def test_the_producer_of_the_batch_becomes_the_records() -> None:
    encoded = encode_record(OFFSET)

    decoded = decode_record(encoded.key, encoded.value, ProducerId(9), ProducerEpoch(2))

    assert isinstance(decoded, OffsetCommitted)
    assert (decoded.producer_id, decoded.producer_epoch) == (9, 2)


# Reading what Apache Kafka wrote


@pytest.mark.parametrize(("value", "version", "fields"), vectors("OffsetCommitValue"))
@pytest.mark.parametrize("key", [OLD_OFFSET_KEY, OFFSET_KEY], ids=["key-0", "key-1"])
def test_every_version_of_an_offset_is_read(
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
def test_every_version_of_a_generation_is_read(
    value: bytes, version: int, fields: dict[str, Any]
) -> None:
    record = decode_record(GROUP_KEY, value)

    assert record == GenerationFormed(
        group_id=GroupId("g"),
        protocol_type=fields["protocolType"],
        generation=fields["generation"],
        protocol=fields["protocol"],
        leader=fields["leader"],
        state_since_ms=fields["currentStateTimestamp"],
        members=tuple(_member(each, version) for each in fields["members"]),
    )
    assert version != 3 or encode_record(record).value == value


def _member(fields: dict[str, Any], version: int) -> FormedMember:
    return FormedMember(
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
def test_every_version_of_an_offsets_key_is_read(
    key: bytes, version: int, fields: dict[str, Any]
) -> None:
    removed = decode_record(key, None)

    assert removed == OffsetRemoved(
        group_id=fields["group"], topic=fields["topic"], partition=fields["partition"]
    )
    assert version != 1 or encode_record(removed).key == key


@pytest.mark.parametrize(("value", "version", "fields"), vectors("LegacyOffsetCommitValue"))
def test_the_oldest_offset_is_read_under_the_oldest_key(
    value: bytes, version: int, fields: dict[str, Any]
) -> None:
    record = decode_record(OLD_OFFSET_KEY, value)

    assert version == 0
    assert isinstance(record, OffsetCommitted)
    assert (record.offset, record.metadata) == (fields["offset"], fields["metadata"])
    assert (record.commit_ms, record.leader_epoch) == (fields["commitTimestamp"], -1)


# Skipping

KEYS_OF_OTHERS = [
    each for each in VECTORS if each["name"].endswith("Key") and each["version"] not in (0, 1, 2)
]


@pytest.mark.parametrize("vector", KEYS_OF_OTHERS, ids=lambda vector: vector["name"])
@pytest.mark.parametrize("value", [None, b"\x00\x00", b"anything"])
def test_records_of_newer_groups_are_skipped_by_name(
    vector: dict[str, Any], value: bytes | None
) -> None:
    key = bytes.fromhex(vector["hex"])

    assert decode_record(key, value) == Skipped(key=key, reason=vector["name"])


def test_the_kinds_of_newer_groups_are_all_among_them() -> None:
    assert {each["version"] for each in KEYS_OF_OTHERS} == set(KINDS) - {0, 1, 2}


@pytest.mark.parametrize("number", [9, 15, 17, 99, -1])
def test_a_kind_nobody_knows_is_skipped(number: int) -> None:
    key = number.to_bytes(2, signed=True) + b"whatever"

    skipped = decode_record(key, b"\x00\x00")

    assert isinstance(skipped, Skipped)
    assert str(number) in skipped.reason


def test_a_record_without_a_key_is_skipped() -> None:
    assert decode_record(None, b"value") == Skipped(key=b"", reason="no key")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (b"\x00", None),
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
    number=st.sampled_from([*KINDS, 99]),
    rest=st.binary(max_size=40),
    value=st.none() | st.binary(max_size=60),
)
def test_no_bytes_stop_the_reader(number: int, rest: bytes, value: bytes | None) -> None:
    read = decode_record(number.to_bytes(2) + rest, value)

    assert not isinstance(read, TransactionEnded)


# Subscriptions


@pytest.mark.parametrize(("metadata", "version", "fields"), vectors("ConsumerProtocolSubscription"))
def test_the_topics_of_every_version_of_a_subscription_are_found(
    metadata: bytes, version: int, fields: dict[str, Any]
) -> None:
    assert version in range(4)
    assert find_subscribed_topics([metadata]) == frozenset(fields["topics"])


def test_the_topics_of_all_members_are_put_together() -> None:
    one = encode_subscription(Subscription(topics=(Topic("t"), Topic("u"))))
    other = encode_subscription(Subscription(topics=(Topic("u"), Topic("v"))))

    assert find_subscribed_topics([one, other]) == {"t", "u", "v"}
    assert find_subscribed_topics([]) == frozenset()


def test_what_follows_the_topics_cannot_spoil_them() -> None:
    owned = (TopicPartitions(topic=Topic("t"), partitions=(Partition(0),)),)
    whole = encode_subscription(Subscription(topics=(Topic("t"),), owned_partitions=owned))

    for metadata in (whole[:-9], b"\x7f\xff" + whole[2:], b"\xff\xff" + whole[2:], whole + b"more"):
        assert find_subscribed_topics([metadata]) == {"t"}


@pytest.mark.parametrize("metadata", [b"", b"\x00", b"\x00\x00\x00\x00\x00\x09", b"gibberish"])
def test_one_subscription_that_makes_no_sense_hides_the_topics_of_all(metadata: bytes) -> None:
    fine = encode_subscription(Subscription(topics=(Topic("t"),)))

    assert find_subscribed_topics([fine, metadata]) is None
