"""Converts errors and committed offsets of confluent-kafka."""

from collections.abc import Mapping

from confluent_kafka import KafkaError, TopicPartition

from kohort.types import ErrorCode
from tests.contract.clients.client_library import (
    CommittedOffset,
    NoValidOffset,
    RequestRejected,
    TopicAndPartition,
)


def rejection_of(error: KafkaError) -> Exception:
    """Translates an error of the library."""
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError._NO_OFFSET):  # noqa: SLF001
        return NoValidOffset(error.str())
    if error.name() in ("_FATAL", "_FENCED"):
        # A consumer is fenced for one reason only.
        return RequestRejected("FENCED_INSTANCE_ID", error.str())
    if error.code() > 0:
        return RequestRejected(ErrorCode(error.code()).name, error.str())
    return RequestRejected(error.name(), error.str())


def to_partitions(to_commit: Mapping[TopicAndPartition, CommittedOffset]) -> list[TopicPartition]:
    return [_to_partition(tp, committed) for tp, committed in to_commit.items()]


def _to_partition(tp: TopicAndPartition, committed: CommittedOffset) -> TopicPartition:
    if committed.leader_epoch is None:
        return TopicPartition(*tp, committed.offset, committed.metadata)
    return TopicPartition(*tp, committed.offset, committed.metadata, committed.leader_epoch)


def to_committed(found: TopicPartition) -> CommittedOffset | None:
    if found.offset < 0:
        return None
    return CommittedOffset(
        offset=found.offset, metadata=found.metadata or "", leader_epoch=found.leader_epoch
    )
