"""Decide, append, apply, release: a reply is delivered only after its records are stored."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from kohort.coordinator.commands import (
    CommitOffsets,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    OffsetToCommit,
    Protocol,
    Ticket,
)
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.records import Record
from kohort.coordinator.replies import CommitAnswered, Joined, OffsetsFetched, RequestRefused
from kohort.log.sync_queue import PendingSync
from kohort.node.broker import group_runtime
from kohort.node.runtime import InconsistentState, Runtime
from kohort.node.syncer import Syncer
from kohort.types import (
    DeadlineMillis,
    ErrorCode,
    Generation,
    GroupId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
)
from tests.node.broker_harness import ReplyCollector

GROUP = GroupId("g")


class _Log:
    """A record writer in memory, which can refuse everything or some outcomes of a call."""

    def __init__(self) -> None:
        self.records: list[object] = []
        self.calls = 0
        self.error: ErrorCode | None = None
        self.too_large: set[int] = set()
        """Outcomes of each call that cannot be appended, by index."""

    def append(
        self, outcomes: Sequence[tuple[list[Record], Millis]]
    ) -> list[list[Record] | ErrorCode]:
        self.calls += 1
        results: list[list[Record] | ErrorCode] = []
        for place, (records, _) in enumerate(outcomes):
            if self.error is not None:
                results.append(self.error)
            elif place in self.too_large:
                results.append(ErrorCode.MESSAGE_TOO_LARGE)
            else:
                self.records += records
                results.append(records)
        return results


class _Disk:
    def start(self, files: Sequence[PendingSync]) -> None: ...


class _Bench:
    def __init__(self, config: GroupConfig | None = None, *, syncs: bool = True) -> None:
        self.log = _Log()
        self.syncer = Syncer(_Disk()) if syncs else None
        self.coordinator = Coordinator(config)
        self.runtime = group_runtime(self.coordinator, self.log, self.syncer)
        self.runtime.resume(Millis(0))
        self.inbox = ReplyCollector()

    @property
    def replies(self) -> list[type]:
        return [type(reply) for reply in self.inbox.replies]

    def ticket(self) -> Ticket:
        return self.runtime.open(self.inbox)

    def commit(self, offset: int, now: int = 0) -> None:
        position = OffsetToCommit(topic=Topic("t"), partition=Partition(0), offset=Offset(offset))
        command = CommitOffsets(ticket=self.ticket(), group_id=GROUP, offsets=(position,))
        self.runtime.submit(command, Millis(now))

    def fetch(self) -> None:
        self.runtime.submit(FetchOffsets(ticket=self.ticket(), group_id=GROUP), Millis(1))

    def committed(self) -> list[int]:
        """The offset that a fetch returns now."""
        self.inbox.replies.clear()
        self.fetch()
        self.sync()
        reply = self.inbox.replies[-1]
        assert isinstance(reply, OffsetsFetched)
        return [each.offset for each in reply.offsets]

    def sync(self) -> None:
        if self.syncer is not None and not self.syncer.is_idle:
            while self.syncer.is_collecting:
                self.syncer.end_iteration(tuple)
            self.syncer.finish(0.0)

    def join(self, now: int = 0) -> None:
        command = JoinGroup(
            ticket=self.ticket(),
            group_id=GROUP,
            fresh_member_id=MemberId("m"),
            client_id="c",
            client_host="/h",
            session_timeout_ms=Millis(10_000),
            rebalance_timeout_ms=Millis(60_000),
            protocol_type="consumer",
            protocols=(Protocol(name="range", metadata=b""),),
            knows_member_id_required=False,
        )
        self.runtime.submit(command, Millis(now))


@pytest.fixture
def bench() -> _Bench:
    """A runtime with an existing group and one committed offset."""
    bench = _Bench()
    bench.commit(1)
    bench.sync()
    bench.inbox.replies.clear()
    bench.log.records.clear()
    bench.log.calls = 0
    return bench


# Replies and syncs


def test_a_commit_is_answered_only_once_its_record_is_synced(bench: _Bench) -> None:
    bench.commit(5)
    bench.runtime.append_deferred()
    assert bench.replies == []
    assert len(bench.log.records) == 1

    bench.sync()

    assert bench.replies == [CommitAnswered]


def test_without_fsync_a_commit_is_answered_once_its_record_is_appended() -> None:
    bench = _Bench(syncs=False)

    bench.commit(5)

    assert bench.replies == [CommitAnswered]


def test_a_fetch_does_not_reveal_what_a_crash_could_still_undo(bench: _Bench) -> None:
    bench.commit(5)
    bench.fetch()
    assert bench.replies == []

    bench.sync()

    assert bench.replies == [CommitAnswered, OffsetsFetched]


def test_no_reply_overtakes_one_that_waits_for_a_sync(bench: _Bench) -> None:
    bench.commit(5)
    bench.runtime.append_deferred()
    assert bench.syncer is not None
    while bench.syncer.is_collecting:
        bench.syncer.end_iteration(tuple)
    bench.fetch()
    assert bench.replies == []

    bench.syncer.finish(0.0)
    assert bench.replies == [CommitAnswered]
    bench.sync()

    assert bench.replies == [CommitAnswered, OffsetsFetched]


def test_a_heartbeat_waits_for_no_sync(bench: _Bench) -> None:
    bench.commit(5)
    beat = Heartbeat(
        ticket=bench.ticket(), group_id=GROUP, member_id=MemberId("x"), generation=Generation(1)
    )
    bench.runtime.submit(beat, Millis(1))

    (reply,) = bench.inbox.replies
    assert isinstance(reply, RequestRefused)
    assert reply.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_parked_join_is_answered_when_its_timer_fires() -> None:
    bench = _Bench(GroupConfig(group_initial_rebalance_delay_ms=Millis(3_000)))
    bench.join()
    assert bench.replies == []
    assert bench.runtime.timers.earliest is not None

    bench.runtime.fire_due(DeadlineMillis(3_000), Millis(3_000))
    bench.sync()

    (joined,) = bench.inbox.replies
    assert isinstance(joined, Joined)
    assert joined.generation == 1
    assert bench.runtime.open_tickets == 0


# Records that cannot be appended


def test_what_cannot_be_appended_is_refused_and_changes_nothing() -> None:
    bench = _Bench()
    bench.log.error = ErrorCode.KAFKA_STORAGE_ERROR

    bench.commit(5)
    bench.sync()

    (refused,) = bench.inbox.replies
    assert isinstance(refused, RequestRefused)
    assert refused.error is ErrorCode.NOT_COORDINATOR
    assert bench.coordinator.groups == {}


def test_an_outcome_that_cannot_be_appended_does_not_affect_others_of_its_write(
    bench: _Bench,
) -> None:
    bench.log.too_large = {1}
    for offset in (5, 6):
        bench.commit(offset)

    bench.runtime.append_deferred()
    bench.sync()

    appended, refused = bench.inbox.replies
    assert isinstance(appended, CommitAnswered)
    assert isinstance(refused, RequestRefused)
    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.committed() == [5]


def test_no_deferred_commit_is_applied_if_the_disk_fails(bench: _Bench) -> None:
    bench.log.error = ErrorCode.KAFKA_STORAGE_ERROR
    for offset in (5, 6):
        bench.commit(offset)

    bench.runtime.append_deferred()
    bench.sync()

    assert bench.replies == [RequestRefused, RequestRefused]
    assert bench.committed() == [1]


def test_internal_error_during_apply_raises_inconsistent_state(
    bench: _Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apply_all(_: object) -> None:
        raise KeyError(3)

    monkeypatch.setattr(bench.coordinator, "apply_all", apply_all)
    bench.commit(5)

    with pytest.raises(InconsistentState, match="KeyError: 3"):
        bench.runtime.append_deferred()


def test_an_internal_error_while_a_command_is_decided_leaves_the_state_as_it_was(
    bench: _Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decide(*_: object) -> None:
        raise KeyError(3)

    with monkeypatch.context() as patched:
        patched.setattr(bench.coordinator, "decide", decide)
        with pytest.raises(KeyError):
            bench.commit(5)

    assert bench.committed() == [1]


# Deferred records


def test_a_commit_that_creates_its_group_is_appended_at_once() -> None:
    bench = _Bench()

    bench.commit(1)

    assert len(bench.log.records) == 1


def test_commits_of_one_iteration_are_appended_in_one_write(bench: _Bench) -> None:
    for offset in (5, 6, 7):
        bench.commit(offset)
    assert bench.log.records == []

    bench.runtime.append_deferred()

    assert (bench.log.calls, len(bench.log.records)) == (1, 3)
    bench.sync()
    assert bench.replies == [CommitAnswered] * 3
    assert bench.committed() == [7]


def test_a_command_that_reads_offsets_sees_earlier_commits_of_its_iteration(bench: _Bench) -> None:
    bench.commit(5)

    assert bench.committed() == [5]


def test_a_timer_sees_earlier_commits_of_its_iteration(bench: _Bench) -> None:
    bench.commit(5)
    assert bench.log.records == []

    bench.runtime.fire_due(bench.runtime.timers.earliest or DeadlineMillis(0), Millis(0))

    assert len(bench.log.records) == 1


def test_the_number_of_deferred_commits_is_bounded(bench: _Bench) -> None:
    for offset in range(2_500):
        bench.commit(offset)

    assert bench.log.calls == 2
    bench.runtime.append_deferred()
    assert bench.log.calls == 3


# Another state machine


@dataclass
class _Add:
    sees_deferred: ClassVar[bool] = True
    ticket: Ticket
    amount: int


@dataclass
class _Alarm:
    sees_deferred: ClassVar[bool] = True


@dataclass
class _Total:
    ticket: Ticket
    total: int


@dataclass
class _AddOutcome:
    records: list[int] = field(default_factory=list)
    replies: list[_Total] = field(default_factory=list)
    timers: dict[str, Millis | None] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    is_deferrable: bool = False


class _Adder:
    """Adds numbers; an alarm, set by each, resets the total."""

    def __init__(self) -> None:
        self.total = 0

    def decide(self, command: _Add | _Alarm, _now: Millis) -> _AddOutcome:
        if isinstance(command, _Alarm):
            return _AddOutcome(records=[-self.total], events=["reset"])
        return _AddOutcome(
            records=[command.amount],
            replies=[_Total(command.ticket, self.total + command.amount)],
            timers={"alarm": Millis(10)},
        )

    def apply_all(self, records: Sequence[int]) -> None:
        self.total += sum(records)

    def fail(self, failed: _AddOutcome, error: ErrorCode, now: Millis) -> _AddOutcome:
        assert (error, now) == (ErrorCode.MESSAGE_TOO_LARGE, 0)
        return _AddOutcome(replies=[_Total(each.ticket, -1) for each in failed.replies])

    def resume(self, now: Millis) -> _AddOutcome:
        return _AddOutcome(events=[f"resumed at {now}"])


class _Numbers:
    def append(self, outcomes: Sequence[tuple[list[int], Millis]]) -> list[list[int] | ErrorCode]:
        is_large = [records[0] > 100 for records, _ in outcomes]
        return [
            ErrorCode.MESSAGE_TOO_LARGE if large else records
            for large, (records, _) in zip(is_large, outcomes, strict=True)
        ]


def test_the_runtime_runs_any_state_machine() -> None:
    inbox = ReplyCollector()
    runtime: Runtime[_Add | _Alarm, int, _Total, str, str] = Runtime(
        _Adder(), _Numbers(), None, timer_fired=lambda _: _Alarm(), unsynced_replies=()
    )
    runtime.resume(Millis(0))

    for amount in (2, 1_000, 3):
        runtime.submit(_Add(runtime.open(inbox), amount), Millis(0))
    runtime.fire_due(DeadlineMillis(10), Millis(10))
    runtime.submit(_Add(runtime.open(inbox), 4), Millis(20))

    assert [reply.total for reply in inbox.replies] == [2, -1, 5, 4]
    assert runtime.appended == [2, 3, -5, 4]
    assert runtime.events == ["resumed at 0", "reset"]
