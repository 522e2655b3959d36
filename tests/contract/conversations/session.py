"""One run of a conversation: its connections and the recorded exchanges.

A client is one blocking connection. Exchanges are recorded in the order in which the script
receives the responses; queries are not recorded. Nothing here knows which response is right.
"""

import itertools
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from uuid import uuid4

from kohort.node.dispatch import SERVED
from kohort.types import BrokerId, ErrorCode, GroupId, Millis, Partition, Topic, Uuid
from kohort.wire.api import find_api
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.frame import FrameReader
from kohort.wire.schema import schema_of
from tests.contract.conversations.comparison import Deviation, Exchange
from tests.contract.conversations.masks import Masks
from tests.contract.conversations.message_tree import show, show_bytes
from tests.wait import wait_until

DEADLINE_S: Final = 15.0
"""No response takes as long."""

SILENCE_S: Final = 1.5
"""How long to wait for a response that must not arrive."""

_ROUNDS: Final = 20

DISCONNECTED: Final = "(the connection is closed)"
NO_RESPONSE: Final = "(no answer)"

T = TypeVar("T")


class Disconnected(Exception):
    """The broker has closed the connection."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """The address of a broker."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class _Asked:
    body: object
    version: int
    correlation_id: int
    transform: Callable[[Any], Any]


def newest_version(request: type) -> int:
    """The newest version of an API that is served here."""
    api_key = schema_of(request).api_key
    assert api_key is not None
    return SERVED[api_key][-1]


class Session:
    """One conversation with one broker. `version` is the version of the varied API."""

    def __init__(
        self, address: BrokerAddress, varied: type | None = None, version: int | None = None
    ) -> None:
        self.exchanges: list[Exchange] = []
        self.varied = varied
        self.version = version
        self._address = address
        self._token = f"-{uuid4().hex[:12]}"
        self._masks = Masks(self._token, lambda: int(time.time() * 1000))
        self._clients: list[Client] = []
        self._deviation: Deviation | None = None
        self._unrecorded_client: Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for client in self._clients:
            client.close()

    # For scripts

    def name(self, name: str) -> str:
        """A unique name for a group or topic; it is recorded as given here."""
        return f"{name}{self._token}"

    def version_of(self, request: type) -> int:
        """The version of such a request: the varied one, or the newest."""
        if request is self.varied and self.version is not None:
            return self.version
        return newest_version(request)

    def group(self, name: str = "g") -> GroupId:
        return GroupId(self.name(name))

    def client(self, name: str, *, client_id: str | None = "") -> "Client":
        """A new connection; its client id is its name by default."""
        client = Client(self, name, self._address, name if client_id == "" else client_id)
        self._clients.append(client)
        return client

    @contextmanager
    def deviates(self, because: str, *fields: str) -> Iterator[None]:
        """Declares that brokers differ in these fields; a DEVIATION comment contains the reason."""
        self._deviation = Deviation(because=because, fields=fields)
        try:
            yield
        finally:
            self._deviation = None

    def record(self, who: str, asked: object, version: int | None, answer: object) -> None:
        """Record an exchange; a text in place of the response means that there is none."""
        key = schema_of(type(asked)).api_key if not isinstance(asked, bytes) else None
        api = find_api(key) if key is not None else None
        tree = show_bytes(asked) if isinstance(asked, bytes) else show(asked)
        self.exchanges.append(
            Exchange(
                who=who,
                api=api.name if api else "(bytes)",
                version=None if type(asked) is self.varied else version,
                asked=self._masks.mask(tree),
                answer=self._masks.mask(answer if isinstance(answer, str) else show(answer)),
                deviation=self._deviation,
            )
        )

    # Not recorded

    def query(self, body: object) -> Any:
        """Send a request that is not recorded."""
        if self._unrecorded_client is None:
            self._unrecorded_client = self.client("queries")
        return self._unrecorded_client.ask_unrecorded(body, newest_version(type(body)))

    def topic(self, name: str = "t", partitions: int = 1, **configs: str) -> Topic:
        """Create a topic and wait for its leaders. Settings have underscores for dots."""
        topic = Topic(self.name(name))
        new_topic = CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=text)
                for key, text in configs.items()
            ),
        )
        (result,) = self.query(
            CreateTopicsRequest(topics=(new_topic,), timeout_ms=Millis(10_000))
        ).topics
        assert result.error_code == 0, ErrorCode(result.error_code).name
        self.wait_for_topic(topic, partitions)
        return topic

    def wait_for_topic(self, topic: Topic, partitions: int = 1) -> None:
        """Wait for the leaders: Kafka responds to CreateTopics before that."""
        asked = tuple(
            ListOffsetsPartition(partition_index=Partition(index), timestamp=Millis(-1))
            for index in range(partitions)
        )
        request = ListOffsetsRequest(
            replica_id=BrokerId(-1), topics=(ListOffsetsTopic(name=topic, partitions=asked),)
        )

        def has_leader() -> bool:
            (answer,) = self.query(request).topics
            return all(each.error_code == 0 for each in answer.partitions)

        wait_until(has_leader, DEADLINE_S, f"{topic} to be led")

    def wait_for_transactions(self, name: str) -> None:
        """Wait for the transaction coordinator.

        Kafka creates the transactions topic on the first request for it.
        """
        request = FindCoordinatorRequest(coordinator_keys=(name,), key_type=1)
        not_available = ErrorCode.COORDINATOR_NOT_AVAILABLE

        def is_available() -> bool:
            (found,) = self.query(request).coordinators
            return bool(found.error_code != not_available)

        wait_until(is_available, DEADLINE_S, "the transaction coordinator")

    def find_topic_id(self, topic: Topic) -> Uuid:
        asked = MetadataRequest(
            topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False
        )
        found: Uuid = self.query(asked).topics[0].topic_id
        return found

    def wait_for_processing(self) -> None:
        """Send a few requests: the broker has then read everything that was sent before.

        Only for requests that wait, because no response shows that.
        """
        for _ in range(_ROUNDS):
            self.query(ListGroupsRequest())

    def wait_for_group(
        self, group: GroupId, *, state: str | None = None, members: int | None = None
    ) -> None:
        """Wait until the group has this state and this number of members."""

        def is_there() -> bool:
            (described,) = self.query(DescribeGroupsRequest(groups=(group,))).groups
            return state in (None, described.group_state) and members in (
                None,
                len(described.members),
            )

        wait_until(is_there, DEADLINE_S, f"{group} to be {state} with {members} members")


