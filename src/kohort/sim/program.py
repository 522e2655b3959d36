"""The little program a member works for: it polls, works, commits, and at times does otherwise.

It has one thread. Its listener is called in poll, on that thread; while it works on records or is
busy with something else, it hears of nothing.
"""

from collections.abc import Callable
from typing import Final

from kohort.client.errors import Fenced
from kohort.client.member.effects import Call, Change, Committed, CommittedTold, Failed
from kohort.client.member.events import (
    CallbackReturned,
    Closed,
    CommitAsked,
    CommittedAsked,
    Polled,
    Position,
    Question,
    RejoinAsked,
    Subscribed,
    Withdrawn,
)
from kohort.client.topic_partition import TopicPartition
from kohort.sim.consumer import Consumer, End
from kohort.sim.life import Reminder
from kohort.sim.plan import Commits
from kohort.sim.reader import Piece
from kohort.sim.showing import show_pieces, show_positions
from kohort.sim.stage import Stage
from kohort.types import Topic

_POLL_MS: Final = 1_000
_CLOSE_MS: Final = 5_000
_COMMIT_MS: Final = 4_000
"""How long it waits for a commit that it must know about."""
_CALLBACK_MS_MAX: Final = 30


class Program:
    """Runs from its start until it is closed, or its process ends."""

    def __init__(self, stage: Stage, consumer: Consumer, topics: frozenset[Topic]) -> None:
        self._stage = stage
        self._consumer = consumer
        self._life = consumer.life
        self._reader = consumer.reader
        self._plan = consumer.plan
        self._chance = stage.dice.named("program", consumer.name)
        self._is_in_poll = False
        self._is_looking = self._has_news = False
        self._is_closing = False
        self._is_busy = False
        self._poll_end: Reminder | None = None
        self._call: Call | None = None
        self._is_calling = False
        self._failure: Failed | None = None
        self._errands: list[Callable[[], bool]] = []
        self._questions = 0
        self._placing: tuple[Question, frozenset[TopicPartition]] | None = None
        self._committing: dict[Question, dict[TopicPartition, Position]] = {}
        self._awaiting: tuple[Question, Callable[[], None]] | None = None
        listener = consumer.listener
        listener.on_call = self._on_call
        listener.on_committed = self._on_committed
        listener.on_positions = self._on_positions
        listener.on_await = self._on_await
        listener.on_failed = self._on_failed
        listener.on_ended = self._on_ended
        listener.on_news = self._look
        self._subscribe(topics)
        self._poll()

    # What it may be told to do, when it is not in poll

    @property
    def has_errands(self) -> bool:
        return bool(self._errands) or self._is_busy

    def subscribe(self, topics: frozenset[Topic]) -> None:
        self._errands.append(lambda: self._subscribe(topics))

    def rejoin(self) -> None:
        self._errands.append(self._rejoin)

    def be_busy(self, for_ms: int) -> None:
        """With one thing at a time."""
        if not self._is_busy:
            self._is_busy = True
            self._errands.append(lambda: self._be_busy(for_ms))

    def close(self) -> None:
        self._errands.append(self._close)

    def _subscribe(self, topics: frozenset[Topic]) -> bool:
        self._consumer.topics = topics
        self._consumer.tell(Subscribed(topics=topics))
        return True

    def _rejoin(self) -> bool:
        self._consumer.tell(RejoinAsked(reason="the program wants it"))
        return True

    def _be_busy(self, for_ms: int) -> bool:
        self._life.later(for_ms, self._be_back)
        return False

    def _be_back(self) -> None:
        self._is_busy = False
        self._poll()

    def _close(self) -> bool:
        self._is_closing = True
        self._life.later(_CLOSE_MS, self._on_ended)
        self._consumer.tell(Closed())
        return False

    # Polling

    def _poll(self) -> None:
        while self._errands:
            if not self._errands.pop(0)():
                return
        self._is_in_poll = True
        self._poll_end = self._life.later(_POLL_MS, self._leave_poll)
        self._consumer.tell(Polled())

    def _leave_poll(self) -> None:
        if self._is_calling:
            # A listener takes as long as it takes, and the poll with it.
            self._poll_end = self._life.later(_CALLBACK_MS_MAX, self._leave_poll)
            return
        self._is_in_poll = False
        if self._plan.commits is Commits.AUTO:
            self._poll()
        else:
            self._commit_by_hand(self._poll)

    def _look(self) -> None:
        """Something has happened: what can be done now?"""
        self._has_news = True
        if self._is_looking:
            return
        self._is_looking = True
        try:
            while self._has_news and self._life.is_running:
                self._has_news = False
                self._do_next()
        finally:
            self._is_looking = False

    def _do_next(self) -> None:
        if self._call is not None:
            if not self._is_calling and (self._is_in_poll or self._is_closing):
                self._hear(self._call)
            return
        self._reader.fetch()
        if not self._is_in_poll:
            return
        if self._failure is not None:
            self._despair(self._failure)
            return
        self._ask_for_positions()
        self._take_records()

    def _take_records(self) -> None:
        # What was just asked for may have brought a call, which then comes first.
        pieces = self._reader.take() if self._call is None else []
        if pieces:
            self._work_on(pieces)

    def _on_await(self) -> None:
        if self._is_in_poll and not self._is_calling:
            self._consumer.tell(Polled())

    def _stop_polling(self) -> None:
        self._is_in_poll = False
        if self._poll_end is not None:
            self._poll_end.cancel()

    def _on_failed(self, failed: Failed) -> None:
        self._failure = failed

    def _despair(self, failed: Failed) -> None:
        self._failure = None
        self._stop_polling()
        if isinstance(failed.error, Fenced):
            self._consumer.end(End.FENCED)
        else:
            self._life.later(500, self._poll)

    def _on_ended(self) -> None:
        self._consumer.end(End.CLOSED)

    # Working

    def _work_on(self, pieces: list[Piece]) -> None:
        self._stop_polling()
        for piece in pieces:
            worker = self._consumer.worker_at(piece.partition)
            self._stage.court.deliveries.taken(worker, piece.partition, piece.offset, piece.text)
        duration_ms = self._plan.record_ms * len(pieces)
        self._life.later(duration_ms, lambda: self._finish(pieces))

    def _finish(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            worker = self._consumer.worker_at(piece.partition)
            self._stage.court.deliveries.processed(
                worker, piece.partition, piece.offset, piece.text
            )
        if self._stage.trace.is_read:
            self._stage.trace.tell(self._consumer.name, "processed", show_pieces(pieces))
        self._reader.finish(pieces)
        if self._plan.commits is Commits.AUTO:
            self._poll()
        else:
            self._commit_by_hand(self._poll)

    # Committing

    def _commit_by_hand(self, then: Callable[[], None]) -> None:
        """And go on: at once, or when it is answered."""
        if self._plan.commits is Commits.SYNC:
            self._commit(None, then)
        else:
            if not self._committing:
                self._commit(None, None)
            then()

    def _commit(
        self, among: frozenset[TopicPartition] | None, then: Callable[[], None] | None
    ) -> None:
        positions = self._reader.unsaved(among)
        if not positions:
            if then is not None:
                then()
            return
        question = self._next_question()
        self._committing[question] = positions
        if then is not None:
            self._awaiting = (question, then)
            self._life.later(_COMMIT_MS, lambda: self._withdraw(question))
        self._stage.trace.tell(self._consumer.name, "commits", show_positions(positions))
        self._consumer.tell(CommitAsked(question=question, positions=positions))

    def _on_committed(self, committed: Committed) -> None:
        positions = self._committing.pop(committed.question, {})
        if committed.error is None:
            self._reader.saved(positions)
        self._go_on(committed.question)

    def _withdraw(self, question: Question) -> None:
        if self._committing.pop(question, None) is not None:
            self._consumer.tell(Withdrawn(question=question))
            self._go_on(question)

    def _go_on(self, question: Question) -> None:
        if self._awaiting is not None and self._awaiting[0] == question:
            then = self._awaiting[1]
            self._awaiting = None
            # Whoever waits is woken by the member's thread, and runs a moment later.
            self._life.later(0, then)

    def _next_question(self) -> Question:
        self._questions += 1
        return Question(self._questions)

    # Hearing of changes

    def _on_call(self, call: Call) -> None:
        self._call = call
        if call.change is not Change.ASSIGNED:
            self._reader.hold_back(call.partitions)
        if call.change is Change.LOST and self._is_closing:
            self._stage.court.deliveries.left_amid_rebalance(self._plan.group, call.partitions)

    def _hear(self, call: Call) -> None:
        self._is_calling = True
        if call.change is Change.REVOKED and self._plan.commits is not Commits.AUTO:
            self._commit(call.partitions, lambda: self._hear_out(call))
        else:
            self._hear_out(call)

    def _hear_out(self, call: Call) -> None:
        self._life.later(self._chance.uniform(0, _CALLBACK_MS_MAX), lambda: self._heard(call))

    def _heard(self, call: Call) -> None:
        if call.change is Change.ASSIGNED:
            self._reader.add(call.partitions)
        else:
            self._reader.drop(call.partitions)
            # What was asked before is answered for a time that is over.
            self._placing = None
        self._call = None
        self._is_calling = False
        self._consumer.tell(CallbackReturned())

    # Where to begin

    def _ask_for_positions(self) -> None:
        unplaced = self._reader.unplaced()
        if unplaced and self._placing is None:
            question = self._next_question()
            self._placing = (question, unplaced)
            self._consumer.tell(CommittedAsked(question=question, partitions=unplaced))

    def _on_positions(self, told: CommittedTold) -> None:
        if self._placing is None or self._placing[0] != told.question:
            return
        asked, self._placing = self._placing[1], None
        if told.error is None:
            self._reader.place(asked, {at: each.offset for at, each in told.positions.items()})
