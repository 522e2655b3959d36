"""A conversation under way: who speaks, what was said, and what both sides called themselves.

A speaker is one connection that blocks. Every exchange is kept as it is heard, in the order the
script listens; what happens backstage is not kept. Nothing here knows what is right.
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
from tests.contract.conversations.comparing import Deviation, Exchange
from tests.contract.conversations.masking import Masks
from tests.contract.conversations.showing import show, show_bytes
from tests.waiting import wait_until

DEADLINE_S: Final = 15.0
"""No answer takes as long; longer is a failure, not patience."""

SILENCE_S: Final = 1.5
"""How long nothing must be heard where nothing is expected."""

_ROUNDS: Final = 20

HUNG_UP: Final = "(the connection is closed)"
SILENT: Final = "(no answer)"

T = TypeVar("T")


class HungUp(Exception):
    """The broker has closed the connection."""


@dataclass(frozen=True, slots=True)
class Side:
    """A broker to talk to."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class _Asked:
    body: object
    version: int
    correlation_id: int
    through: Callable[[Any], Any]


def newest_version(request: type) -> int:
    """The newest version of an API that is served here."""
    api_key = schema_of(request).api_key
    assert api_key is not None
    return SERVED[api_key][-1]


class Talk:
    """One conversation with one broker. `version` is that of the API the conversation varies."""

    def __init__(self, side: Side, varied: type | None = None, version: int | None = None) -> None:
        self.exchanges: list[Exchange] = []
        self.varied = varied
        self.version = version
        self._side = side
        self._token = f"-{uuid4().hex[:12]}"
        self._masks = Masks(self._token, lambda: int(time.time() * 1000))
        self._speakers: list[Speaker] = []
        self._deviation: Deviation | None = None
        self._backstage: Speaker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for speaker in self._speakers:
            speaker.close()

    # What scripts say

    def name(self, name: str) -> str:
        """A name for a group or a topic that nobody else uses; it is shown as it is given here."""
        return f"{name}{self._token}"

    def version_of(self, request: type) -> int:
        """The version in which such a request is sent: the varied one, or the newest."""
        if request is self.varied and self.version is not None:
            return self.version
        return newest_version(request)

    def group(self, name: str = "g") -> GroupId:
        return GroupId(self.name(name))

    def speaker(self, name: str, *, client_id: str | None = "") -> "Speaker":
        """Someone with a connection of its own, whose client id is its name if none is given."""
        speaker = Speaker(self, name, self._side, name if client_id == "" else client_id)
        self._speakers.append(speaker)
        return speaker

    @contextmanager
    def deviates(self, because: str, *fields: str) -> Iterator[None]:
        """Within, brokers differ in these fields, for a reason that the code gives in full."""
        self._deviation = Deviation(because=because, fields=fields)
        try:
            yield
        finally:
            self._deviation = None

    def keep(self, who: str, asked: object, version: int | None, answer: object) -> None:
        """Write down an exchange; an answer that is text stands for the lack of one."""
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

    # What happens backstage

    def peek(self, body: object) -> Any:
        """Ask without writing it down."""
        if self._backstage is None:
            self._backstage = self.speaker("backstage")
        return self._backstage.ask_quietly(body, newest_version(type(body)))

    def topic(self, name: str = "t", partitions: int = 1, **configs: str) -> Topic:
        """A topic that is there, and led. Settings are given with underscores for dots."""
        topic = Topic(self.name(name))
        told = CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=text)
                for key, text in configs.items()
            ),
        )
        (result,) = self.peek(CreateTopicsRequest(topics=(told,), timeout_ms=Millis(10_000))).topics
        assert result.error_code == 0, ErrorCode(result.error_code).name
        self.wait_for_topic(topic, partitions)
        return topic

    def wait_for_topic(self, topic: Topic, partitions: int = 1) -> None:
        """Until every partition of it is led: its making is answered before that."""
        asked = tuple(
            ListOffsetsPartition(partition_index=Partition(index), timestamp=Millis(-1))
            for index in range(partitions)
        )
        question = ListOffsetsRequest(
            replica_id=BrokerId(-1), topics=(ListOffsetsTopic(name=topic, partitions=asked),)
        )

        def is_led() -> bool:
            (answer,) = self.peek(question).topics
            return all(each.error_code == 0 for each in answer.partitions)

        wait_until(is_led, DEADLINE_S, f"{topic} to be led")

    def wait_for_transactions(self, name: str) -> None:
        """Until it is decided where a transaction is coordinated.

        Kafka makes the topic that it keeps transactions in when it is first asked for that.
        """
        question = FindCoordinatorRequest(coordinator_keys=(name,), key_type=1)
        undecided = ErrorCode.COORDINATOR_NOT_AVAILABLE

        def is_decided() -> bool:
            (found,) = self.peek(question).coordinators
            return bool(found.error_code != undecided)

        wait_until(is_decided, DEADLINE_S, "a coordinator of transactions")

    def find_topic_id(self, topic: Topic) -> Uuid:
        asked = MetadataRequest(
            topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False
        )
        found: Uuid = self.peek(asked).topics[0].topic_id
        return found

    def let_pass(self) -> None:
        """A few questions and answers: what was sent before them has been read by then.

        Only for what no answer tells: that a request has begun to wait.
        """
        for _ in range(_ROUNDS):
            self.peek(ListGroupsRequest())

    def wait_for_group(
        self, group: GroupId, *, state: str | None = None, members: int | None = None
    ) -> None:
        """Until the group is in that state or has so many members."""

        def is_there() -> bool:
            (told,) = self.peek(DescribeGroupsRequest(groups=(group,))).groups
            return state in (None, told.group_state) and members in (None, len(told.members))

        wait_until(is_there, DEADLINE_S, f"{group} to be {state}, of {members}")


