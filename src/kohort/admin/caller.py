"""Questions to the right broker: any one, a certain one, or the coordinators of groups.

It is for what librdkafka's binding cannot ask, asks group by group, or gives up too soon: many
groups travel in one request here, and where a coordinator has moved or is still loading it asks
again until the time is up.
It may be used by many threads; to each broker one question is under way at a time.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeAlias, TypeVar

from kohort.admin.connection import Address, Connection, Lost, deadline_in, seconds_until
from kohort.admin.errors import ClusterUnreachable, name_of
from kohort.types import BrokerId, ErrorCode, GroupId, Millis, value
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k13_leave_group import LeaveGroupRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from kohort.wire.api.k35_describe_log_dirs import DescribeLogDirsRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from kohort.wire.api.k47_offset_delete import OffsetDeleteRequest
from kohort.wire.api.k69_consumer_group_describe import ConsumerGroupDescribeRequest

T = TypeVar("T")

_VERSIONS: Final[Mapping[type, tuple[int, int]]] = {
    # By name; 12 could ask by id.
    MetadataRequest: (9, 12),
    # Beyond 9, topics go by id, here and below.
    OffsetCommitRequest: (8, 9),
    OffsetFetchRequest: (8, 9),
    FindCoordinatorRequest: (4, 5),
    LeaveGroupRequest: (4, 5),
    DescribeGroupsRequest: (5, 6),
    ListGroupsRequest: (4, 5),
    DescribeLogDirsRequest: (2, 4),
    DeleteGroupsRequest: (2, 2),
    OffsetDeleteRequest: (0, 0),
    ConsumerGroupDescribeRequest: (0, 1),
}
"""What we say, in which versions: from what Kafka 3.0 speaks to what has a meaning for us."""

PASSING: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)
"""A moment later the answer may be another."""

_GROUPS_MAX: Final = 500
"""In one request: what a coordinator answers at once must fit into its memory and ours."""

_PAUSE_S: Final = 0.1
"""Between two attempts, as Kafka's retry.backoff.ms."""


@value
class Broker:
    broker_id: BrokerId
    host: str
    port: int


@value
class Answer(Generic[T]):
    """What the coordinator of one group said about it."""

    code: int
    told: T | None
    """None where no coordinator would speak about this group."""
    detail: str | None = None
    """What a broker itself said to an error."""
    coordinator: Broker | None = None


_Homes: TypeAlias = list[tuple[Broker, tuple[GroupId, ...]]]
"""Brokers, and the groups that each coordinates."""


