"""Where a group has got to: committing, fetching, deleting, and what becomes of it with time."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from kohort.coordinator import rebalance
from kohort.coordinator.commands import (
    CommitOffsets,
    CommitTransactionOffsets,
    DeletedTopic,
    DeleteOffsets,
    EndTransaction,
    FetchOffsets,
    OffsetColumns,
    TopicPartitions,
)
from kohort.coordinator.group import CONSUMER, Group
from kohort.coordinator.notes import CommitRefused, GroupDeleted, OffsetsExpired
from kohort.coordinator.outcome import TimerKind
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
from kohort.coordinator.states import ANSWERS, DEAD, EMPTY, STABLE, Answer, GroupState, Question
from kohort.coordinator.turn import Turn
from kohort.types import (
    ZERO_UUID,
    ErrorCode,
    Millis,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    Uuid,
    maker,
)

_LATEST_MS: Final = Millis(2**63 - 1)
"""The last moment that can be written down. Kafka counts on, and arrives in the distant past."""

# Committing


def commit(turn: Turn, group: Group | None, command: CommitOffsets) -> None:
    error = _find_commit_fault(group, command)
    if error is not None:
        _refuse_commit(turn, command, error)
        return
    member = None if group is None else group.roster.members.get(command.member_id)
    if group is not None and member is not None:
        rebalance.rearm_session(turn, group, member)
    offsets = command.offsets
    if command.retention_ms is not None:
        expire_ms = min(Millis(turn.now + command.retention_ms), _LATEST_MS)
        _keep_offsets(turn, command, expire_ms, None, None)
    elif isinstance(offsets, OffsetColumns):
        turn.keep(_make_records(command.group_id, offsets, turn.now))
        turn.reply(_make_reply(command.ticket, offsets, _ALL_KEPT * len(offsets)))
    else:
        _keep_offsets(turn, command, None, None, None)


def _find_commit_fault(group: Group | None, command: CommitOffsets) -> ErrorCode | None:
    is_nobody = command.generation < 0
    if group is None:
        if is_nobody:
            return None  # a simple group comes into being with its first commit
        if command.knows_missing_group:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION
    state = group.roster.state
    if state is DEAD or (is_nobody and state is EMPTY):
        return _as_fault(_TO_NOBODY[state])
    if not is_nobody or command.member_id or command.instance_id is not None:
        fault = _find_member_fault(group, command)
        return fault or _as_fault(_TO_MEMBERS[state])
    return _as_fault(_TO_NOBODY[state])


_TO_MEMBERS: Final = ANSWERS[Question.COMMIT]
_TO_NOBODY: Final = ANSWERS[Question.COMMIT_SIMPLE]


def commit_in_transaction(
    turn: Turn, group: Group | None, command: CommitTransactionOffsets
) -> None:
    """Offsets that count only once their transaction is committed; no session is kept by them."""
    error = _find_transaction_fault(group, command)
    if error is not None:
        _refuse_commit(turn, command, error)
        return
    _keep_offsets(turn, command, None, command.producer_id, command.producer_epoch)


def _find_transaction_fault(
    group: Group | None, command: CommitTransactionOffsets
) -> ErrorCode | None:
    is_nobody = command.generation < 0
    if group is None:
        return None if is_nobody else ErrorCode.ILLEGAL_GENERATION
    state = group.roster.state
    fault = _as_fault(ANSWERS[Question.COMMIT_TRANSACTION][state])
    if fault is not None or (is_nobody and state is GroupState.EMPTY):
        return fault
    if not is_nobody or command.member_id or command.instance_id is not None:
        return _find_member_fault(group, command)
    return None  # older transactional clients do not say who they are


def end_transaction(turn: Turn, command: EndTransaction) -> None:
    turn.keep(TransactionEnded(producer_id=command.producer_id, is_commit=command.is_commit))
    turn.reply(TransactionClosed(ticket=command.ticket))


def _find_member_fault(
    group: Group, command: CommitOffsets | CommitTransactionOffsets
) -> ErrorCode | None:
    fault = group.roster.find_fault(command.member_id, command.instance_id)
    if fault is None and command.generation != group.roster.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return fault


def _as_fault(answer: Answer | ErrorCode) -> ErrorCode | None:
    return answer if isinstance(answer, ErrorCode) else None


def _refuse_commit(
    turn: Turn, command: CommitOffsets | CommitTransactionOffsets, error: ErrorCode
) -> None:
    turn.refuse(command.ticket, error)
    turn.note(
        CommitRefused(
            at=turn.now,
            group_id=command.group_id,
            member_id=command.member_id,
            instance_id=command.instance_id,
            generation=command.generation,
            error=error,
        )
    )


def _keep_offsets(
    turn: Turn,
    command: CommitOffsets | CommitTransactionOffsets,
    expire_ms: Millis | None,
    producer_id: ProducerId | None,
    producer_epoch: ProducerEpoch | None,
) -> None:
    longest = turn.limits.offset_metadata_max_bytes
    records, now, group_id = turn.outcome.records, turn.now, command.group_id
    errors = [ErrorCode.NONE] * len(command.offsets)
    for index, each in enumerate(command.offsets):
        metadata = each.metadata or ""
        if metadata and _is_longer(metadata, longest):
            errors[index] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        records.append(
            _make_record(
                group_id,
                each.topic,
                each.partition,
                each.offset,
                each.leader_epoch,
                metadata,
                now,
                expire_ms,
                each.topic_id,
                producer_id,
                producer_epoch,
            )
        )
    turn.reply(_make_reply(command.ticket, command.offsets, tuple(errors)))


_ALL_KEPT: Final = (ErrorCode.NONE,)
_make_record: Final = maker(OffsetCommitted)
_make_records: Final = maker(OffsetsCommitted)
_make_reply: Final = maker(CommitAnswered)


def _is_longer(text: str, longest: int) -> bool:
    """Counted as Java counts: a character outside the basic plane counts twice."""
    if 2 * len(text) <= longest:
        return False
    return len(text.encode("utf-16-le", "surrogatepass")) > 2 * longest


# Fetching


def fetch(turn: Turn, group: Group | None, command: FetchOffsets) -> None:
    """What the group has committed; a group nobody knows has committed nothing."""
    if group is not None and group.roster.state in _SILENT:
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
                group, TopicPartitions(topic=topic, partitions=tuple(kept)), is_stable=True
            )
            for topic, kept in group.offsets.committed.items()
        ]
    else:
        found = [
            _make_topic(topic, ZERO_UUID, tuple(kept.values()))
            for topic, kept in group.offsets.committed.items()
        ]
    turn.reply(_make_fetched(command.ticket, command.group_id, tuple(found)))


_SILENT: Final = tuple(
    state for state, answer in ANSWERS[Question.FETCH].items() if answer is Answer.NOTHING
)
_make_fetched: Final = maker(OffsetsFetched)
_make_topic: Final = maker(FetchedTopic)
_make_missing: Final = maker(NotFetched)
"""All offsets of a thousand groups are asked for in one request."""


def _fetch_topic(group: Group | None, asked: TopicPartitions, *, is_stable: bool) -> FetchedTopic:
    topic, topic_id = asked.topic, asked.topic_id
    committed = _NOTHING if group is None else group.offsets.committed.get(topic, _NOTHING)
    pending = group.offsets.pending if group is not None and is_stable else _NOTHING
    found: list[OffsetCommitted | NotFetched] = []
    for partition in asked.partitions:
        kept = committed.get(partition)
        if pending and (topic, partition) in pending:
            found.append(_make_missing(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif kept is None or _is_another_topic(kept.topic_id, topic_id):
            found.append(_make_missing(partition, _NO_ERROR))
        else:
            found.append(kept)
    return _make_topic(topic, topic_id, tuple(found))


_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})
_NO_ERROR: Final = ErrorCode.NONE


def _is_another_topic(kept: Uuid, asked: Uuid) -> bool:
    """A topic deleted and made anew has the name of the old one, but not its offsets."""
    return kept != asked and ZERO_UUID not in (kept, asked)


# Deleting


def delete(turn: Turn, group: Group | None, command: DeleteOffsets) -> None:
    if group is None:
        turn.refuse(command.ticket, ErrorCode.GROUP_ID_NOT_FOUND)
        return
    roster = group.roster
    answer = ANSWERS[Question.DELETE_OFFSETS][roster.state]
    if isinstance(answer, ErrorCode):
        turn.refuse(command.ticket, answer)
        return
    if answer is Answer.ACCEPT_UNSUBSCRIBED and roster.protocol_type != CONSUMER:
        turn.refuse(command.ticket, ErrorCode.NON_EMPTY_GROUP)
        return
    results = []
    for topic in command.topics:
        is_read = roster.is_subscribed(topic.topic)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
        for partition in topic.partitions:
            results.append(PartitionResult(topic=topic.topic, partition=partition, error=error))
            if not is_read:
                _forget(turn, group, topic.topic, partition)
    turn.reply(DeleteOffsetsAnswered(ticket=command.ticket, results=tuple(results)))


def _forget(turn: Turn, group: Group, topic: Topic, partition: Partition) -> None:
    is_pending = group.offsets.has_pending(topic, partition)
    if is_pending or group.offsets.find(topic, partition) is not None:
        turn.keep(OffsetRemoved(group_id=group.group_id, topic=topic, partition=partition))


def forget_all(turn: Turn, group: Group) -> None:
    partitions = {(kept.topic, kept.partition): None for kept in group.offsets}
    partitions.update(dict.fromkeys(group.offsets.pending))
    for topic, partition in partitions:
        turn.keep(OffsetRemoved(group_id=group.group_id, topic=topic, partition=partition))


def forget_topic(turn: Turn, group: Group, deleted: DeletedTopic) -> None:
    """A topic is gone: its offsets too, unless they belong to a later topic of the same name."""
    partitions = {
        partition: None
        for partition, kept in group.offsets.committed.get(deleted.topic, {}).items()
        if not _is_another_topic(kept.topic_id, deleted.topic_id)
    }
    for (topic, partition), waiting in group.offsets.pending.items():
        pending = (each.record.topic_id for each in waiting.values())
        if topic == deleted.topic and not all(
            _is_another_topic(topic_id, deleted.topic_id) for topic_id in pending
        ):
            partitions[partition] = None
    for partition in partitions:
        turn.keep(OffsetRemoved(group_id=group.group_id, topic=deleted.topic, partition=partition))


# Letting go (KIP-211)


def expire(turn: Turn, groups: Iterable[Group]) -> None:
    """Let go of offsets nobody has needed for the retention time, and of groups left with none."""
    for group in groups:
        gone = [kept for kept in _unheld(group) if _is_expired(turn, group, kept)]
        for kept in gone:
            turn.keep(
                OffsetRemoved(group_id=group.group_id, topic=kept.topic, partition=kept.partition)
            )
        if gone:
            turn.note(
                OffsetsExpired(
                    at=turn.now,
                    group_id=group.group_id,
                    partitions=tuple((kept.topic, kept.partition) for kept in gone),
                )
            )
        if group.roster.state is not EMPTY or group.offsets.pending:
            continue
        kept_count = sum(len(partitions) for partitions in group.offsets.committed.values())
        if len(gone) == kept_count:
            remove_group(turn, group, is_expired=True)


def remove_group(turn: Turn, group: Group, *, is_expired: bool) -> None:
    turn.keep(GroupRemoved(group_id=group.group_id))
    for member_id in group.roster.pending:
        turn.disarm(TimerKind.PENDING, group.group_id, member_id)
    turn.note(GroupDeleted(at=turn.now, group_id=group.group_id, is_expired=is_expired))


def _unheld(group: Group) -> Iterable[OffsetCommitted]:
    """What nobody holds on to, so that it is a matter of time. Of living groups there are many
    and of such offsets few, so these are found by their topics."""
    roster = group.roster
    if roster.protocol_type is None or roster.state is EMPTY:
        return group.offsets
    subscribed = roster.subscribed_topics
    if roster.state is not STABLE or subscribed is None:
        return ()
    return [
        kept
        for topic, partitions in group.offsets.committed.items()
        if topic not in subscribed
        for kept in partitions.values()
    ]


def _is_expired(turn: Turn, group: Group, kept: OffsetCommitted) -> bool:
    roster = group.roster
    if group.offsets.has_pending(kept.topic, kept.partition):
        return False
    if kept.expire_ms is not None:
        return turn.now >= kept.expire_ms
    # Of a simple group, and of a topic that nobody reads, nothing but the commit tells of its use.
    # A group kept before Kafka stored the time of its state has only its commits to go by as well.
    since = kept.commit_ms
    if roster.protocol_type is not None and roster.state is EMPTY and roster.state_since_ms >= 0:
        since = roster.state_since_ms
    return turn.now - since >= turn.limits.offsets_retention_ms
