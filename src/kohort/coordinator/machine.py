"""The coordinator: asked with commands, it answers with outcomes, and records alone change it.

    decide(command, now) -> Outcome    reads hard state, may change soft state
    apply(record), apply_all(records)  the only way hard state changes; also how it is loaded
    start()                            before loading: requests are told to come back
    fail(outcome, error, now)          an outcome's records could not be kept: what happens instead
    resume(now) -> Outcome             after loading: sessions are armed, full groups rebalance

It never waits, never reads a clock, never rolls a die, never writes and never logs. Whoever runs
it keeps an outcome's records before anything else of that outcome happens.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, assert_never

from kohort.coordinator import (
    assignment,
    instances,
    joining,
    listing,
    membership,
    offsets,
    rebalance,
)
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
    ForgetTopics,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    Request,
    Shutdown,
    SyncGroup,
    TimerFired,
)
from kohort.coordinator.group import Group, roster_from
from kohort.coordinator.limits import Limits
from kohort.coordinator.notes import Ending, NotKept, Trigger
from kohort.coordinator.offsetbook import OffsetBook
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.records import (
    GenerationFormed,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    OffsetsCommitted,
    Record,
    TransactionEnded,
)
from kohort.coordinator.replies import HeartbeatHeard
from kohort.coordinator.states import GroupState
from kohort.coordinator.story import Cause
from kohort.coordinator.turn import Turn
from kohort.types import ErrorCode, Generation, GroupId, Millis, ProducerId


class Phase(StrEnum):
    """Whether the coordinator can answer at all."""

    NOT_STARTED = "not-started"
    LOADING = "loading"
    ACTIVE = "active"
    STOPPED = "stopped"


_ACTIVE: Final = Phase.ACTIVE

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
"""What clients are told when records cannot be kept: they know no storage errors here."""

_NEEDS_GROUP_ID: Final = (
    JoinGroup,
    SyncGroup,
    Heartbeat,
    LeaveGroup,
    CommitTransactionOffsets,
    DeleteOffsets,
)
"""Requests that refuse an empty group id. Plain commits and fetches take it, as they always did."""


class Coordinator:
    """All groups of one node. Rebuilt from records, then resumed, then asked."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.phase = Phase.NOT_STARTED
        self.groups: dict[GroupId, Group] = {}
        self._open_transactions: dict[ProducerId, dict[GroupId, None]] = {}
        """Which groups a producer has pending offsets in, so that its end is no walk over all."""

    # Deciding

    def decide(self, command: Command, now: Millis) -> Outcome:
        # Nearly everything that is asked is one of two things, so these are looked for first.
        if isinstance(command, Heartbeat) and self.phase is _ACTIVE:
            heard = membership.find_heard(self.groups.get(command.group_id), command, now)
            if heard is not None:
                return heard
        turn = Turn(now, self.limits)
        if isinstance(command, CommitOffsets) and self.phase is _ACTIVE:
            offsets.commit(turn, self.groups.get(command.group_id), command)
            return turn.outcome
        match command:
            case Shutdown():
                self._shut_down(turn)
            case TimerFired() | ForgetTopics() if self.phase is not Phase.ACTIVE:
                pass  # a timer of an earlier life; a forgotten topic is forgotten after loading
            case TimerFired():
                self._on_timer(turn, command.key)
            case ForgetTopics():
                self._forget(turn, command.topics)
            case FetchManyOffsets():
                self._answer_all(turn, command.fetches)
            case _:
                self._answer(turn, command)
        return turn.outcome

    def _forget(self, turn: Turn, topics: Iterable[DeletedTopic]) -> None:
        for group in self.groups.values():
            for topic in topics:
                offsets.forget_topic(turn, group, topic)

    def _answer_all(self, turn: Turn, commands: Iterable[Request]) -> None:
        for command in commands:
            self._answer(turn, command)

    def _answer(self, turn: Turn, command: Request) -> None:
        fault = self._find_fault(command)
        if fault is not None:
            member_id = command.member_id if isinstance(command, JoinGroup) else NO_MEMBER
            turn.refuse(command.ticket, fault, member_id)
        elif self.phase is not Phase.ACTIVE:
            self._answer_unready(turn, command)
        else:
            self._dispatch(turn, command)

    def _find_fault(self, command: Request) -> ErrorCode | None:
        """What is wrong with a request whatever group it is for, and whoever coordinates that."""
        if self.phase is Phase.NOT_STARTED:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if isinstance(command, _NEEDS_GROUP_ID) and not command.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if isinstance(command, JoinGroup):
            shortest = self.limits.group_min_session_timeout_ms
            longest = self.limits.group_max_session_timeout_ms
            if not shortest <= command.session_timeout_ms <= longest:
                return ErrorCode.INVALID_SESSION_TIMEOUT
        return None

    def _dispatch(self, turn: Turn, command: Request) -> None:  # noqa: C901  # a flat table
        groups = self.groups
        match command:
            case Heartbeat():
                membership.heartbeat(turn, groups.get(command.group_id), command)
            case JoinGroup():
                self._join(turn, command)
            case SyncGroup():
                membership.sync(turn, groups.get(command.group_id), command)
            case CommitOffsets():
                offsets.commit(turn, groups.get(command.group_id), command)
            case FetchOffsets():
                offsets.fetch(turn, groups.get(command.group_id), command)
            case LeaveGroup():
                membership.leave(turn, groups.get(command.group_id), command)
            case CommitTransactionOffsets():
                offsets.commit_in_transaction(turn, groups.get(command.group_id), command)
            case EndTransaction():
                offsets.end_transaction(turn, command)
            case DeleteOffsets():
                offsets.delete(turn, groups.get(command.group_id), command)
            case DescribeGroups():
                listing.describe(turn, groups, command)
            case ListGroups():
                listing.list_all(turn, groups, command)
            case DeleteGroups():
                listing.delete(turn, groups, command)
            case _:
                assert_never(command)

    def _answer_unready(self, turn: Turn, command: Request) -> None:
        if self.phase is Phase.STOPPED:
            # DEVIATION: asked for a list, Kafka would say that there are no groups at all.
            turn.refuse(command.ticket, ErrorCode.NOT_COORDINATOR)
        elif isinstance(command, Heartbeat):
            # The member may well be alive; saying otherwise would rebalance it for our restart.
            turn.reply(HeartbeatHeard(ticket=command.ticket))
        elif isinstance(command, SyncGroup):
            # DEVIATION: Kafka 4 says COORDINATOR_LOAD_IN_PROGRESS, which clients take for fatal
            # in a sync; earlier versions sent the member back to join, and so do we.
            turn.refuse(command.ticket, ErrorCode.REBALANCE_IN_PROGRESS)
        elif isinstance(command, CommitTransactionOffsets) and not command.knows_loading:
            turn.refuse(command.ticket, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            turn.refuse(command.ticket, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def _join(self, turn: Turn, command: JoinGroup) -> None:
        group = self.groups.get(command.group_id)
        if group is not None:
            joining.join(turn, group, command)
        elif command.member_id != NO_MEMBER:
            turn.refuse(command.ticket, ErrorCode.UNKNOWN_MEMBER_ID, command.member_id)
        else:
            self._found(turn, command)

    def _found(self, turn: Turn, command: JoinGroup) -> None:
        """A new group is kept from its first moment, empty, whatever becomes of the join."""
        group = self.groups[command.group_id] = Group(command.group_id)
        group.roster.state_since_ms = turn.now
        turn.keep(
            GenerationFormed(
                group_id=command.group_id,
                protocol_type="",
                generation=Generation(0),
                protocol=None,
                leader=None,
                state_since_ms=turn.now,
                members=(),
            )
        )
        joining.join(turn, group, command)

    def _on_timer(self, turn: Turn, key: TimerKey) -> None:
        if key.kind is TimerKind.EXPIRY:
            offsets.expire(turn, self.groups.values())
            turn.arm(key.kind, key.group_id, self.limits.offsets_retention_check_interval_ms)
            return
        group = self.groups.get(key.group_id)
        if group is None:
            return
        group.roster.armed.discard(key.kind)
        match key.kind:
            case TimerKind.SESSION:
                membership.on_session_timeout(turn, group, key.member_id)
            case TimerKind.PENDING:
                membership.on_pending_timeout(turn, group, key.member_id)
            case TimerKind.INITIAL_DELAY:
                rebalance.on_initial_delay(turn, group)
            case TimerKind.JOIN:
                rebalance.on_join_timeout(turn, group)
            case TimerKind.SYNC:
                assignment.on_sync_timeout(turn, group)
            case _:
                assert_never(key.kind)

    # Applying

    def apply(self, record: Record) -> None:
        match record:
            case OffsetCommitted():
                self._apply_offset(record)
            case OffsetsCommitted():
                self._get_or_create(record.group_id).offsets.commit_all(record)
            case GenerationFormed():
                group = self._get_or_create(record.group_id)
                is_expected = group.roster.expects(record)
                group.formed = record
                if is_expected:
                    group.roster.follow(record)
            case OffsetRemoved():
                group_or_none = self.groups.get(record.group_id)
                if group_or_none is not None:
                    group_or_none.offsets.remove(record.topic, record.partition)
            case GroupRemoved():
                removed = self.groups.pop(record.group_id, None)
                if removed is not None and removed.offsets:
                    # DEVIATION: the group goes, its offsets stay visible until their own
                    # tombstones; Kafka hides them until another commit brings the group back.
                    self._get_or_create(record.group_id).offsets = removed.offsets
            case TransactionEnded():
                self._apply_transaction_end(record)
            case _:
                assert_never(record)

    def apply_all(self, records: Sequence[Record]) -> None:
        """As `apply`, one after the other; a commit's offsets find their group only once."""
        group: Group | None = None
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

    def _apply_transaction_end(self, record: TransactionEnded) -> None:
        for group_id in self._open_transactions.pop(record.producer_id, {}):
            group = self.groups.get(group_id)
            if group is not None:
                group.offsets.end_transaction(record.producer_id, is_commit=record.is_commit)

    def _get_or_create(self, group_id: GroupId) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id)
        return group

    def hard_state(self) -> dict[GroupId, tuple[GenerationFormed | None, OffsetBook]]:
        """What a restart would bring back: for comparing one machine with another."""
        return {
            group_id: (group.formed, group.offsets)
            for group_id, group in self.groups.items()
            if group.formed is not None or group.offsets
        }

    # Starting, failing, resuming, stopping

    def start(self) -> None:
        """The log is being read: from here on there is a coordinator, only not ready yet."""
        self.phase = Phase.LOADING

    def fail(self, failed: Outcome, error: ErrorCode, now: Millis) -> Outcome:
        """The records of an outcome could not be kept: none of it happened, and this does."""
        turn = Turn(now, self.limits)
        told = _APPEND_ERRORS.get(error, error)
        promised = {reply.ticket for reply in failed.replies}
        for record in failed.records:
            if isinstance(record, GenerationFormed):
                self._take_back(turn, failed, record, told)
                break
        else:
            # Who tried to commit is alive all the same, and what was not let go of stays due.
            turn.outcome.timers = {key: at for key, at in failed.timers.items() if at is not None}
        answered = {reply.ticket for reply in turn.outcome.replies}
        for ticket in sorted(promised - answered):
            turn.refuse(ticket, told)
        group_ids = {
            record.group_id: None
            for record in failed.records
            if not isinstance(record, TransactionEnded)
        }
        turn.note(NotKept(at=now, group_ids=tuple(group_ids), error=error))
        return turn.outcome

    def _take_back(
        self, turn: Turn, failed: Outcome, record: GenerationFormed, told: ErrorCode
    ) -> None:
        group = self.groups[record.group_id]
        roster = group.roster
        if group.formed is None and record.generation == 0:
            for member in roster.members.values():
                if member.join_ticket is not None:
                    turn.refuse(member.join_ticket, told)
            del self.groups[group.group_id]
        elif roster.state is GroupState.COMPLETING_REBALANCE:
            turn.outcome.timers = failed.timers
            assignment.on_assignment_not_kept(turn, group, told)
        elif roster.state is GroupState.PREPARING_REBALANCE:
            # Nobody is in an empty generation, so nothing is lost if only we know of it.
            turn.outcome.timers, turn.outcome.notes = failed.timers, failed.notes
            roster.follow(record)
        else:
            instances.keep_old_self(turn, group)

    def resume(self, now: Millis) -> Outcome:
        """Loading is over: from here on the groups are alive."""
        turn = Turn(now, self.limits)
        self.phase = Phase.ACTIVE
        for group in self.groups.values():
            roster = group.roster = roster_from(group.formed)
            for member in roster.members.values():
                rebalance.rearm_session(turn, group, member)
            if len(roster.members) > self.limits.group_max_size:
                rebalance.begin(turn, group, Cause(trigger=Trigger.OVER_CAPACITY))
        interval_ms = self.limits.offsets_retention_check_interval_ms
        turn.arm(TimerKind.EXPIRY, GroupId(""), interval_ms)
        return turn.outcome

    def _shut_down(self, turn: Turn) -> None:
        """Send everyone who waits away to look for the coordinator, wherever it will be."""
        if self.phase is Phase.STOPPED:
            return
        self.phase = Phase.STOPPED
        for group in self.groups.values():
            for member in group.roster.members.values():
                ticket = group.roster.park_join(member, None)
                if ticket is not None:
                    turn.refuse(ticket, ErrorCode.NOT_COORDINATOR, member.member_id)
                if member.sync_ticket is not None:
                    turn.refuse(member.sync_ticket, ErrorCode.NOT_COORDINATOR)
                    member.sync_ticket = None
            story = group.roster.story
            if story is not None:
                turn.note(story.end(group.group_id, group.roster, Ending.ABANDONED, turn.now))
            rebalance.move(turn, group, GroupState.DEAD)
