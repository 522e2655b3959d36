"""Group metadata of every version and protocol type, and malformed members."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from kohort.pipeline.forensics.decoders.generation_decoder import decode_generations, find_problems
from kohort.types import Generation, GroupId, Topic
from kohort.wire.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    encode_key,
    encode_value,
)
from kohort.wire.consumer_protocol import (
    Assignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from tests.coordinator.stored_log import group, member
from tests.pipeline.forensics.history_bytes import places
from tests.wire.kafka_vectors import KafkaVector, vectors_of

KEY = encode_key(GroupMetadataKey(group=GroupId("g")))


def batch_of(*pairs: tuple[bytes, bytes | None]) -> pa.RecordBatch:
    rows = [
        {"partition": 3, "offset": offset, "timestamp": 1_000_000, "key": key, "value": value}
        for offset, (key, value) in enumerate(pairs)
    ]
    schema = pa.schema(
        [
            pa.field("partition", pa.int32()),
            pa.field("offset", pa.int64()),
            pa.field("timestamp", pa.timestamp("us", tz="America/New_York")),
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
        ]
    )
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def rows_of(*pairs: tuple[bytes, bytes | None]) -> list[dict[str, Any]]:
    batch = decode_generations(batch_of(*pairs))
    batch.validate(full=True)
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def consumer(
    subscription: bytes, assignment: bytes, protocol_type: str = "consumer"
) -> dict[str, Any]:
    """The decoded member with these bytes."""
    mine = replace(member("a-1", "i-1"), subscription=subscription, assignment=assignment)
    (row,) = rows_of(group(mine, protocol_type=protocol_type)[:2])
    (found,) = row["members"]
    known: dict[str, Any] = found
    return known


@pytest.mark.parametrize("version", range(5))
def test_a_generation_of_any_version_has_its_members(version: int) -> None:
    (row,) = rows_of(group(member("a-1", "i-1"), member("b-1"), version=version)[:2])

    assert (row["generation"], row["kind"], row["protocol"]) == (5, "formed", "range")
    assert (row["leader"], row["protocol_type"]) == ("a-1", "consumer")
    assert (row["partition"], row["offset"]) == (3, 0)
    first, second = row["members"]
    assert first["instance_id"] == ("i-1" if version >= 3 else None)
    assert (second["member_id"], second["client_id"]) == ("b-1", "b")
    assert first["session_timeout_ms"] == 10_000
    # Before version 1 the session timeout served as both.
    assert first["rebalance_timeout_ms"] == (60_000 if version >= 1 else 10_000)


@pytest.mark.parametrize("vector", vectors_of("GroupMetadataValue"), ids=str)
def test_records_of_kafka_are_decoded_as_kafka_does(vector: KafkaVector) -> None:
    (row,) = rows_of((KEY, vector.data))

    fields = vector.fields
    assert row["generation"] == fields["generation"]
    assert (row["protocol_type"], row["protocol"]) == (fields["protocolType"], fields["protocol"])
    assert [each["member_id"] for each in row["members"]] == [
        each["memberId"] for each in fields["members"]
    ]


@pytest.mark.parametrize("version", range(4))
def test_consumer_metadata_of_every_version_is_decoded(version: int) -> None:
    wanted = Subscription(topics=(Topic("t"), Topic("u")), owned_partitions=places("t0"))
    got = Assignment(assigned_partitions=places("t0 t2 u1"))

    found = consumer(encode_subscription(wanted, version), encode_assignment(got, version))

    assert found["topics"] == ["t", "u"]
    assert found["owned"] == ([{"topic": "t", "partition": 0}] if version else [])
    assert found["assigned"] == [
        {"topic": "t", "partition": 0},
        {"topic": "t", "partition": 2},
        {"topic": "u", "partition": 1},
    ]


def test_malformed_consumer_metadata_is_null() -> None:
    found = consumer(b"\0", b"\0\1\xff")

    assert (found["topics"], found["owned"], found["assigned"]) == (None, None, None)


def test_an_empty_assignment_has_no_partitions() -> None:
    assert consumer(b"\0", b"")["assigned"] == []


def test_metadata_of_other_protocol_types_is_not_decoded() -> None:
    words = encode_subscription(Subscription(topics=(Topic("t"),)))
    got = encode_assignment(Assignment(assigned_partitions=places("t0")))

    found = consumer(words, got, protocol_type="connect")

    assert (found["topics"], found["owned"], found["assigned"]) == (None, None, None)


def test_a_group_without_members_is_emptied_and_a_tombstone_deletes_it() -> None:
    emptied, deleted = rows_of(group()[:2], (KEY, None))

    assert (emptied["kind"], emptied["generation"], emptied["members"]) == ("emptied", 5, [])
    assert (deleted["kind"], deleted["generation"], deleted["members"]) == ("deleted", None, [])


def test_undecodable_records_are_left_out_and_reported() -> None:
    sound = encode_value(GroupMetadataValue(protocol_type="consumer", generation=Generation(1)), 3)
    batch = batch_of((KEY, sound), (KEY, sound[:-1]), (KEY + b"x", sound), (KEY, b"\0\x09"))

    reasons = {each.index: each.reason for each in find_problems(batch)}

    assert decode_generations(batch).num_rows == 1
    assert sorted(reasons) == [1, 2, 3]
    assert "members" in reasons[1]
    assert "after the message" in reasons[2]
    assert "version 9" in reasons[3]
