"""A worker of the kill loop that creates, fills and deletes topics, and checks what is left."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from kohort.types import ErrorCode, Millis, Topic
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from kohort.wire.batch import NewBatch, NewRecord, encode
from tests.node.broker_harness import produce_request
from tests.node.raw_client import RawClient

PREFIX = "churn-"
NAMES = 12
"""Names are used again after a deletion."""

TOPICS_MAX = 6
SEGMENT_BYTES = 2_000
PARTITIONS_MAX = 3

ReadAll = Callable[[RawClient, Topic], Sequence[tuple[int, bytes]]]
"""All records of the first partition, the only one with records."""


@dataclass(slots=True)
class ChurnedTopic:
    """A topic that exists, or whose creation or deletion was not acknowledged."""

    incarnation: int
    partitions: int
    is_certain: bool = False
    acked: int = 0
    sent: int = 0

    def value(self, offset: int) -> bytes:
        return b"%d/%d/" % (self.incarnation, offset) + b"." * (offset * 37 % 300)


class ChurnWork:
    def __init__(self, random: Random) -> None:
        self.name = "churn"
        self._random = random
        self._topics: dict[Topic, ChurnedTopic] = {}
        self._incarnations = 0
        self.created = 0
        self.deleted = 0

    def run_until_disconnect(self, client: RawClient) -> None:
        while True:
            certain = [name for name, each in self._topics.items() if each.is_certain]
            free = [name for name in _names() if name not in self._topics]
            action = self._random.random()
            if not certain or (action < 0.25 and free and len(self._topics) < TOPICS_MAX):
                self._create(client, self._random.choice(free))
            elif action < 0.45:
                self._delete(client, self._random.choice(certain))
            else:
                self._produce(client, self._random.choice(certain))

    def _create(self, client: RawClient, name: Topic) -> None:
        self._incarnations += 1
        partitions = self._random.randint(1, PARTITIONS_MAX)
        topic = self._topics[name] = ChurnedTopic(self._incarnations, partitions)
        size = CreatableTopicConfig(name="internal.segment.bytes", value=str(SEGMENT_BYTES))
        wanted = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=(size,)
        )
        (result,) = client.ask(CreateTopicsRequest(topics=(wanted,)), 7).topics
        assert result.error_code == 0, f"create {name}: {ErrorCode(result.error_code).name}"
        topic.is_certain = True
        self.created += 1

    def _delete(self, client: RawClient, name: Topic) -> None:
        self._topics[name].is_certain = False
        (result,) = client.ask(DeleteTopicsRequest(topic_names=(name,)), 5).responses
        assert result.error_code == 0, f"delete {name}: {ErrorCode(result.error_code).name}"
        del self._topics[name]
        self.deleted += 1

    def _produce(self, client: RawClient, name: Topic) -> None:
        topic = self._topics[name]
        now = Millis(time.time_ns() // 1_000_000)
        topic.sent = topic.acked + self._random.randint(1, 8)
        records = tuple(
            NewRecord(key=b"k", value=topic.value(offset), timestamp=now)
            for offset in range(topic.acked, topic.sent)
        )
        request = produce_request(encode(NewBatch(records=records)), name, acks=-1)
        (result,) = client.ask(request, 9).responses[0].partition_responses
        assert result.error_code == 0, f"produce {name}: {ErrorCode(result.error_code).name}"
        assert result.base_offset == topic.acked, f"{name}: {result.base_offset}, not {topic.acked}"
        topic.acked = topic.sent

    def check(self, client: RawClient, read_all: ReadAll) -> None:
        """After a restart; then every topic is certain again."""
        described = client.ask(MetadataRequest(topics=None), 9).topics
        found = {each.name: each for each in described if each.name.startswith(PREFIX)}
        certain = {name for name, topic in self._topics.items() if topic.is_certain}
        assert certain <= set(found), f"lost topics: {certain - set(found)}"
        unknown = set(found) - set(self._topics)
        assert not unknown, f"deleted topics exist: {unknown}"
        self._topics = {name: self._topics[name] for name in found}
        for name, topic in self._topics.items():
            assert len(found[name].partitions) == topic.partitions, found[name]
            records = read_all(client, name)
            for offset, (stored, value) in enumerate(records):
                assert (stored, value) == (offset, topic.value(offset)), f"{name}@{offset}"
            assert topic.acked <= len(records) <= topic.sent, (
                f"{name} ends at {len(records)}; {topic.acked} were acknowledged, {topic.sent} sent"
            )
            topic.is_certain = True
            topic.acked = topic.sent = len(records)


def _names() -> Iterable[Topic]:
    return (Topic(f"{PREFIX}{number}") for number in range(NAMES))
