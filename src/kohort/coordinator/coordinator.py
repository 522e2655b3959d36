"""The group coordinator: commands are decided to outcomes, and only records change hard state.

    decide(command, now) -> Outcome    reads hard state, may change soft state
    apply(record), apply_all(records)  the only way hard state changes; also how it is loaded
    start()                            before loading: requests are refused until it is done
    fail(outcome, error, now)          an outcome's records could not be stored: what to do instead
    resume(now) -> Outcome             after loading: sessions start, groups over capacity rebalance

It never waits, reads no clock, draws no random number, writes nothing and logs nothing. The runtime
stores an outcome's records before it carries out anything else of that outcome. `now` is the time
of the wall clock: for timestamps, and for the expiry of offsets. It may go back. Sessions and all
other deadlines are timers, which are set with a delay, so that no clock step changes them.

Offsets, expiry and administration use the interface `Group`; only commands of the classic protocol
go to `groups.classic`.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, assert_never

from kohort.coordinator import group_admin, offsets
from kohort.coordinator.commands import (
    NO_MEMBER,
    Command,
    CommitOffsets,
    CommitTransactionOffsets,
    DeletedTopic,
    DeleteGroups,
    DeleteOffsets,
    DescribeGroups,
    EndTransaction,
    FetchManyOffsets,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    RebalanceGroup,
    Request,
    Shutdown,
    SyncGroup,
    TimerFired,
    TopicsChanged,
)
from kohort.coordinator.committed_offsets import CommittedOffsets
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.events import AppendFailed
from kohort.coordinator.groups.classic import heartbeat, join, leave, lifecycle, sync_phase
from kohort.coordinator.groups.classic.group import ClassicGroup, restore
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.records import (
    ClassicGroupMetadata,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    OffsetsCommitted,
    Record,
    TransactionEnded,
    UnknownRecord,
)
from kohort.coordinator.replies import HeartbeatAccepted
from kohort.types import ErrorCode, GroupId, Millis, ProducerId


class CoordinatorState(StrEnum):
    """Whether the coordinator takes requests."""

    NOT_STARTED = "not-started"
    LOADING = "loading"
    ACTIVE = "active"
    STOPPED = "stopped"


_ACTIVE: Final = CoordinatorState.ACTIVE

_APPEND_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The errors that clients get when records cannot be stored: they do not expect storage errors."""

_NEEDS_GROUP_ID: Final = (
    JoinGroup,
    SyncGroup,
    Heartbeat,
    LeaveGroup,
    CommitTransactionOffsets,
    DeleteOffsets,
)
"""Requests that need a group id. As in Kafka, plain commits and fetches accept an empty one."""


