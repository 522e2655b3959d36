"""Sends requests to the right brokers: any, the controller, group coordinators, partition leaders.

It retries until the deadline if a coordinator or leader has moved, is loading or is unreachable.
Calls for many groups or partitions send one request per broker. Thread-safe, with one in-flight
request per broker.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeAlias, TypeVar

from kohort.admin.errors import (
    AdminError,
    ClusterUnreachable,
    InvalidRequest,
    UnsupportedCluster,
    error_name,
)
from kohort.admin.options import AdminSettings
from kohort.protocol.blocking_connection import BlockingConnection, monotonic_ms
from kohort.protocol.errors import (
    ConnectFailed,
    ProtocolError,
    RequestTimedOut,
    UnencodableRequest,
    UnsupportedByBroker,
)
from kohort.protocol.sockets import Address
from kohort.types import BrokerId, ErrorCode, GroupId, Millis, Topic, TopicPartition, value
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

COORDINATOR_RETRIABLE: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)
"""The coordinator has moved, or is not ready yet."""

LEADER_RETRIABLE: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)
"""The leader has moved, or is not ready yet."""

_WRONG_BROKER: Final = frozenset(
    (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
)
"""Error codes of a broker that is not the leader any more."""

_GROUPS_MAX: Final = 500
"""Per request; limits the memory of the coordinator and of this client."""


@value
class BrokerEndpoint:
    broker_id: BrokerId
    host: str
    port: int

    @property
    def address(self) -> Address:
        return self.host, self.port


@value
class PartialResponse(Generic[T]):
    """The part of a response that concerns one group or partition."""

    error_code: int
    body: T | None
    """None if the coordinator or leader could not be found."""
    error_message: str | None = None
    """The broker's own error message."""
    broker: BrokerEndpoint | None = None
    """The broker that sent the response."""


_Routes: TypeAlias = dict[BrokerId, tuple[BrokerEndpoint, list[K]]]
"""Groups or partitions by the broker that is responsible for them."""

_Found: TypeAlias = tuple[_Routes[K], dict[K, PartialResponse[Any]]]
"""Routes, and errors for keys without a broker."""