class _Line:
    """The way to one broker: a connection when one is needed, and who may use it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: Connection | None = None


class Caller:
    def __init__(self, bootstrap: tuple[Address, ...], client_id: str, timeout_ms: Millis) -> None:
        self._bootstrap = bootstrap
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._lines: defaultdict[Address, _Line] = defaultdict(_Line)
        self._brokers: tuple[Broker, ...] = ()

    def close(self) -> None:
        for line in list(self._lines.values()):
            with line.lock:
                _hang_up(line)

    # One question

    def brokers(self) -> tuple[Broker, ...]:
        """All there are now, by their ids. ClusterUnreachable where nobody answers."""
        answer = self.ask_any(MetadataRequest(topics=(), allow_auto_topic_creation=False))
        told = (
            Broker(broker_id=each.node_id, host=each.host, port=each.port)
            for each in answer.brokers
        )
        self._brokers = tuple(sorted(told, key=lambda broker: broker.broker_id))
        return self._brokers

    def ask_any(self, body: object) -> Any:
        """Of whoever answers first: brokers that are known, then those to begin with."""
        return self._ask_any(body, deadline_in(self._timeout_ms))

    def ask(self, broker: Broker, body: object) -> Any:
        try:
            return self._ask((broker.host, broker.port), body, deadline_in(self._timeout_ms))
        except Lost as lost:
            where = f"{broker.host}:{broker.port}"
            raise ClusterUnreachable(f"broker {broker.broker_id} at {where}: {lost}") from None

    # Questions about groups

    def ask_coordinators(
        self,
        group_ids: Iterable[GroupId],
        request: Callable[[tuple[GroupId, ...]], object],
        answers: Callable[[Any], Iterable[tuple[GroupId, int, T]]],
    ) -> dict[GroupId, Answer[T]]:
        """What each group's coordinator says: an answer for every group.

        `request` is made for as many groups as one coordinator has; `answers` takes the response
        apart, with an error code for each group.
        """
        deadline = deadline_in(self._timeout_ms)
        pending = tuple(dict.fromkeys(group_ids))
        found: dict[GroupId, Answer[T]] = {}
        reason = ""
        while pending:
            try:
                homes, refused = self._find_coordinators(pending, deadline)
            except ClusterUnreachable:
                if not reason or seconds_until(deadline):
                    raise
                raise self._late(pending, reason) from None
            heard, lost = self._ask_homes(homes, request, answers, deadline)
            # That the time is up says less than what it was spent on.
            if lost and (not reason or seconds_until(deadline)):
                reason = lost
            for group_id, answer in {**refused, **heard}.items():
                if answer.code in PASSING:
                    reason = answer.detail or name_of(answer.code)
                else:
                    found[group_id] = answer
            pending = tuple(group_id for group_id in pending if group_id not in found)
            if pending:
                if not seconds_until(deadline):
                    raise self._late(pending, reason)
                time.sleep(min(_PAUSE_S, seconds_until(deadline)))
        return found

    def _ask_homes(
        self,
        homes: _Homes,
        request: Callable[[tuple[GroupId, ...]], object],
        answers: Callable[[Any], Iterable[tuple[GroupId, int, T]]],
        deadline: float,
    ) -> tuple[dict[GroupId, Answer[T]], str]:
        """What those coordinators say that answer, and why others do not."""
        found: dict[GroupId, Answer[T]] = {}
        reason = ""
        for broker, ids in homes:
            for chunk in _chunks(ids, _GROUPS_MAX):
                try:
                    told = self._ask((broker.host, broker.port), request(chunk), deadline)
                except Lost as lost:
                    reason = f"broker {broker.broker_id}: {lost}"
                    continue
                for group_id, code, part in answers(told):
                    found[group_id] = Answer(code=code, told=part, coordinator=broker)
        return found, reason

    def _late(self, pending: Iterable[GroupId], reason: str) -> ClusterUnreachable:
        what = f"the coordinator of group {next(iter(pending))!r}"
        return ClusterUnreachable(
            f"{what} gave no answer within {self._timeout_ms} ms; the last was {reason or 'none'}"
        )

    def _find_coordinators(
        self, group_ids: tuple[GroupId, ...], deadline: float
    ) -> tuple[_Homes, dict[GroupId, Answer[Any]]]:
        """Groups by the broker that coordinates them, and those that none will tell about."""
        homes: dict[BrokerId, tuple[Broker, list[GroupId]]] = {}
        refused: dict[GroupId, Answer[Any]] = {}
        for chunk in _chunks(group_ids, _GROUPS_MAX):
            body = FindCoordinatorRequest(key_type=0, coordinator_keys=chunk)
            for each in self._ask_any(body, deadline).coordinators:
                group_id = GroupId(each.key)
                if each.error_code != ErrorCode.NONE:
                    detail = each.error_message
                    refused[group_id] = Answer(code=each.error_code, told=None, detail=detail)
                    continue
                broker = Broker(broker_id=each.node_id, host=each.host, port=each.port)
                homes.setdefault(broker.broker_id, (broker, []))[1].append(group_id)
        return [(broker, tuple(ids)) for broker, ids in homes.values()], refused

    # How it travels

    def _ask_any(self, body: object, deadline: float) -> Any:
        known = [(broker.host, broker.port) for broker in self._brokers]
        failures: dict[Address, str] = {}
        for address in dict.fromkeys((*known, *self._bootstrap)):
            try:
                return self._ask(address, body, deadline)
            except Lost as lost:
                failures[address] = str(lost)
        shown = "; ".join(f"{host}:{port}: {why}" for (host, port), why in failures.items())
        raise ClusterUnreachable(f"no broker can be reached: {shown}")

    def _ask(self, address: Address, body: object, deadline: float) -> Any:
        with self._line(address, deadline) as line:
            is_reused = line.connection is not None
            connection = self._connection(line, address, deadline)
            try:
                return connection.ask(body, _VERSIONS[type(body)], deadline)
            except Lost:
                # A broker closes what was idle for long, which is noticed only now.
                if not is_reused or not seconds_until(deadline):
                    raise
                _hang_up(line)
                return self._connection(line, address, deadline).ask(
                    body, _VERSIONS[type(body)], deadline
                )

    def _connection(self, line: _Line, address: Address, deadline: float) -> Connection:
        if line.connection is None:
            line.connection = Connection(address, self._client_id, deadline)
        return line.connection

    @contextmanager
    def _line(self, address: Address, deadline: float) -> Iterator[_Line]:
        """The way to a broker, for nobody else meanwhile; its connection ends where it is lost."""
        line = self._lines[address]
        if not line.lock.acquire(timeout=seconds_until(deadline)):
            raise Lost("it is busy with another question")
        try:
            yield line
        except Lost:
            _hang_up(line)
            raise
        finally:
            line.lock.release()


def _hang_up(line: _Line) -> None:
    if line.connection is not None:
        line.connection.close()
        line.connection = None


def _chunks(ids: tuple[GroupId, ...], size: int) -> Iterator[tuple[GroupId, ...]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]