class Speaker:
    """One connection. It says what it is told to, in the newest version unless that is varied."""

    def __init__(self, talk: Talk, name: str, side: Side, client_id: str | None) -> None:
        self.name = name
        self._talk = talk
        self._client_id = client_id
        self._socket = socket.create_connection((side.host, side.port), DEADLINE_S)
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
        through: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:
        """Ask and be answered. What is kept and returned is the answer as seen `through` that."""
        self.send(body, version, through=through)
        return self.hear()

    def send(
        self,
        body: object,
        version: int | None = None,
        *,
        through: Callable[[Any], Any] = lambda answer: answer,
    ) -> None:
        """Ask, and hear later."""
        asked = _Asked(body, self._version_of(body, version), next(self._correlation_ids), through)
        self._asked.append(asked)
        self._socket.sendall(
            encode_request(body, asked.version, asked.correlation_id, self._client_id)
        )

    def hear(self) -> Any:
        """The answer to the earliest question that has none."""
        return self._hear(self._asked.popleft(), self._receive(DEADLINE_S))

    def tell(self, body: object, version: int | None = None) -> None:
        """Say something that has no answer. That it is not answered, the next answer shows."""
        self.send(body, version)
        self._asked.pop()

    def provoke(self, body: object, version: int | None = None) -> Any | None:
        """Ask what may be answered by hanging up; None if it is."""
        try:
            return self.ask(body, version)
        except HungUp:
            self._talk.keep(self.name, body, self._version_of(body, version), HUNG_UP)
            return None

    def provoke_with(self, frame: bytes) -> None:
        """Send bytes that are nothing a schema would write, and see whether they end it all."""
        self._socket.sendall(frame)
        try:
            answer = show_bytes(self._receive(DEADLINE_S))
        except HungUp:
            answer = HUNG_UP
        self._talk.keep(self.name, frame, None, answer)

    def hear_if_any(self) -> Any | None:
        """The answer, or None where there is silence for long enough to be meant."""
        asked = self._asked.popleft()
        try:
            frame = self._receive(SILENCE_S)
        except TimeoutError:
            self._talk.keep(self.name, asked.body, asked.version, SILENT)
            return None
        return self._hear(asked, frame)

    def ask_until(self, body: object, is_done: Callable[[Any], bool]) -> Any:
        """Ask again and again until the answer is the one that is waited for; only that is kept."""
        version = self._version_of(body, None)
        answer = wait_until(
            lambda: answer if is_done(answer := self.ask_quietly(body, version)) else None,
            DEADLINE_S,
            f"another answer to {body}",
        )
        self._talk.keep(self.name, body, version, answer)
        return answer

    def ask_quietly(self, body: object, version: int) -> Any:
        """Ask without writing it down."""
        self.send(body, version)
        return self._decode(self._asked.popleft(), self._receive(DEADLINE_S))

    def close(self) -> None:
        self._socket.close()

    def _version_of(self, body: object, version: int | None) -> int:
        return self._talk.version_of(type(body)) if version is None else version

    def _hear(self, asked: _Asked, frame: bytes) -> Any:
        answer = asked.through(self._decode(asked, frame))
        self._talk.keep(self.name, asked.body, asked.version, answer)
        return answer

    def _decode(self, asked: _Asked, frame: bytes) -> Any:
        api_key = schema_of(type(asked.body)).api_key
        assert api_key is not None
        correlation_id, answer = decode_response(frame, api_key, asked.version)
        assert correlation_id == asked.correlation_id, "answers come in the order of questions"
        return answer

    def _receive(self, deadline_s: float) -> bytes:
        self._socket.settimeout(deadline_s)
        while not self._frames:
            try:
                data = self._socket.recv(1 << 20)
            except ConnectionError as error:
                raise HungUp(self.name) from error
            if not data:
                raise HungUp(self.name)
            self._frames.extend(self._reader.feed(data))
        return self._frames.popleft()


def narrowed(answer: T, **fields: Any) -> T:
    """An answer with some of its fields replaced, for a speaker that looks at a part of it."""
    return replace(answer, **fields)  # type: ignore[type-var]  # every answer is a dataclass
