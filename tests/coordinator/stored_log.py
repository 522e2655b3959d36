"""Encoded records of `__consumer_offsets` in any version, and a coordinator that loaded them."""

from collections.abc import Iterable

from kohort.coordinator.config import GroupConfig
from kohort.coordinator.record_codec import Skipped, decode_record
from kohort.coordinator.records import OneRecord, TransactionEnded, UnknownRecord
from kohort.types import (
    Generation,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
)
from kohort.wire.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from tests.coordinator.driver import Driver
from tests.coordinator.scenario import GROUP, TOPIC, Scenario, subscription_to

NOW = Millis(100 * 24 * 60 * 60_000)
"""The time of loading, and the default timestamp of records."""

Stored = tuple[bytes, bytes | None, int | None]
"""Key and value of a record, and the producer of its transaction."""


def member(
    member_id: str, instance_id: str | None = None, topics: tuple[str, ...] = (TOPIC,)
) -> MemberMetadata:
    return MemberMetadata(
        member_id=MemberId(member_id),
        group_instance_id=None if instance_id is None else InstanceId(instance_id),
        client_id=member_id[0],
        client_host="/10.0.0.1",
        rebalance_timeout=Millis(60_000),
        session_timeout=Millis(10_000),
        subscription=subscription_to(*topics)[0].metadata,
        assignment=b"share of " + member_id.encode(),
    )


def group(
    *members: MemberMetadata,
    version: int = 3,
    protocol_type: str = "consumer",
    leader: str | None = "a-1",
    since_ms: int = NOW,
) -> Stored:
    content = GroupMetadataValue(
        protocol_type=protocol_type,
        generation=Generation(5),
        protocol="range" if members else None,
        leader=MemberId(leader) if members and leader is not None else None,
        current_state_timestamp=Millis(since_ms),
        members=members,
    )
    return encode_key(GroupMetadataKey(group=GROUP)), encode_value(content, version), None


def offset(
    number: int,
    *,
    partition: int = 0,
    version: int = 4,
    key_version: int = 1,
    commit_ms: int = NOW,
    expire_ms: int = -1,
    producer_id: int | None = None,
) -> Stored:
    key = encode_key(OffsetCommitKey(group=GROUP, topic=TOPIC, partition=Partition(partition)))
    content = OffsetCommitValue(
        offset=Offset(number),
        metadata="event",
        commit_timestamp=Millis(commit_ms),
        expire_timestamp=Millis(expire_ms),
    )
    return key_version.to_bytes(2) + key[2:], encode_value(content, version), producer_id


def tombstone(stored: Stored) -> Stored:
    return stored[0], None, None


def loaded(*log: Stored | TransactionEnded, config: GroupConfig | None = None) -> Scenario:
    """A coordinator that has loaded this log and is active."""
    driver = Driver(config=config or GroupConfig(), now=NOW)
    driver.records += _decoded(log)
    driver.crash()
    return Scenario(driver)


def _decoded(log: Iterable[Stored | TransactionEnded]) -> Iterable[OneRecord]:
    for each in log:
        if isinstance(each, TransactionEnded):
            yield each
            continue
        key, value, producer_id = each
        producer = () if producer_id is None else (ProducerId(producer_id), ProducerEpoch(0))
        read = decode_record(key, value, *producer)
        if not isinstance(read, Skipped | UnknownRecord):
            yield read


def ended(producer_id: int, *, is_commit: bool) -> TransactionEnded:
    return TransactionEnded(producer_id=ProducerId(producer_id), is_commit=is_commit)
