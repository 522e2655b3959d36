"""Decode group metadata into Arrow columns with kohort.wire: slow, but such records are few.

Subscriptions and assignments are decoded for consumers only. They are null for other protocol
types and if they are malformed.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, TypeVar

import pyarrow as pa

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.decoders.batches import (
    Problem,
    Row,
    in_utc,
    read_carefully,
    schema_of,
)
from kohort.wire.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    decode_key,
    decode_value,
)
from kohort.wire.consumer_protocol import TopicPartitions, decode_assignment, decode_subscription
from kohort.wire.errors import WireError

_CONSUMER: Final = "consumer"

_CACHE_SIZE: Final = 4096
"""Most members have the same subscription and assignment in successive generations."""

GENERATIONS: Final = schema_of(tables.GENERATIONS)

T = TypeVar("T")


def decode_generations(records: pa.RecordBatch) -> pa.RecordBatch:
    """Decode records with keys of group metadata."""
    return _read_all(records)[0]


def find_problems(records: pa.RecordBatch) -> list[Problem]:
    """The records that `decode_generations` leaves out, with the reasons."""
    return _read_all(records)[1]


def _read_all(records: pa.RecordBatch) -> tuple[pa.RecordBatch, list[Problem]]:
    return read_carefully(in_utc(records), range(records.num_rows), _read, GENERATIONS)


def _read(record: Row) -> Row:
    key: GroupMetadataKey = decode_key(record["key"].as_py())
    content: GroupMetadataValue | None = decode_value(key, record["value"].as_py())
    row = {
        "group_id": key.group,
        "at": record["timestamp"],
        "partition": record["partition"].as_py(),
        "offset": record["offset"].as_py(),
    }
    if content is None:
        return row | {"kind": "deleted", "members": []}
    read = _read_consumer if content.protocol_type == _CONSUMER else _read_nothing
    return row | {
        "generation": content.generation,
        "kind": "formed" if content.members else "emptied",
        "protocol_type": content.protocol_type,
        "protocol": content.protocol,
        "leader": content.leader,
        "members": [_member(each) | read(each) for each in content.members],
    }


def _member(member: MemberMetadata) -> dict[str, Any]:
    # Version 0 has no rebalance timeout; Kafka uses the session timeout instead.
    has_timeout = member.rebalance_timeout >= 0
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout_ms": (
            member.rebalance_timeout if has_timeout else member.session_timeout
        ),
        "session_timeout_ms": member.session_timeout,
    }


def _read_nothing(_member: MemberMetadata) -> dict[str, Any]:
    return {}


def _read_consumer(member: MemberMetadata) -> dict[str, Any]:
    return _subscription(member.subscription) | {"assigned": _assignment(member.assignment)}


@lru_cache(maxsize=_CACHE_SIZE)
def _subscription(data: bytes) -> dict[str, Any]:
    read = _find(decode_subscription, data)
    if read is None:
        return {}
    return {"topics": list(read.topics), "owned": _pairs(read.owned_partitions)}


@lru_cache(maxsize=_CACHE_SIZE)
def _assignment(data: bytes) -> list[dict[str, Any]] | None:
    if not data:
        return []
    read = _find(decode_assignment, data)
    return None if read is None else _pairs(read.assigned_partitions)


def _find(decode: Callable[[bytes], T], data: bytes) -> T | None:
    try:
        return decode(data)
    except WireError:
        return None


def _pairs(topics: Iterable[TopicPartitions]) -> list[dict[str, Any]]:
    return [
        {"topic": each.topic, "partition": partition}
        for each in topics
        for partition in each.partitions
    ]
