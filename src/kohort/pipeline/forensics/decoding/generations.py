"""Group metadata from bytes to columns, by the wire's own readers: such records are few.

What members tell one another is read for consumers only. Of any other kind of group, and where a
consumer's bytes make no sense, it is null: the group itself does not depend on it.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, TypeVar

import pyarrow as pa

from kohort.pipeline.forensics.decoding.batches import Problem, Row, in_utc, read_carefully
from kohort.wire.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    decode_key,
    decode_value,
)
from kohort.wire.embedded import TopicPartitions, decode_assignment, decode_subscription
from kohort.wire.errors import WireError

_CONSUMER: Final = "consumer"

_REMEMBERED: Final = 4096
"""Most members want and get in one generation what they did in the one before."""

PARTITION: Final = pa.struct([pa.field("topic", pa.string()), pa.field("partition", pa.int32())])

_MEMBER: Final = pa.struct(
    [
        pa.field("member_id", pa.string()),
        pa.field("instance_id", pa.string()),
        pa.field("client_id", pa.string()),
        pa.field("client_host", pa.string()),
        pa.field("rebalance_timeout_ms", pa.int32()),
        pa.field("session_timeout_ms", pa.int32()),
        pa.field("topics", pa.list_(pa.string())),
        pa.field("owned", pa.list_(PARTITION)),
        pa.field("assigned", pa.list_(PARTITION)),
    ]
)

GENERATIONS: Final = pa.schema(
    [
        pa.field("group_id", pa.string()),
        pa.field("generation", pa.int32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("protocol_type", pa.string()),
        pa.field("protocol", pa.string()),
        pa.field("leader", pa.string()),
        pa.field("members", pa.list_(_MEMBER)),
    ]
)

T = TypeVar("T")


def decode_generations(records: pa.RecordBatch) -> pa.RecordBatch:
    """The generations among records whose keys are those of groups."""
    return _read_all(records)[0]


def find_problems(records: pa.RecordBatch) -> list[Problem]:
    """What `decode_generations` leaves out of the same records."""
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
        "members": [_party(each) | read(each) for each in content.members],
    }


def _party(member: MemberMetadata) -> dict[str, Any]:
    # Version 0 had no rebalance timeout: the session timeout served as both.
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


@lru_cache(maxsize=_REMEMBERED)
def _subscription(data: bytes) -> dict[str, Any]:
    read = _find(decode_subscription, data)
    if read is None:
        return {}
    return {"topics": list(read.topics), "owned": _pairs(read.owned_partitions)}


@lru_cache(maxsize=_REMEMBERED)
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
