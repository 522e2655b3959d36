"""Hears what the node itself tells of its groups, and turns it into news."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from kohort.client.consumer import Consumer
from kohort.client.topic_partition import TopicPartition
from kohort.demo.news import Rebalanced, Returned
from kohort.demo.parts import OnEnd, start_part
from kohort.types import Generation, GroupId, Millis, Partition, Topic

EVENTS: Final = TopicPartition(Topic("__kohort_events"), Partition(0))

_POLL_MS: Final = 200
_LOOK_S: Final = 0.2
_ANSWER_MS: Final = 5_000


def read_event(event: dict[str, Any]) -> Rebalanced | Returned | None:
    """The news in one event, if it has any. Pure."""
    if event["event"] == "rebalance-ended":
        return _read_rebalance(event)
    if event["event"] == "instance-replaced" and event["is_quiet"]:
        return Returned(group_id=GroupId(event["group_id"]), name=event["party"]["client_id"])
    return None


def _read_rebalance(event: dict[str, Any]) -> Rebalanced:
    culprit = event["culprit"]
    return Rebalanced(
        group_id=GroupId(event["group_id"]),
        generation=Generation(event["generation"]),
        ending=event["ending"],
        trigger=event["trigger"],
        culprit=None if culprit is None else culprit["client_id"],
        reason=event["client_reason"],
        took_ms=Millis(event["at"] - event["started_ms"]),
        members=len(event["participants"]),
    )


class Listener:
    """`tell` hears the news of all groups but those in `without`, from a thread of its own."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        without: frozenset[str],
        tell: Callable[[Rebalanced | Returned], None],
        on_end: OnEnd,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._without = without
        self._tell = tell
        self._closing = threading.Event()
        self._thread = start_part("listener", self._run, on_end)

    def close(self) -> None:
        """When everything has been heard that is written by now."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        with Consumer(
            bootstrap_servers=self._bootstrap_servers,
            client_id="listener",
            auto_offset_reset="earliest",
            exclude_internal_topics=False,
            allow_auto_create_topics=False,
            default_api_timeout_ms=_ANSWER_MS,
        ) as consumer:
            self._await_topic(consumer)
            self._listen(consumer)

    def _await_topic(self, consumer: Consumer) -> None:
        """It is made with the first event."""
        while EVENTS.topic not in consumer.topics():
            if self._closing.wait(_LOOK_S):
                return
        consumer.assign([EVENTS])

    def _listen(self, consumer: Consumer) -> None:
        while not self._closing.is_set():
            self._hear(consumer)
        if consumer.assignment():
            end = consumer.end_offsets([EVENTS])[EVENTS]
            give_up_at = time.monotonic() + _ANSWER_MS / 1_000
            while consumer.position(EVENTS) < end and time.monotonic() < give_up_at:
                self._hear(consumer)

    def _hear(self, consumer: Consumer) -> None:
        for records in consumer.poll(_POLL_MS).values():
            for record in records:
                self._read(record.value)

    def _read(self, text: bytes | None) -> None:
        if text is None:
            return
        event = json.loads(text)
        if event.get("group_id") not in self._without:
            news = read_event(event)
            if news is not None:
                self._tell(news)