class Coordinator:
    """All groups of one node. It is rebuilt from records, then resumed, then takes commands."""

    def __init__(self, config: GroupConfig | None = None) -> None:
        self.config = config or GroupConfig()
        self.phase = CoordinatorState.NOT_STARTED
        self.groups: dict[GroupId, ClassicGroup] = {}
        self._open_transactions: dict[ProducerId, dict[GroupId, None]] = {}
        """The groups in which a producer has pending offsets."""
        self.unknown_records: dict[bytes, UnknownRecord] = {}
        """Hard: by key, the last record of each kind that is not implemented here."""

    # Deciding

    def decide(self, command: Command, now: Millis) -> Outcome:
        # Nearly all commands are heartbeats and commits, so these are checked first.
        if isinstance(command, Heartbeat) and self.phase is _ACTIVE:
            group = self.groups.get(command.group_id)
            usual = heartbeat.find_usual_outcome(group, command)
            if usual is not None:
                return usual
        builder = OutcomeBuilder(now, self.config)
        if isinstance(command, CommitOffsets) and self.phase is _ACTIVE:
            group = self.groups.get(command.group_id)
            offsets.commit(builder, group, command)
            # Applying the first commit of a simple group creates the group, which others see.
            builder.outcome.is_deferrable = group is not None
            return builder.outcome
        match command:
            case Shutdown():
                self._shut_down(builder)
            case TimerFired() | TopicsChanged() | RebalanceGroup() if (
                self.phase is not CoordinatorState.ACTIVE
            ):
                pass  # a timer from before a restart; deleted topics are reported after loading
            case TimerFired():
                self._on_timer(builder, command.key)
            case TopicsChanged():
                self._remove_topics(builder, command.deleted)
            case RebalanceGroup():
                lifecycle.force_rebalance(builder, self.groups.get(command.group_id))
            case FetchManyOffsets():
                self._answer_all(builder, command.fetches)
            case _:
                self._answer(builder, command)
        return builder.outcome

    def _remove_topics(self, builder: OutcomeBuilder, topics: Iterable[DeletedTopic]) -> None:
        for group in self.groups.values():
            for topic in topics:
                offsets.remove_topic(builder, group, topic)

    def _answer_all(self, builder: OutcomeBuilder, commands: Iterable[Request]) -> None:
        for command in commands:
            self._answer(builder, command)

    def _answer(self, builder: OutcomeBuilder, command: Request) -> None:
        fault = self._find_fault(command)
        if fault is not None:
            member_id = command.member_id if isinstance(command, JoinGroup) else NO_MEMBER
            builder.refuse(command.ticket, fault, member_id)
        elif self.phase is not CoordinatorState.ACTIVE:
            self._answer_unready(builder, command)
        else:
            self._dispatch(builder, command)

    def _find_fault(self, command: Request) -> ErrorCode | None:
        """Return the error of a request that is wrong whatever the state of its group is."""
        if self.phase is CoordinatorState.NOT_STARTED:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if isinstance(command, _NEEDS_GROUP_ID) and not command.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if isinstance(command, JoinGroup):
            shortest = self.config.group_min_session_timeout_ms
            longest = self.config.group_max_session_timeout_ms
            if not shortest <= command.session_timeout_ms <= longest:
                return ErrorCode.INVALID_SESSION_TIMEOUT
        return None

    def _dispatch(  # noqa: C901  # a flat table
        self, builder: OutcomeBuilder, command: Request
    ) -> None:
        groups = self.groups
        match command:
            case Heartbeat():
                heartbeat.heartbeat(builder, groups.get(command.group_id), command)
            case JoinGroup():
                self._join(builder, command)
            case SyncGroup():
                sync_phase.sync(builder, groups.get(command.group_id), command)
            case CommitOffsets():
                offsets.commit(builder, groups.get(command.group_id), command)
            case FetchOffsets():
                offsets.fetch(builder, groups.get(command.group_id), command)
            case LeaveGroup():
                leave.leave(builder, groups.get(command.group_id), command)
            case CommitTransactionOffsets():
                offsets.commit_in_transaction(builder, groups.get(command.group_id), command)
            case EndTransaction():
                offsets.end_transaction(builder, command)
            case DeleteOffsets():
                offsets.delete(builder, groups.get(command.group_id), command)
            case DescribeGroups():
                group_admin.describe(builder, groups, command)
            case ListGroups():
                group_admin.list_all(builder, groups, command)
            case DeleteGroups():
                if command.removes_members:
                    self._remove_members(builder, command.group_ids)
                group_admin.delete(builder, groups, command)
            case _:
                assert_never(command)

    def _answer_unready(self, builder: OutcomeBuilder, command: Request) -> None:
        if self.phase is CoordinatorState.STOPPED:
            # DEVIATION: while it stops, Kafka answers ListGroups with an empty list.
            builder.refuse(command.ticket, ErrorCode.NOT_COORDINATOR)
        elif isinstance(command, Heartbeat):
            # The member may be alive; an error would cause a rebalance because of our restart.
            builder.reply(HeartbeatAccepted(ticket=command.ticket))
        elif isinstance(command, SyncGroup):
            # DEVIATION: Kafka 4 answers SyncGroup with COORDINATOR_LOAD_IN_PROGRESS, which clients
            # treat as fatal. As in Kafka 3, REBALANCE_IN_PROGRESS makes the member join again.
            builder.refuse(command.ticket, ErrorCode.REBALANCE_IN_PROGRESS)
        elif isinstance(command, CommitTransactionOffsets) and not command.knows_loading:
            builder.refuse(command.ticket, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            builder.refuse(command.ticket, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def _join(self, builder: OutcomeBuilder, command: JoinGroup) -> None:
        group = self.groups.get(command.group_id)
        if group is None:
            if command.member_id != NO_MEMBER:
                builder.refuse(command.ticket, ErrorCode.UNKNOWN_MEMBER_ID, command.member_id)
                return
            group = self.groups[command.group_id] = lifecycle.create(builder, command.group_id)
        join.join(builder, group, command)

    def _remove_members(self, builder: OutcomeBuilder, group_ids: Iterable[GroupId]) -> None:
        for group_id in group_ids:
            if group_id in self.groups:
                lifecycle.remove_members(builder, self.groups[group_id])

    def _on_timer(self, builder: OutcomeBuilder, key: TimerKey) -> None:
        if key.kind is TimerKind.EXPIRY:
            offsets.expire(builder, self.groups.values())
            interval_ms = self.config.offsets_retention_check_interval_ms
            builder.arm(key.kind, key.group_id, interval_ms)
            return
        group = self.groups.get(key.group_id)
        if group is not None:
            lifecycle.on_timer(builder, group, key.kind, key.member_id)

    # Applying

    def apply(self, record: Record | UnknownRecord) -> None:
        match record:
            case OffsetCommitted():
                self._apply_offset(record)
            case OffsetsCommitted():
                self._get_or_create(record.group_id).offsets.commit_all(record)
            case ClassicGroupMetadata():
                self._get_or_create(record.group_id).apply(record)
            case OffsetRemoved():
                group = self.groups.get(record.group_id)
                if group is not None:
                    group.offsets.remove(record.topic, record.partition)
            case GroupRemoved():
                self._remove_group(record.group_id)
            case TransactionEnded():
                self._apply_transaction_end(record)
            case UnknownRecord():
                self._apply_unknown(record)
            case _:
                assert_never(record)

    def apply_all(self, records: Sequence[Record]) -> None:
        """Apply records in their order. The offsets of one commit look up their group only once."""
        group: ClassicGroup | None = None
        for record in records:
            if not isinstance(record, OffsetCommitted) or record.producer_id is not None:
                self.apply(record)
                group = None
                continue
            if group is None or group.group_id != record.group_id:
                group = self._get_or_create(record.group_id)
            group.offsets.commit(record)

    def _apply_offset(self, record: OffsetCommitted) -> None:
        group = self.groups.get(record.group_id) or self._get_or_create(record.group_id)
        if record.producer_id is None:
            group.offsets.commit(record)
        else:
            group.offsets.commit_pending(record.producer_id, record)
            self._open_transactions.setdefault(record.producer_id, {})[record.group_id] = None

    def _remove_group(self, group_id: GroupId) -> None:
        removed = self.groups.pop(group_id, None)
        if removed is not None and removed.offsets:
            # DEVIATION: the offsets of a removed group stay visible until their own tombstones.
            # Kafka hides them until another commit creates the group again.
            self._get_or_create(group_id).offsets = removed.offsets

    def _apply_unknown(self, record: UnknownRecord) -> None:
        if record.value is None:
            self.unknown_records.pop(record.key, None)
        else:
            self.unknown_records[record.key] = record

    def _apply_transaction_end(self, record: TransactionEnded) -> None:
        for group_id in self._open_transactions.pop(record.producer_id, {}):
            group = self.groups.get(group_id)
            if group is not None:
                group.offsets.end_transaction(record.producer_id, is_commit=record.is_commit)

    def _get_or_create(self, group_id: GroupId) -> ClassicGroup:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id)
        return group

    def hard_state(self) -> dict[GroupId, tuple[ClassicGroupMetadata | None, CommittedOffsets]]:
        """Return what a restart would bring back, for comparing one coordinator with another."""
        return {
            group_id: (group.stored, group.offsets)
            for group_id, group in self.groups.items()
            if group.stored is not None or group.offsets
        }

    # Starting, failing, resuming, stopping

    def start(self) -> None:
        """Begin to load: requests are refused with an error that clients retry."""
        self.phase = CoordinatorState.LOADING

    def fail(self, failed: Outcome, error: ErrorCode, now: Millis) -> Outcome:
        """The records of an outcome could not be stored: return what to do in its place."""
        builder = OutcomeBuilder(now, self.config)
        client_error = _APPEND_ERRORS.get(error, error)
        promised = {reply.ticket for reply in failed.replies}
        for record in failed.records:
            if isinstance(record, ClassicGroupMetadata):
                group = self.groups[record.group_id]
                if not lifecycle.undo(builder, group, failed, record, client_error):
                    del self.groups[record.group_id]
                break
        else:
            # A member that tried to commit is alive. A timer is cancelled only with the record.
            builder.outcome.timers = {
                key: delay_ms for key, delay_ms in failed.timers.items() if delay_ms is not None
            }
        answered = {reply.ticket for reply in builder.outcome.replies}
        for ticket in sorted(promised - answered):
            builder.refuse(ticket, client_error)
        group_ids = {
            record.group_id: None
            for record in failed.records
            if not isinstance(record, TransactionEnded)
        }
        builder.emit(AppendFailed(at=now, group_ids=tuple(group_ids), error=error))
        return builder.outcome

    def resume(self, now: Millis) -> Outcome:
        """Loading is done: accept requests."""
        builder = OutcomeBuilder(now, self.config)
        self.phase = CoordinatorState.ACTIVE
        for group_id, loaded in list(self.groups.items()):
            group = self.groups[group_id] = restore(loaded)
            lifecycle.resume(builder, group)
        interval_ms = self.config.offsets_retention_check_interval_ms
        builder.arm(TimerKind.EXPIRY, GroupId(""), interval_ms)
        return builder.outcome

    def _shut_down(self, builder: OutcomeBuilder) -> None:
        if self.phase is CoordinatorState.STOPPED:
            return
        self.phase = CoordinatorState.STOPPED
        for group in self.groups.values():
            lifecycle.shut_down(builder, group)