class _BrokerConnection:
    """The connection to one broker, and a lock for the thread that uses it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: BlockingConnection | None = None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Router:
    def __init__(self, settings: AdminSettings, timeout_ms: Millis) -> None:
        """`timeout_ms` is the default limit of one call, including retries."""
        self._settings = settings
        self._timeout_ms = timeout_ms
        self._connections: defaultdict[Address, _BrokerConnection] = defaultdict(_BrokerConnection)
        self._brokers: dict[BrokerId, BrokerEndpoint] = {}
        self._controller_id: BrokerId | None = None
        """The broker that has answered the last request to the controller."""
        self._leaders: dict[TopicPartition, BrokerEndpoint] = {}

    def close(self) -> None:
        for broker_connection in list(self._connections.values()):
            with broker_connection.lock:
                broker_connection.close()

    # Requests to one broker

    def brokers(self) -> tuple[BrokerEndpoint, ...]:
        """All brokers, sorted by id. Raises ClusterUnreachable."""
        self._metadata((), self._deadline())
        return tuple(self._brokers[each] for each in sorted(self._brokers))

    def send_to_any(self, body: object) -> Any:
        """The first response; tries known brokers, then the bootstrap servers."""
        return self._send_to_any(body, self._deadline())

    def send(self, broker: BrokerEndpoint, body: object) -> Any:
        try:
            return self._send(broker.address, body, self._deadline())
        except ProtocolError as error:
            raise ClusterUnreachable(_describe(broker, body, error)) from None

    def send_with_retries(
        self,
        body: object,
        code_of: Callable[[Any], int],
        retriable: frozenset[ErrorCode],
        timeout_ms: Millis,
    ) -> Any:
        """The response of any broker; retries while its error code is retriable."""
        deadline = self._deadline(timeout_ms)
        while True:
            response = self._send_to_any(body, deadline)
            if code_of(response) not in retriable or not self._pause(deadline):
                return response

    def send_to_controller(self, body: object, code_of: Callable[[Any], int]) -> Any:
        """The controller's response. A KRaft cluster names any broker, which forwards it."""
        deadline = self._deadline()
        while True:
            controller_id, self._controller_id = self._controller_id, None
            if controller_id is None:
                controller_id = self._metadata((), deadline).controller_id
            broker = self._brokers.get(controller_id)
            reason = f"the controller, broker {controller_id}, is not available"
            if broker is not None:
                try:
                    response = self._send(broker.address, body, deadline)
                except ConnectFailed as error:  # not sent, so safe to retry
                    reason = _describe(broker, body, error)
                except ProtocolError as error:
                    raise ClusterUnreachable(_describe(broker, body, error)) from None
                else:
                    if code_of(response) != ErrorCode.NOT_CONTROLLER:
                        self._controller_id = controller_id
                        return response
                    if not self._pause(deadline):
                        return response
                    continue
            if not self._pause(deadline):
                raise ClusterUnreachable(reason)

    # Requests by group or partition

    def send_to_coordinators(
        self,
        group_ids: Iterable[GroupId],
        request: Callable[[tuple[GroupId, ...]], object],
        split: Callable[[Any], Iterable[tuple[GroupId, int, T]]],
    ) -> dict[GroupId, PartialResponse[T]]:
        """One partial response per group, from its coordinator.

        `request` makes the request for the groups of one coordinator. `split` splits its response
        into (group, error code, part).
        """
        return self._send_by_key(
            group_ids,
            self._find_coordinators,
            request,
            split,
            retriable=COORDINATOR_RETRIABLE,
            deadline=self._deadline(),
            role="coordinator of group",
        )

    def send_to_leaders(
        self,
        partitions: Iterable[TopicPartition],
        request: Callable[[tuple[TopicPartition, ...]], object],
        split: Callable[[Any], Iterable[tuple[TopicPartition, int, T]]],
        *,
        retriable: frozenset[ErrorCode] = LEADER_RETRIABLE,
        timeout_ms: Millis | None = None,
        version_max: int | None = None,
    ) -> dict[TopicPartition, PartialResponse[T]]:
        """Like `send_to_coordinators`, for partitions and their leaders.

        A partition without a leader gets LEADER_NOT_AVAILABLE.
        """
        return self._send_by_key(
            partitions,
            self._find_leaders,
            request,
            split,
            retriable=retriable,
            deadline=self._deadline(timeout_ms),
            role="leader of partition",
            version_max=version_max,
        )

    def _send_by_key(
        self,
        keys: Iterable[K],
        find: Callable[[tuple[K, ...], Millis], _Found[K]],
        request: Callable[[tuple[K, ...]], object],
        split: Callable[[Any], Iterable[tuple[K, int, T]]],
        *,
        retriable: frozenset[ErrorCode],
        deadline: Millis,
        role: str,
        version_max: int | None = None,
    ) -> dict[K, PartialResponse[T]]:
        start_ms = monotonic_ms()
        pending = tuple(dict.fromkeys(keys))
        found: dict[K, PartialResponse[T]] = {}
        reason = ""
        while pending:
            try:
                routes, errors = find(pending, deadline)
            except ClusterUnreachable:
                if not reason or monotonic_ms() < deadline:
                    raise
                raise _timed_out(role, pending[0], start_ms, reason) from None
            received, failure = self._send_to_routes(routes, request, split, deadline, version_max)
            # The failure before the deadline explains more than the timeout itself.
            if failure and (not reason or monotonic_ms() < deadline):
                reason = failure
            for key, response in {**errors, **received}.items():
                if (
                    self._forget_leader(key, response.error_code)
                    or response.error_code in retriable
                ):
                    reason = response.error_message or error_name(response.error_code)
                else:
                    found[key] = response
            pending = tuple(key for key in pending if key not in found)
            if pending and not self._pause(deadline):
                raise _timed_out(role, pending[0], start_ms, reason)
        return found

    def _send_to_routes(
        self,
        routes: _Routes[K],
        request: Callable[[tuple[K, ...]], object],
        split: Callable[[Any], Iterable[tuple[K, int, T]]],
        deadline: Millis,
        version_max: int | None,
    ) -> tuple[dict[K, PartialResponse[T]], str]:
        """The responses of all reachable brokers, and the last failure."""
        found: dict[K, PartialResponse[T]] = {}
        reason = ""
        for broker, keys in routes.values():
            for start in range(0, len(keys), _GROUPS_MAX):
                chunk = tuple(keys[start : start + _GROUPS_MAX])
                body = request(chunk)
                try:
                    response = self._send(broker.address, body, deadline, version_max)
                except ProtocolError as error:
                    reason = _describe(broker, body, error)
                    for key in chunk:
                        self._forget_leader(key)
                    continue
                for key, code, part in split(response):
                    found[key] = PartialResponse(error_code=code, body=part, broker=broker)
        return found, reason

    def _find_coordinators(
        self, group_ids: tuple[GroupId, ...], deadline: Millis
    ) -> _Found[GroupId]:
        routes: _Routes[GroupId] = {}
        errors: dict[GroupId, PartialResponse[Any]] = {}
        for start in range(0, len(group_ids), _GROUPS_MAX):
            chunk = group_ids[start : start + _GROUPS_MAX]
            body = FindCoordinatorRequest(key_type=0, coordinator_keys=chunk)
            for each in self._send_to_any(body, deadline).coordinators:
                group_id = GroupId(each.key)
                if each.error_code == ErrorCode.NONE:
                    broker = BrokerEndpoint(broker_id=each.node_id, host=each.host, port=each.port)
                    routes.setdefault(each.node_id, (broker, []))[1].append(group_id)
                else:
                    detail = each.error_message
                    errors[group_id] = PartialResponse(
                        error_code=each.error_code, body=None, error_message=detail
                    )
        return routes, errors

    def _find_leaders(
        self, partitions: tuple[TopicPartition, ...], deadline: Millis
    ) -> _Found[TopicPartition]:
        """Cached leaders are used until a broker reports that they moved."""
        unknown = {each.topic for each in partitions if each not in self._leaders}
        codes = self._refresh_leaders(unknown, deadline) if unknown else {}
        routes: _Routes[TopicPartition] = {}
        errors: dict[TopicPartition, PartialResponse[Any]] = {}
        for partition in partitions:
            leader = self._leaders.get(partition)
            if leader is None:
                code = codes.get(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                errors[partition] = PartialResponse(error_code=code, body=None)
            else:
                routes.setdefault(leader.broker_id, (leader, []))[1].append(partition)
        return routes, errors

    def _refresh_leaders(
        self, topics: Iterable[Topic], deadline: Millis
    ) -> dict[TopicPartition, int]:
        """Update the leader cache; returns the error codes of partitions without a leader."""
        codes: dict[TopicPartition, int] = {}
        for topic in self._metadata(topics, deadline).topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                leader = self._brokers.get(each.leader_id)
                if leader is None:
                    codes[partition] = ErrorCode.LEADER_NOT_AVAILABLE
                else:
                    self._leaders[partition] = leader
        return codes

    def _forget_leader(self, key: Hashable, code: int = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> bool:
        """Drop a stale leader from the cache; whether there was one."""
        if code not in _WRONG_BROKER or not isinstance(key, TopicPartition):
            return False
        return self._leaders.pop(key, None) is not None

    # Transport

    def _metadata(self, topics: Iterable[Topic], deadline: Millis) -> Any:
        asked = tuple(MetadataRequestTopic(name=topic) for topic in sorted(topics))
        body = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        response = self._send_to_any(body, deadline)
        self._brokers = {
            each.node_id: BrokerEndpoint(broker_id=each.node_id, host=each.host, port=each.port)
            for each in response.brokers
        }
        return response

    def _deadline(self, timeout_ms: Millis | None = None) -> Millis:
        return Millis(monotonic_ms() + (self._timeout_ms if timeout_ms is None else timeout_ms))

    def _pause(self, deadline: Millis) -> bool:
        """Wait before the next attempt; False if the deadline has passed."""
        left_ms = deadline - monotonic_ms()
        if left_ms <= 0:
            return False
        time.sleep(min(self._settings.retry_backoff_ms, left_ms) / 1000)
        return True

    def _send_to_any(self, body: object, deadline: Millis) -> Any:
        known = [broker.address for broker in self._brokers.values()]
        failures: dict[Address, str] = {}
        for address in dict.fromkeys((*known, *self._settings.bootstrap)):
            try:
                return self._send(address, body, deadline)
            except ProtocolError as error:
                failures[address] = str(error)
        shown = ", ".join(f"{host}:{port} ({why})" for (host, port), why in failures.items())
        raise ClusterUnreachable(f"no broker answered at {shown}")

    def _send(
        self, address: Address, body: object, deadline: Millis, version_max: int | None = None
    ) -> Any:
        deadline = Millis(min(deadline, monotonic_ms() + self._settings.request_timeout_ms))
        with self._locked_connection(address, deadline) as broker_connection:
            is_reused = broker_connection.connection is not None
            try:
                return self._request(broker_connection, address, body, deadline, version_max)
            except (RequestTimedOut, UnencodableRequest, UnsupportedByBroker):
                raise
            except ProtocolError:
                # The broker may have closed the connection because it was idle.
                if not is_reused:
                    raise
                broker_connection.close()
                return self._request(broker_connection, address, body, deadline, version_max)

    def _request(
        self,
        broker_connection: _BrokerConnection,
        address: Address,
        body: object,
        deadline: Millis,
        version_max: int | None,
    ) -> Any:
        if broker_connection.connection is None:
            connection = self._settings.connection
            broker_connection.connection = BlockingConnection(address, connection, deadline)
        return broker_connection.connection.request(body, deadline, version_max=version_max)

    @contextmanager
    def _locked_connection(self, address: Address, deadline: Millis) -> Iterator[_BrokerConnection]:
        """The connection to a broker, locked for this thread. Closed after a failure."""
        broker_connection = self._connections[address]
        if not broker_connection.lock.acquire(timeout=max(0, deadline - monotonic_ms()) / 1000):
            raise RequestTimedOut("the connection is busy with another request")
        try:
            yield broker_connection
        except UnencodableRequest as error:
            raise InvalidRequest(f"cannot encode the request: {error}") from None
        except UnsupportedByBroker as error:
            raise UnsupportedCluster(f"broker {address[0]}:{address[1]}: {error}") from None
        except ProtocolError:
            broker_connection.close()
            raise
        finally:
            broker_connection.lock.release()


def _describe(broker: BrokerEndpoint, body: object, error: ProtocolError) -> str:
    api = type(body).__name__.removesuffix("Request")
    return f"broker {broker.broker_id} at {broker.host}:{broker.port}: {api}: {error}"


def _timed_out(role: str, key: Hashable, start_ms: Millis, reason: str) -> AdminError:
    shown = f"{key.topic}:{key.partition}" if isinstance(key, TopicPartition) else repr(key)
    waited_ms = monotonic_ms() - start_ms
    return ClusterUnreachable(
        f"timed out after {waited_ms} ms: no response from the {role} {shown}; "
        f"last failure: {reason or 'none'}"
    )
