"""Decide, append, apply, release: a reply never leaves before its records are kept."""

from collections.abc import Callable, Sequence

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
from kohort.node.runtime import Decided, Keeper, NotKept, Runtime
from kohort.types import ErrorCode, Generation, GroupId, MemberId, Millis, Offset, Partition, Topic

GROUP = GroupId("g")


class _Keeper(Keeper):
    def __init__(self) -> None:
        self.records: list[Record] = []
        self.waiting: list[Callable[[], None]] = []
        self.error: ErrorCode | None = None
        self.writes = 0
        self.too_large: set[int] = set()
        """Commits that are kept together, by their place, of which one cannot be."""
        self.is_safe = False

    @property
    def is_durable(self) -> bool:
        return self.is_safe

    def keep(self, records: list[Record], now: Millis) -> list[Record]:
        assert now >= 0
        if self.error is not None:
            raise NotKept(self.error)
        self.records += records
        self.is_safe = False
        return records

    def keep_each(self, decided: Sequence[Decided]) -> list[ErrorCode | None]:
        self.writes += 1
        faults: list[ErrorCode | None] = [self.error] * len(decided)
        for place in self.too_large:
            faults[place] = ErrorCode.MESSAGE_TOO_LARGE
        for fault, (outcome, _) in zip(faults, decided, strict=True):
            self.records += [] if fault else outcome.records
        self.is_safe = False
        return faults

    def when_durable(self, then: Callable[[], None]) -> None:
        self.waiting.append(then)

    def sync(self) -> None:
        self.is_safe = True
        waiting, self.waiting = self.waiting, []
        for then in waiting:
            then()


class _Bench:
    def __init__(self, limits: Limits | None = None, *, has_turns: bool = False) -> None:
        self.keeper = _Keeper()
        self.notes: list[Note] = []
        self.soon: list[Callable[[], None]] = []
        self.runtime = Runtime(
            Coordinator(limits),
            self.keeper,
            self.notes.extend,
            self.soon.append if has_turns else None,
        )
        self.runtime.resume(Millis(0))
        self.answers: list[Reply] = []

    def ticket(self) -> Ticket:
        return self.runtime.issue(self.answers.append)

    def commit(self, offset: int, now: int = 0) -> None:
        position = OffsetToCommit(topic=Topic("t"), partition=Partition(0), offset=Offset(offset))
        command = CommitOffsets(ticket=self.ticket(), group_id=GROUP, offsets=(position,))
        self.runtime.submit(command, Millis(now))

    def end_turn(self) -> None:
        soon, self.soon[:] = self.soon[:], []
        for then in soon:
            then()

    def fetched(self) -> list[int]:
        """What a fetch finds right now."""
        told: list[Reply] = []
        ticket = self.runtime.issue(told.append)
        self.runtime.submit(FetchOffsets(ticket=ticket, group_id=GROUP), Millis(1))
        self.keeper.sync()
        (reply,) = told
        assert isinstance(reply, OffsetsFetched)
        return [each.offset for each in reply.offsets]

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


def test_a_commit_is_answered_only_once_its_record_is_safe(bench: _Bench) -> None:
    bench.commit(5)
    assert bench.answers == []
    assert len(bench.keeper.records) == 1

    bench.keeper.sync()

    assert [type(answer) for answer in bench.answers] == [CommitAnswered]


def test_what_cannot_be_kept_is_refused_and_changes_nothing(bench: _Bench) -> None:
    bench.keeper.error = ErrorCode.KAFKA_STORAGE_ERROR
    bench.keeper.is_safe = True
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
    bench.keeper.is_safe = True
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


@pytest.fixture
def turning() -> _Bench:
    """One with a loop, on which the group exists already."""
    bench = _Bench(has_turns=True)
    bench.commit(1)
    bench.keeper.sync()
    bench.answers.clear()
    bench.keeper.records.clear()
    return bench


def test_a_commit_that_makes_its_group_is_kept_at_once() -> None:
    bench = _Bench(has_turns=True)

    bench.commit(1)

    assert len(bench.keeper.records) == 1
    assert bench.keeper.writes == 0


def test_commits_of_one_turn_are_kept_together_and_answered_once_they_are_durable(
    turning: _Bench,
) -> None:
    for offset in (5, 6, 7):
        turning.commit(offset)
    assert turning.keeper.records == []

    turning.end_turn()

    assert (turning.keeper.writes, len(turning.keeper.records)) == (1, 3)
    assert turning.answers == []
    turning.keeper.sync()
    assert [type(answer) for answer in turning.answers] == [CommitAnswered] * 3
    assert turning.fetched() == [7]


def test_whoever_asks_in_the_same_turn_finds_what_was_committed_before(turning: _Bench) -> None:
    turning.commit(5)

    assert turning.fetched() == [5]


def test_a_timer_finds_what_was_committed_before(turning: _Bench) -> None:
    turning.commit(5)

    turning.runtime.fire_due(Millis(1))

    assert len(turning.keeper.records) == 1


def test_a_commit_that_cannot_be_kept_spoils_no_other_of_its_turn(turning: _Bench) -> None:
    turning.keeper.too_large = {1}
    for offset in (5, 6):
        turning.commit(offset)

    turning.end_turn()
    turning.keeper.sync()

    kept, refused = turning.answers
    assert isinstance(kept, CommitAnswered)
    assert isinstance(refused, Refused)
    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert turning.fetched() == [5]


def test_nothing_of_a_turn_is_believed_where_the_disk_fails(turning: _Bench) -> None:
    turning.keeper.error = ErrorCode.KAFKA_STORAGE_ERROR
    for offset in (5, 6):
        turning.commit(offset)

    turning.end_turn()
    turning.keeper.sync()

    assert [type(answer) for answer in turning.answers] == [Refused, Refused]
    assert turning.fetched() == [1]


def test_a_turn_that_never_ends_cannot_hold_back_any_number_of_commits(turning: _Bench) -> None:
    for offset in range(2_500):
        turning.commit(offset)

    assert turning.keeper.writes == 2
    turning.end_turn()
    assert turning.keeper.writes == 3