class Client:
    """One connection. Requests use the newest version unless the conversation varies it."""

    def __init__(
        self, session: Session, name: str, address: BrokerAddress, client_id: str | None
    ) -> None:
        self.name = name
        self._talk = session
        self._client_id = client_id
        self._socket = socket.create_connection((address.host, address.port), DEADLINE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader()
        self._frames: deque[bytes] = deque()
        self._asked: deque[_Asked] = deque()
        self._correlation_ids = itertools.count(1)

    def ask(
        self,
        body: object,
        version: int | None = None,
        *,
        transform: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:
        """Send a request and receive the response, which is transformed before it is recorded."""
        self.send(body, version, transform=transform)
        return self.receive()

    def send(
        self,
        body: object,
        version: int | None = None,
        *,
        transform: Callable[[Any], Any] = lambda answer: answer,
    ) -> None:
        """Send a request; receive the response later."""
        asked = _Asked(
            body, self._version_of(body, version), next(self._correlation_ids), transform
        )
        self._asked.append(asked)
        self._socket.sendall(
            encode_request(body, asked.version, asked.correlation_id, self._client_id)
        )

    def receive(self) -> Any:
        """The response to the oldest in-flight request."""
        return self._receive_response(self._asked.popleft(), self._receive(DEADLINE_S))

    def send_without_response(self, body: object, version: int | None = None) -> None:
        """Send a request without a response; the next response shows that there is none."""
        self.send(body, version)
        self._asked.pop()

    def ask_or_disconnect(self, body: object, version: int | None = None) -> Any | None:
        """Send a request; returns None if the broker closes the connection."""
        try:
            return self.ask(body, version)
        except Disconnected:
            self._talk.record(self.name, body, self._version_of(body, version), DISCONNECTED)
            return None

    def send_raw(self, frame: bytes) -> None:
        """Send bytes that are not a valid request, and record the response or disconnect."""
        self._socket.sendall(frame)
        try:
            answer = show_bytes(self._receive(DEADLINE_S))
        except Disconnected:
            answer = DISCONNECTED
        self._talk.record(self.name, frame, None, answer)

    def receive_if_any(self) -> Any | None:
        """The response, or None if none arrives."""
        asked = self._asked.popleft()
        try:
            frame = self._receive(SILENCE_S)
        except TimeoutError:
            self._talk.record(self.name, asked.body, asked.version, NO_RESPONSE)
            return None
        return self._receive_response(asked, frame)

    def ask_until(self, body: object, is_done: Callable[[Any], bool]) -> Any:
        """Repeat a request until the response is the expected one; only that one is recorded."""
        version = self._version_of(body, None)
        answer = wait_until(
            lambda: answer if is_done(answer := self.ask_unrecorded(body, version)) else None,
            DEADLINE_S,
            f"another response to {body}",
        )
        self._talk.record(self.name, body, version, answer)
        return answer

    def ask_unrecorded(self, body: object, version: int) -> Any:
        """Send a request that is not recorded."""
        self.send(body, version)
        return self._decode(self._asked.popleft(), self._receive(DEADLINE_S))

    def close(self) -> None:
        self._socket.close()

    def _version_of(self, body: object, version: int | None) -> int:
        return self._talk.version_of(type(body)) if version is None else version

    def _receive_response(self, asked: _Asked, frame: bytes) -> Any:
        answer = asked.transform(self._decode(asked, frame))
        self._talk.record(self.name, asked.body, asked.version, answer)
        return answer

    def _decode(self, asked: _Asked, frame: bytes) -> Any:
        api_key = schema_of(type(asked.body)).api_key
        assert api_key is not None
        correlation_id, answer = decode_response(frame, api_key, asked.version)
        assert correlation_id == asked.correlation_id, "responses arrive in the order of requests"
        return answer

    def _receive(self, deadline_s: float) -> bytes:
        self._socket.settimeout(deadline_s)
        while not self._frames:
            try:
                data = self._socket.recv(1 << 20)
            except ConnectionError as error:
                raise Disconnected(self.name) from error
            if not data:
                raise Disconnected(self.name)
            self._frames.extend(self._reader.feed(data))
        return self._frames.popleft()


def narrowed(answer: T, **fields: Any) -> T:
    """A response with some fields replaced, to compare only a part of it."""
    return replace(answer, **fields)  # type: ignore[type-var]  # every answer is a dataclass
