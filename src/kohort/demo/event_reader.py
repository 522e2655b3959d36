"""Reads the node's group events and publishes those that the demo prints."""

import threading
import time
from collections.abc import Callable
from typing import Final

from kohort.client.consumer import Consumer
from kohort.demo.demo_events import GroupRebalanced, StaticMemberReturned
from kohort.demo.threads import OnFailure, start_thread
from kohort.events.internal_topics import EVENTS_PARTITION
from kohort.events.parser import EventReader
from kohort.events.schema import Event, InstanceReplacedEvent, RebalanceEndedEvent
from kohort.types import Millis

_POLL_MS: Final = 200
_TOPIC_CHECK_S: Final = 0.2
_API_TIMEOUT_MS: Final = 5_000


def translate_event(event: Event) -> GroupRebalanced | StaticMemberReturned | None:
    """Return None for events that the demo does not print. Pure."""
    match event.details:
        case RebalanceEndedEvent() as ended:
            return GroupRebalanced(
                group_id=event.group_id,
                generation=ended.generation,
                result=ended.ending,
                trigger=ended.trigger,
                initiator=None if ended.initiator is None else ended.initiator.client_id,
                reason=ended.client_reason,
                took_ms=Millis(event.at - ended.started_ms),
                members=len(ended.participants),
            )
        case InstanceReplacedEvent(party=party, is_quiet=True):
            return StaticMemberReturned(group_id=event.group_id, name=party.client_id)
        case _:
            return None


class GroupEventReader:
    """Publishes the events of all groups except `exclude`, from its own thread."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        exclude: frozenset[str],
        publish: Callable[[GroupRebalanced | StaticMemberReturned], None],
        on_failure: OnFailure,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._exclude = exclude
        self._publish = publish
        self._events = EventReader()
        self._closing = threading.Event()
        self._thread = start_thread("event reader", self._run, on_failure)

    def close(self) -> None:
        """Read everything that has been written so far, then stop."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        with Consumer(
            bootstrap_servers=self._bootstrap_servers,
            client_id="event-reader",
            auto_offset_reset="earliest",
            exclude_internal_topics=False,
            allow_auto_create_topics=False,
            default_api_timeout_ms=_API_TIMEOUT_MS,
        ) as consumer:
            self._assign_when_created(consumer)
            self._read_until_closed(consumer)

    def _assign_when_created(self, consumer: Consumer) -> None:
        """The node creates the topic with its first event."""
        while EVENTS_PARTITION.topic not in consumer.topics():
            if self._closing.wait(_TOPIC_CHECK_S):
                return
        consumer.assign([EVENTS_PARTITION])

    def _read_until_closed(self, consumer: Consumer) -> None:
        while not self._closing.is_set():
            self._poll(consumer)
        if consumer.assignment():
            end = consumer.end_offsets([EVENTS_PARTITION])[EVENTS_PARTITION]
            deadline = time.monotonic() + _API_TIMEOUT_MS / 1_000
            while consumer.position(EVENTS_PARTITION) < end and time.monotonic() < deadline:
                self._poll(consumer)

    def _poll(self, consumer: Consumer) -> None:
        for records in consumer.poll(_POLL_MS).values():
            for record in records:
                self._handle(record.value)

    def _handle(self, data: bytes | None) -> None:
        event = self._events.read(data)
        if event is not None and event.group_id not in self._exclude:
            translated = translate_event(event)
            if translated is not None:
                self._publish(translated)
