"""Committed offsets of groups of every type: commit, fetch, delete, expire."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from kohort.coordinator.commands import (
    CommitOffsets,
    CommitTransactionOffsets,
    DeletedTopic,
    DeleteOffsets,
    EndTransaction,
    FetchOffsets,
    OffsetColumns,
    RequestedTopic,
)
from kohort.coordinator.events import CommitRefused, GroupDeleted, OffsetsExpired
from kohort.coordinator.groups.group import Group
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.records import (
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    OffsetsCommitted,
    TransactionEnded,
)
from kohort.coordinator.replies import (
    CommitAnswered,
    DeleteOffsetsAnswered,
    FetchedTopic,
    NotFetched,
    OffsetsFetched,
    PartitionResult,
    TransactionClosed,
)
from kohort.types import (
    ZERO_UUID,
    ErrorCode,
    Millis,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    Uuid,
)

_LATEST_MS: Final = Millis(2**63 - 1)
"""The largest timestamp. Kafka lets the sum overflow, which gives a time in the distant past."""

_NO_ERRORS: Final = (ErrorCode.NONE,)

# Commit


def commit(builder: OutcomeBuilder, group: Group | None, command: CommitOffsets) -> None:
    if group is None:
        error = _find_missing_group_error(command)
    else:
        error = group.find_commit_error(command)
    if error is not None:
        _refuse_commit(builder, command, error)
        return
    if group is not None:
        group.restart_session(builder, command.member_id)
    offsets = command.offsets
    if command.retention_ms is not None:
        expire_ms = min(Millis(builder.now + command.retention_ms), _LATEST_MS)
        _append_offsets(builder, command, expire_ms, None, None)
    elif isinstance(offsets, OffsetColumns):
        builder.append(OffsetsCommitted(command.group_id, offsets, builder.now))
        builder.reply(CommitAnswered(command.ticket, offsets, _NO_ERRORS * len(offsets)))
    else:
        _append_offsets(builder, command, None, None, None)


def _find_missing_group_error(command: CommitOffsets) -> ErrorCode | None:
    """A commit without a generation creates a simple group; members need an existing group."""
    if command.generation < 0:
        return None
    if command.knows_missing_group:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.ILLEGAL_GENERATION


def commit_in_transaction(
    builder: OutcomeBuilder, group: Group | None, command: CommitTransactionOffsets
) -> None:
    """Offsets that count only once their transaction is committed. It restarts no session."""
    if group is not None:
        error = group.find_transactional_commit_error(command)
    else:
        error = None if command.generation < 0 else ErrorCode.ILLEGAL_GENERATION
    if error is not None:
        _refuse_commit(builder, command, error)
        return
    _append_offsets(builder, command, None, command.producer_id, command.producer_epoch)


def end_transaction(builder: OutcomeBuilder, command: EndTransaction) -> None:
    builder.append(TransactionEnded(producer_id=command.producer_id, is_commit=command.is_commit))
    builder.reply(TransactionClosed(ticket=command.ticket))


def _refuse_commit(
    builder: OutcomeBuilder, command: CommitOffsets | CommitTransactionOffsets, error: ErrorCode
) -> None:
    builder.refuse(command.ticket, error)
    builder.emit(
        CommitRefused(
            at=builder.now,
            group_id=command.group_id,
            member_id=command.member_id,
            instance_id=command.instance_id,
            generation=command.generation,
            error=error,
        )
    )


def _append_offsets(
    builder: OutcomeBuilder,
    command: CommitOffsets | CommitTransactionOffsets,
    expire_ms: Millis | None,
    producer_id: ProducerId | None,
    producer_epoch: ProducerEpoch | None,
) -> None:
    bytes_max = builder.config.offset_metadata_max_bytes
    records, now, group_id = builder.outcome.records, builder.now, command.group_id
    errors = [ErrorCode.NONE] * len(command.offsets)
    for index, each in enumerate(command.offsets):
        metadata = each.metadata or ""
        if metadata and _is_longer(metadata, bytes_max):
            errors[index] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        records.append(
            OffsetCommitted(
                group_id,
                each.topic,
                each.partition,
                each.offset,
                now,
                each.leader_epoch,
                metadata,
                each.topic_id,
                expire_ms,
                producer_id,
                producer_epoch,
            )
        )
    builder.reply(CommitAnswered(command.ticket, command.offsets, tuple(errors)))


def _is_longer(text: str, length_max: int) -> bool:
    """As in Java, a character outside the basic multilingual plane counts twice."""
    if 2 * len(text) <= length_max:
        return False
    return len(text.encode("utf-16-le", "surrogatepass")) > 2 * length_max


# Fetch


def fetch(builder: OutcomeBuilder, group: Group | None, command: FetchOffsets) -> None:
    """Answer with the committed offsets. An unknown group has none."""
    if group is not None and not group.is_readable:
        group = None
    if command.topics is not None:
        found = [
            _fetch_topic(group, topic, is_stable=command.require_stable) for topic in command.topics
        ]
    elif group is None:
        found = []
    elif command.require_stable and group.offsets.pending:
        found = [
            _fetch_topic(
                group, RequestedTopic(topic=topic, partitions=tuple(partitions)), is_stable=True
            )
            for topic, partitions in group.offsets.committed.items()
        ]
    else:
        found = [
            FetchedTopic(topic, ZERO_UUID, tuple(partitions.values()))
            for topic, partitions in group.offsets.committed.items()
        ]
    builder.reply(OffsetsFetched(command.ticket, command.group_id, tuple(found)))


def _fetch_topic(group: Group | None, asked: RequestedTopic, *, is_stable: bool) -> FetchedTopic:
    topic, topic_id = asked.topic, asked.topic_id
    committed = _NOTHING if group is None else group.offsets.committed.get(topic, _NOTHING)
    pending = group.offsets.pending if group is not None and is_stable else _NOTHING
    found: list[OffsetCommitted | NotFetched] = []
    for partition in asked.partitions:
        record = committed.get(partition)
        if pending and (topic, partition) in pending:
            found.append(NotFetched(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif record is None or _is_another_topic(record.topic_id, topic_id):
            found.append(_not_committed(partition))
        else:
            found.append(record)
    return FetchedTopic(topic, topic_id, tuple(found))


_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


@lru_cache(maxsize=1_024)
def _not_committed(partition: Partition) -> NotFetched:
    """Most fetches ask for the same partitions, and the value never changes."""
    return NotFetched(partition)


def _is_another_topic(committed: Uuid, requested: Uuid) -> bool:
    """A topic that was deleted and created again has the old name, but another id."""
    return committed != requested and ZERO_UUID not in (committed, requested)


# Delete


def delete(builder: OutcomeBuilder, group: Group | None, command: DeleteOffsets) -> None:
    if group is None:
        builder.refuse(command.ticket, ErrorCode.GROUP_ID_NOT_FOUND)
        return
    group_error = group.find_offset_delete_error()
    if group_error is not None:
        builder.refuse(command.ticket, group_error)
        return
    results = []
    for topic in command.topics:
        is_subscribed = group.is_subscribed(topic.topic)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else ErrorCode.NONE
        for partition in topic.partitions:
            results.append(PartitionResult(topic=topic.topic, partition=partition, error=error))
            if not is_subscribed:
                _remove(builder, group, topic.topic, partition)
    builder.reply(DeleteOffsetsAnswered(ticket=command.ticket, results=tuple(results)))


def _remove(builder: OutcomeBuilder, group: Group, topic: Topic, partition: Partition) -> None:
    is_pending = group.offsets.has_pending(topic, partition)
    if is_pending or group.offsets.find(topic, partition) is not None:
        builder.append(OffsetRemoved(group_id=group.group_id, topic=topic, partition=partition))


def remove_all(builder: OutcomeBuilder, group: Group) -> None:
    partitions = {(each.topic, each.partition): None for each in group.offsets}
    partitions.update(dict.fromkeys(group.offsets.pending))
    for topic, partition in partitions:
        builder.append(OffsetRemoved(group_id=group.group_id, topic=topic, partition=partition))


def remove_topic(builder: OutcomeBuilder, group: Group, deleted: DeletedTopic) -> None:
    """Remove the offsets of a deleted topic, but not those of a later topic of the same name."""
    partitions = {
        partition: None
        for partition, record in group.offsets.committed.get(deleted.topic, {}).items()
        if not _is_another_topic(record.topic_id, deleted.topic_id)
    }
    for (topic, partition), waiting in group.offsets.pending.items():
        pending = (each.record.topic_id for each in waiting.values())
        if topic == deleted.topic and not all(
            _is_another_topic(topic_id, deleted.topic_id) for topic_id in pending
        ):
            partitions[partition] = None
    for partition in partitions:
        builder.append(
            OffsetRemoved(group_id=group.group_id, topic=deleted.topic, partition=partition)
        )


# Expiry, as in KIP-211


def expire(builder: OutcomeBuilder, groups: Iterable[Group]) -> None:
    """Remove offsets that were not used for the retention time, and groups left without any."""
    for group in groups:
        expired = [each for each in group.expirable_offsets() if _is_expired(builder, group, each)]
        for each in expired:
            builder.append(
                OffsetRemoved(group_id=group.group_id, topic=each.topic, partition=each.partition)
            )
        if expired:
            builder.emit(
                OffsetsExpired(
                    at=builder.now,
                    group_id=group.group_id,
                    partitions=tuple((each.topic, each.partition) for each in expired),
                )
            )
        if not group.is_empty or group.offsets.pending:
            continue
        count = sum(len(partitions) for partitions in group.offsets.committed.values())
        if len(expired) == count:
            remove_group(builder, group, is_expired=True)


def remove_group(builder: OutcomeBuilder, group: Group, *, is_expired: bool) -> None:
    builder.append(GroupRemoved(group_id=group.group_id))
    group.cancel_timers(builder)
    builder.emit(GroupDeleted(at=builder.now, group_id=group.group_id, is_expired=is_expired))


def _is_expired(builder: OutcomeBuilder, group: Group, committed: OffsetCommitted) -> bool:
    if group.offsets.has_pending(committed.topic, committed.partition):
        return False
    if committed.expire_ms is not None:
        return builder.now >= committed.expire_ms
    unused_ms = builder.now - group.retention_start(committed)
    return unused_ms >= builder.config.offsets_retention_ms
