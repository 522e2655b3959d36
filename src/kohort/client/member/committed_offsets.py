"""OffsetFetch: fetches the group's committed offsets, with retries."""

from collections.abc import Mapping
from dataclasses import dataclass

from kohort.client.error_codes import COORDINATOR_MOVED, RETRIABLE, error_code, group_error
from kohort.client.errors import ConsumerError, KafkaTimeoutError, UnknownTopicOrPartitionError
from kohort.client.member.effects import BrokerAddress, CommittedFetched
from kohort.client.member.find_coordinator import CoordinatorSearch
from kohort.client.member.leader_assignment import group_by_topic
from kohort.client.member.member_events import CallId, OffsetAndMetadata, RequestFailure, RequestId
from kohort.client.member.member_settings import MemberSettings
from kohort.client.member.outbox import Outbox
from kohort.protocol.backoff import Backoff
from kohort.types import ErrorCode, Millis, TopicPartition
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)


@dataclass(slots=True, eq=False)
class _PendingFetch:
    call_id: CallId
    partitions: frozenset[TopicPartition]
    deadline: Millis
    attempts: int = 0
    retry_at: Millis | None = None
    request_id: RequestId | None = None
    broker: BrokerAddress | None = None
    """Where it was sent."""
    reason: str = "the coordinator was not found"


class CommittedOffsetFetcher:
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
        self._open: dict[CallId, _PendingFetch] = {}

    def request(self, call_id: CallId, partitions: frozenset[TopicPartition], now: Millis) -> None:
        deadline = Millis(now + self._settings.default_api_timeout_ms)
        fetch = _PendingFetch(call_id=call_id, partitions=partitions, deadline=deadline)
        self._open[call_id] = fetch
        if not partitions:
            self._finish(fetch, {}, None)

    def cancel(self, call_id: CallId) -> None:
        fetch = self._open.pop(call_id, None)
        if fetch is not None:
            self._outbox.cancel(fetch.request_id)

    def fail_all(self, error: ConsumerError) -> None:
        for fetch in list(self._open.values()):
            self._outbox.cancel(fetch.request_id)
            self._finish(fetch, {}, error)

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits for the coordinator."""
        return any(each.request_id is None for each in self._open.values())

    def flush(self, now: Millis) -> None:
        for fetch in list(self._open.values()):
            if fetch.request_id is not None:
                continue
            if now >= fetch.deadline:
                why = KafkaTimeoutError(
                    f"committed offsets were not fetched in time: {fetch.reason}"
                )
                self._finish(fetch, {}, why)
            elif self._search.coordinator is not None and now >= (fetch.retry_at or now):
                self._send(fetch)

    def _send(self, fetch: _PendingFetch) -> None:
        topics = tuple(
            OffsetFetchRequestTopics(name=each.topic, partition_indexes=each.partitions)
            for each in group_by_topic(fetch.partitions)
        )
        group = OffsetFetchRequestGroup(group_id=self._settings.group_id, topics=topics)
        fetch.retry_at = None
        fetch.broker = self._search.coordinator
        fetch.request_id = self._outbox.send(
            OffsetFetchRequest(groups=(group,), require_stable=True),
            fetch.broker,
            self._settings.request_timeout_ms,
            lambda response, at: self._on_response(fetch, response, at),
        )

    def due(self) -> Millis | None:
        waiting = [each for each in self._open.values() if each.request_id is None]
        deadlines = [each.deadline for each in waiting]
        if self._search.coordinator is not None:
            deadlines += [each.retry_at for each in waiting if each.retry_at is not None]
        return min(deadlines, default=None)

    def _on_response(self, fetch: _PendingFetch, response: object, now: Millis) -> None:
        fetch.request_id = None
        if isinstance(response, RequestFailure):
            self._search.mark_unknown_if(fetch.broker, now)
            self._try_again(fetch, f"request to the coordinator failed ({response})", now)
            return
        assert isinstance(response, OffsetFetchResponse)
        group = next((g for g in response.groups if g.group_id == self._settings.group_id), None)
        code = ErrorCode.UNKNOWN_SERVER_ERROR if group is None else error_code(group.error_code)
        if group is not None and code is ErrorCode.NONE:
            self._on_offsets(fetch, group, now)
            return
        if code in COORDINATOR_MOVED:
            self._search.mark_unknown_if(fetch.broker, now)
        if code in RETRIABLE:
            self._try_again(fetch, code.name, now)
        else:
            what = "OffsetFetch"
            self._finish(fetch, {}, group_error(self._settings.group_id, code, what))

    def _on_offsets(
        self, fetch: _PendingFetch, group: OffsetFetchResponseGroup, now: Millis
    ) -> None:
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        wrong: dict[TopicPartition, int] = {}
        for topic in group.topics:
            for each in topic.partitions:
                at = TopicPartition(topic.name, each.partition_index)
                if each.error_code != ErrorCode.NONE:
                    wrong[at] = each.error_code
                elif each.committed_offset >= 0 and at in fetch.partitions:
                    found[at] = OffsetAndMetadata(
                        offset=each.committed_offset,
                        metadata=each.metadata or "",
                        leader_epoch=each.committed_leader_epoch,
                    )
        self._on_partitions(fetch, found, wrong, now)

    def _on_partitions(
        self,
        fetch: _PendingFetch,
        found: Mapping[TopicPartition, OffsetAndMetadata],
        wrong: Mapping[TopicPartition, int],
        now: Millis,
    ) -> None:
        """Report fatal errors first; an open transaction only needs a retry."""
        for at, code in sorted(wrong.items()):
            if code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                continue
            what = f"OffsetFetch of {at.topic}-{at.partition}"
            error: ConsumerError = group_error(self._settings.group_id, code, what)
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                error = UnknownTopicOrPartitionError(at.topic)
            self._finish(fetch, {}, error)
            return
        if wrong:
            self._try_again(fetch, "a transaction is open (UNSTABLE_OFFSET_COMMIT)", now)
        else:
            self._finish(fetch, found, None)

    def _try_again(self, fetch: _PendingFetch, reason: str, now: Millis) -> None:
        fetch.reason = reason
        fetch.retry_at = self._backoff.after(now, fetch.attempts)
        fetch.attempts += 1

    def _finish(
        self,
        fetch: _PendingFetch,
        positions: Mapping[TopicPartition, OffsetAndMetadata],
        error: ConsumerError | None,
    ) -> None:
        del self._open[fetch.call_id]
        self._outbox.add(CommittedFetched(call_id=fetch.call_id, positions=positions, error=error))
