"""Everything a request can ask of, in one place and without waiting.

The broker is synchronous: it is told the time, answers what it can, remembers what must wait, and
says when it next wants to be woken. Sockets and threads are somebody else's.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final
from uuid import UUID, uuid4

from kohort.coordinator.commands import DeletedTopic, ForgetTopics, Shutdown
from kohort.coordinator.machine import Coordinator, Phase
from kohort.coordinator.notes import Note
from kohort.coordinator.recordcodec import Skipped
from kohort.log.partition import PartitionLog
from kohort.log.unsynced import Unsynced
from kohort.node import journal
from kohort.node.config import Settings
from kohort.node.events import EventsTopic
from kohort.node.fetches import Fetches
from kohort.node.history import History
from kohort.node.metrics import Figures
from kohort.node.offsets_topic import OffsetsTopic
from kohort.node.producer_ids import ProducerIds
from kohort.node.runtime import CallSoon, Runtime
from kohort.node.syncer import Syncer
from kohort.node.topics import Topics
from kohort.types import BrokerId, Millis, Topic, Uuid, value

_LOAD_CHUNK: Final = 64 * 1024
_LOAD_RECORDS: Final = 5_000
"""How much of the groups' history is read in one turn, and how many records are applied that have
waited for its end; protects others from waiting for more."""


@value
class Address:
    """Where clients find this node."""

    host: str
    port: int


class Broker:
    def __init__(
        self,
        settings: Settings,
        topics: Topics,
        syncer: Syncer | None,
        *,
        fresh_uuid: Callable[[], UUID] = uuid4,
        call_soon: CallSoon | None = None,
        call_afterwards: CallSoon | None = None,
    ) -> None:
        """With `call_soon`, what happens in one turn of the loop is kept and noted together.

        `call_afterwards` has what is noted written once all that was answered is on its way.
        """
        self.settings = settings
        self.fresh_uuid = fresh_uuid
        self.topics = topics
        self.syncer = syncer
        self.node_id = BrokerId(settings["node.id"])
        self.cluster_id = topics.catalog.cluster_id
        self.address = Address(host="", port=0)
        self.producer_ids = ProducerIds(topics.catalog)
        self.fetches = Fetches(topics)
        coordinator = Coordinator(settings.limits())
        self.figures = Figures(settings["kohort.metrics.groups.max"], coordinator.groups)
        self._events = EventsTopic(
            topics,
            settings,
            self.fetches.appended,
            self.figures.lose,
            call_afterwards or call_soon,
        )
        keeper = OffsetsTopic(
            topics.offsets_partitions, syncer, self.fetches.appended, self.figures.kept
        )
        self.groups = Runtime(coordinator, keeper, self._notice, call_soon)
        self.skipped_records = 0
        self._deleted_while_loading: list[DeletedTopic] = []

    # Starting: topics are served while groups still load

    def load_groups(self, now: Callable[[], Millis]) -> Iterator[None]:
        """Rebuild the coordinator a chunk at a time, so that other requests get their turn."""
        self.groups.coordinator.start()
        for index, partition in enumerate(self.topics.offsets_partitions(now())):
            began = now()
            yield from self._load_groups_of(partition)
            self.figures.load_seconds[index] = (now() - began) / 1000
        self.groups.resume(now())
        if self._deleted_while_loading:
            forget = ForgetTopics(topics=tuple(self._deleted_while_loading))
            self.groups.submit(forget, now())

    def _load_groups_of(self, partition: PartitionLog) -> Iterator[None]:
        history = History()
        coordinator = self.groups.coordinator
        for chunk in partition.batches(partition.start_offset, _LOAD_CHUNK):
            for record in history.read(chunk):
                if isinstance(record, Skipped):
                    self.skipped_records += 1
                    journal.say("record-skipped", reason=record.reason)
                else:
                    coordinator.apply(record)
            yield
        rest = history.finish()
        while records := list(islice(rest, _LOAD_RECORDS)):
            coordinator.apply_all(records)
            yield

    def _notice(self, notes: list[Note]) -> None:
        self.figures.notice(notes)
        self._events.note(notes)

    def take_unsynced(self) -> tuple[Unsynced, ...]:
        """What a sync is to make safe: all that was written, and what was noted along with it."""
        self._events.write_noted()
        return self.topics.catalog.take_unsynced()

    def shut_down(self, now: Millis) -> None:
        self.groups.submit(Shutdown(), now)
        self._events.write_noted()
        self.fetches.answer_all()

    # Waking

    def next_deadline(self) -> Millis | None:
        group, fetch = self.groups.next_deadline(), self.fetches.next_deadline()
        if group is None or fetch is None:
            return fetch if group is None else group
        return min(group, fetch)

    def fire_due(self, now: Millis) -> None:
        self.groups.fire_due(now)
        self.fetches.fire_due(now)

    # What handlers share

    def when_durable(self, then: Callable[[], None]) -> None:
        """Run `then` once all that was written so far is synced; at once where nobody syncs."""
        if self.syncer is None:
            then()
        else:
            self.syncer.after(then)

    def delete_topic(self, name: Topic, topic_id: Uuid, now: Millis) -> None:
        self.topics.delete(name)
        self.fetches.topic_changed(name)
        deleted = DeletedTopic(topic=name, topic_id=topic_id)
        if self.groups.coordinator.phase is Phase.ACTIVE:
            self.groups.submit(ForgetTopics(topics=(deleted,)), now)
        else:
            self._deleted_while_loading.append(deleted)
