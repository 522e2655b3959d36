"""Decide, append, apply, release: a reply never leaves before its records are kept."""

from collections.abc import Callable

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
from kohort.coordinator.limits import Limits
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.notes import Note
from kohort.coordinator.records import Record
from kohort.coordinator.replies import CommitAnswered, Joined, OffsetsFetched, Refused, Reply
from kohort.node.runtime import NotKept, Runtime
from kohort.types import ErrorCode, Generation, GroupId, MemberId, Millis, Offset, Partition, Topic

GROUP = GroupId("g")


class _Keeper:
    def __init__(self) -> None:
        self.records: list[Record] = []
        self.waiting: list[Callable[[], None]] = []
        self.error: ErrorCode | None = None
        self.is_durable = False

    def keep(self, records: list[Record], now: Millis) -> list[Record]:
        assert now >= 0
        if self.error is not None:
            raise NotKept(self.error)
        self.records += records
        self.is_durable = False
        return records

    def when_durable(self, then: Callable[[], None]) -> None:
        self.waiting.append(then)

    def sync(self) -> None:
        self.is_durable = True
        waiting, self.waiting = self.waiting, []
        for then in waiting:
            then()


class _Bench:
    def __init__(self, limits: Limits | None = None) -> None:
        self.keeper = _Keeper()
        self.notes: list[Note] = []
        self.runtime = Runtime(Coordinator(limits), self.keeper, self.notes.extend)
        self.runtime.resume(Millis(0))
        self.answers: list[Reply] = []

    def ticket(self) -> Ticket:
        return self.runtime.issue(self.answers.append)

    def commit(self, offset: int, now: int = 0) -> None:
        position = OffsetToCommit(topic=Topic("t"), partition=Partition(0), offset=Offset(offset))
        command = CommitOffsets(ticket=self.ticket(), group_id=GROUP, offsets=(position,))
        self.runtime.submit(command, Millis(now))

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
    return _Bench()


def test_a_commit_is_answered_only_once_its_record_is_durable(bench: _Bench) -> None:
    bench.commit(5)
    assert bench.answers == []
    assert len(bench.keeper.records) == 1

    bench.keeper.sync()

    assert [type(answer) for answer in bench.answers] == [CommitAnswered]


def test_what_cannot_be_kept_is_refused_and_changes_nothing(bench: _Bench) -> None:
    bench.keeper.error = ErrorCode.KAFKA_STORAGE_ERROR
    bench.keeper.is_durable = True
    bench.commit(5)

    (refused,) = bench.answers
    assert isinstance(refused, Refused)
    assert refused.error is ErrorCode.NOT_COORDINATOR
    assert bench.runtime.coordinator.groups == {}


def test_a_fetch_does_not_tell_what_a_crash_could_still_undo(bench: _Bench) -> None:
    bench.commit(5)
    bench.runtime.submit(FetchOffsets(ticket=bench.ticket(), group_id=GROUP), Millis(1))
    assert bench.answers == []

    bench.keeper.sync()

    assert [type(answer) for answer in bench.answers] == [CommitAnswered, OffsetsFetched]


def test_no_answer_overtakes_one_that_still_waits_for_a_sync(bench: _Bench) -> None:
    bench.commit(5)
    bench.keeper.is_durable = True
    bench.runtime.submit(FetchOffsets(ticket=bench.ticket(), group_id=GROUP), Millis(1))
    assert bench.answers == []

    bench.keeper.sync()

    assert [type(answer) for answer in bench.answers] == [CommitAnswered, OffsetsFetched]


def test_a_heartbeat_waits_for_no_sync(bench: _Bench) -> None:
    bench.commit(5)
    beat = Heartbeat(
        ticket=bench.ticket(), group_id=GROUP, member_id=MemberId("x"), generation=Generation(1)
    )
    bench.runtime.submit(beat, Millis(1))

    (answer,) = bench.answers
    assert isinstance(answer, Refused)
    assert answer.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_parked_join_is_answered_when_its_timer_fires() -> None:
    bench = _Bench(Limits(group_initial_rebalance_delay_ms=Millis(3_000)))
    bench.join()
    bench.keeper.sync()
    assert bench.answers == []
    assert bench.runtime.next_deadline() is not None

    bench.runtime.fire_due(Millis(3_000))

    (joined,) = bench.answers
    assert isinstance(joined, Joined)
    assert joined.generation == 1


def test_an_answer_nobody_waits_for_any_more_goes_nowhere() -> None:
    bench = _Bench()
    bench.join()
    bench.runtime.forget(Ticket(1))
    bench.keeper.sync()

    bench.runtime.fire_due(Millis(3_000))

    assert bench.answers == []
    assert bench.runtime.open_tickets == 0
