"""What attacks use: connections to one server, prepared frames, and the words for an outcome."""

import resource
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kohort.types import ErrorCode, Topic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.schema import schema_of
from tests.node.attacks.bulk_requests import TOPIC
from tests.node.attacks.wire_client import ConnectionLost, NoAnswer, WireClient, decode, encode
from tests.wait import wait_until

CLOSED = "closed"
NO_ANSWER = "no answer"
NO_CONFIGS: Mapping[str, str] = {}

_DECODED_BYTES_MAX = 64 << 20
"""A larger response is not decoded: that would take more memory than the attack."""

_ERRORS_SHOWN = 3
_FILES_KEPT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """An encoded request, and what is needed to read its response."""

    body: object
    version: int
    frame: bytes


@dataclass(slots=True, kw_only=True)
class Arena:
    """One server during one attack."""

    port: int
    scale: float = 1.0
    prepared: dict[str, Any] = field(default_factory=dict)
    """Kept for the next server: large frames take long to build."""
    connections: list[WireClient] = field(default_factory=list)
    """Closed after the measurement."""

    def scaled(self, count: int, least: int = 1) -> int:
        return max(least, int(count * self.scale))

    def prepare(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.prepared:
            self.prepared[name] = make()
        return self.prepared[name]

    def shot(self, name: str, make: Callable[[], object], version: int) -> Shot:
        def build() -> Shot:
            body = make()
            return Shot(body=body, version=version, frame=encode(body, version))

        shot: Shot = self.prepare(name, build)
        return shot

    def connect(self) -> WireClient:
        client = WireClient(self.port)
        self.connections.append(client)
        return client

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def create_topic(
        self,
        partitions: int = 1,
        topic: Topic = TOPIC,
        configs: Mapping[str, str] = NO_CONFIGS,
    ) -> None:
        wanted = CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                CreatableTopicConfig(name=key, value=text) for key, text in configs.items()
            ),
        )
        with WireClient(self.port) as client:
            (created,) = client.ask(CreateTopicsRequest(topics=(wanted,)), 7).topics
            assert created.error_code == 0, ErrorCode(created.error_code).name
            asked = MetadataRequest(
                topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False
            )
            wait_until(
                lambda: client.ask(asked, 9).topics[0].error_code == 0, 120, "the topic is known"
            )


def fire(client: WireClient, shot: Shot) -> bytes | str:
    """The response frame, or why there is none."""
    try:
        return client.exchange(shot.frame)
    except ConnectionLost:
        return CLOSED
    except NoAnswer:
        return NO_ANSWER


def explain(shot: Shot, answer: bytes | str) -> str:
    """The error codes in a response with their numbers."""
    if isinstance(answer, str):
        return answer
    if len(answer) > _DECODED_BYTES_MAX:
        return f"answered with {len(answer) >> 20} MB"
    errors = Counter(find_errors(decode(shot.body, shot.version, answer)))
    if not errors:
        return "NONE"
    shown = [f"{name} x {count:,}" for name, count in errors.most_common(_ERRORS_SHOWN)]
    return ", ".join(text.removesuffix(" x 1") for text in shown)


def find_errors(message: Any) -> Iterator[str]:
    """The names of all error codes in a response."""
    for each in schema_of(type(message)).fields:
        content = getattr(message, each.name)
        if each.name == "error_code":
            yield ErrorCode(content).name
        elif each.kind == "struct" and content is not None:
            yield from find_errors(content)
        elif each.kind == "array" and content and each.element and each.element.kind == "struct":
            for one in content:
                yield from find_errors(one)


def connections_allowed(count: int) -> int:
    """At most as many as this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(count, hard - _FILES_KEPT)
