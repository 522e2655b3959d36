"""OffsetFetch: what the group has committed, asked for until it is known."""

from collections.abc import Mapping
from dataclasses import dataclass

from kohort.client.backoff import Backoff
from kohort.client.errors import ConsumerError, UnknownTopic, Unreachable
from kohort.client.member.coordinator_search import CoordinatorSearch
from kohort.client.member.effects import Broker, CommittedTold
from kohort.client.member.events import Loss, Position, Question, RequestNumber
from kohort.client.member.leading import grouped
from kohort.client.member.outbox import Outbox
from kohort.client.member.settings import MemberSettings
from kohort.client.refusals import NOT_THERE, RETRIABLE, named, refusal
from kohort.client.topic_partition import TopicPartition
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)


@dataclass(slots=True, eq=False)
class _Asked:
    question: Question
    partitions: frozenset[TopicPartition]
    ends_at: Millis
    attempts: int = 0
    retry_at: Millis | None = None
    number: RequestNumber | None = None
    broker: Broker | None = None
    """Where it was sent."""
    trouble: str = "the coordinator could not be found"


class CommittedOffsets:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        backoff: Backoff,
        search: CoordinatorSearch,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._backoff = backoff
        self._search = search
        self._open: dict[Question, _Asked] = {}

    def ask(self, question: Question, partitions: frozenset[TopicPartition], now: Millis) -> None:
        ends_at = Millis(now + self._settings.default_api_timeout_ms)
        asked = _Asked(question=question, partitions=partitions, ends_at=ends_at)
        self._open[question] = asked
        if not partitions:
            self._finish(asked, {}, None)

    def withdraw(self, question: Question) -> None:
        asked = self._open.pop(question, None)
        if asked is not None:
            self._outbox.forget(asked.number)

    def refuse_all(self, error: ConsumerError) -> None:
        for asked in list(self._open.values()):
            self._outbox.forget(asked.number)
            self._finish(asked, {}, error)

    @property
    def is_waiting(self) -> bool:
        """Whether something waits for a coordinator."""
        return any(each.number is None for each in self._open.values())

    def flush(self, now: Millis) -> None:
        for asked in list(self._open.values()):
            if asked.number is not None:
                continue
            if now >= asked.ends_at:
                why = Unreachable(f"what is committed is not known in time: {asked.trouble}")
                self._finish(asked, {}, why)
            elif self._search.coordinator is not None and now >= (asked.retry_at or now):
                self._send(asked)

    def _send(self, asked: _Asked) -> None:
        topics = tuple(
            OffsetFetchRequestTopics(name=each.topic, partition_indexes=each.partitions)
            for each in grouped(asked.partitions)
        )
        group = OffsetFetchRequestGroup(group_id=self._settings.group_id, topics=topics)
        asked.retry_at = None
        asked.broker = self._search.coordinator
        asked.number = self._outbox.send(
            OffsetFetchRequest(groups=(group,), require_stable=True),
            asked.broker,
            self._settings.request_timeout_ms,
            lambda answer, at: self._on_answer(asked, answer, at),
        )

    def due(self) -> Millis | None:
        waiting = [each for each in self._open.values() if each.number is None]
        moments = [each.ends_at for each in waiting]
        if self._search.coordinator is not None:
            moments += [each.retry_at for each in waiting if each.retry_at is not None]
        return min(moments, default=None)

    def _on_answer(self, asked: _Asked, answer: object, now: Millis) -> None:
        asked.number = None
        if isinstance(answer, Loss):
            self._search.lose_if(asked.broker, now)
            self._try_again(asked, f"the coordinator is {answer}", now)
            return
        assert isinstance(answer, OffsetFetchResponse)
        group = next((g for g in answer.groups if g.group_id == self._settings.group_id), None)
        code = ErrorCode.UNKNOWN_SERVER_ERROR if group is None else named(group.error_code)
        if group is not None and code is ErrorCode.NONE:
            self._on_offsets(asked, group, now)
            return
        if code in NOT_THERE:
            self._search.lose_if(asked.broker, now)
        if code in RETRIABLE:
            self._try_again(asked, code.name, now)
        else:
            what = "asking what is committed"
            self._finish(asked, {}, refusal(self._settings.group_id, code, what))

    def _on_offsets(self, asked: _Asked, group: OffsetFetchResponseGroup, now: Millis) -> None:
        found: dict[TopicPartition, Position] = {}
        wrong: dict[TopicPartition, int] = {}
        for topic in group.topics:
            for each in topic.partitions:
                at = TopicPartition(topic.name, each.partition_index)
                if each.error_code != ErrorCode.NONE:
                    wrong[at] = each.error_code
                elif each.committed_offset >= 0 and at in asked.partitions:
                    found[at] = Position(
                        offset=each.committed_offset,
                        metadata=each.metadata or "",
                        leader_epoch=each.committed_leader_epoch,
                    )
        self._on_partitions(asked, found, wrong, now)

    def _on_partitions(
        self,
        asked: _Asked,
        found: Mapping[TopicPartition, Position],
        wrong: Mapping[TopicPartition, int],
        now: Millis,
    ) -> None:
        """What cannot be mended is told first; an open transaction only has to be waited for."""
        for at, code in sorted(wrong.items()):
            if code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                continue
            what = f"asking what is committed for {at.topic}-{at.partition}"
            error: ConsumerError = refusal(self._settings.group_id, code, what)
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                error = UnknownTopic(at.topic)
            self._finish(asked, {}, error)
            return
        if wrong:
            self._try_again(asked, "a transaction is open", now)
        else:
            self._finish(asked, found, None)

    def _try_again(self, asked: _Asked, trouble: str, now: Millis) -> None:
        asked.trouble = trouble
        asked.retry_at = self._backoff.after(now, asked.attempts)
        asked.attempts += 1

    def _finish(
        self,
        asked: _Asked,
        positions: Mapping[TopicPartition, Position],
        error: ConsumerError | None,
    ) -> None:
        del self._open[asked.question]
        self._outbox.say(CommittedTold(question=asked.question, positions=positions, error=error))
