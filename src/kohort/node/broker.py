"""The broker: the topics, groups, fetch purgatory, events and metrics that handlers use.

It is synchronous. Time is an argument, and `now` is that of the wall clock. Sockets and threads
belong to `server`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, Protocol, TypeAlias
from uuid import UUID, uuid4

from kohort.coordinator.commands import (
    Command,
    DeletedTopic,
    Shutdown,
    Ticket,
    TimerFired,
    TopicsChanged,
)
from kohort.coordinator.coordinator import Coordinator, CoordinatorState
from kohort.coordinator.events import GroupEvent
from kohort.coordinator.outcome import TimerKey
from kohort.coordinator.record_codec import Skipped
from kohort.coordinator.records import Record
from kohort.coordinator.replies import HeartbeatAccepted, Reply, RequestRefused
from kohort.log.catalog_file import CatalogTopic
from kohort.log.errors import StorageError
from kohort.log.partition import PartitionLog
from kohort.log.sync_queue import PendingSync
from kohort.node import log_events
from kohort.node.clock import Clock
from kohort.node.config import BrokerConfig
from kohort.node.events_topic import EventWriter
from kohort.node.fetch_purgatory import FetchPurgatory
from kohort.node.group_loader import GroupLoader
from kohort.node.group_record_writer import GroupRecordWriter
from kohort.node.metrics import Metrics
from kohort.node.producer_ids import ProducerIds
from kohort.node.request import HeldResponse, Parked, Request, Respond
from kohort.node.runtime import RecordWriter, Runtime
from kohort.node.syncer import Syncer
from kohort.node.topics import Topics
from kohort.settings.hosts import format_address
from kohort.types import BrokerId, DeadlineMillis, Millis, value

_LOAD_CHUNK: Final = 64 * 1024
_LOAD_RECORDS: Final = 5_000
"""Bytes of `__consumer_offsets` read per event-loop iteration, and records of `GroupLoader.finish`
applied per iteration. They bound how long other requests wait during loading."""

GroupRuntime: TypeAlias = Runtime[Command, Record, Reply, GroupEvent, TimerKey]


@value
class Address:
    """A host and port, for example the one that clients connect to."""

    host: str
    port: int

    def __str__(self) -> str:
        return format_address(self.host, self.port)


Handler: TypeAlias = "Callable[[Broker, Request, Millis], object]"
"""Returns a response message, or one of the other results in `request`."""


class RequestFaults(Protocol):
    def replace_handler(self, request: Request, handler: Handler, /) -> Handler:
        """The handler of a request, or what a fault puts in its place."""


class Broker:
    """Owns the parts and what handlers share. `loop` decides in which order they run."""

    def __init__(
        self,
        settings: BrokerConfig,
        topics: Topics,
        syncer: Syncer | None,
        *,
        fresh_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        self.settings = settings
        self.fresh_uuid = fresh_uuid
        self.topics = topics
        self.syncer = syncer
        self.storage_errors = topics.storage_errors
        self.node_id = BrokerId(settings["node.id"])
        self.cluster_id = topics.catalog.cluster_id
        self.address = Address(host="", port=0)
        self.producer_ids = ProducerIds(topics.catalog)
        self.purgatory = FetchPurgatory(topics)
        self.coordinator = Coordinator(settings.group_config())
        self.metrics = Metrics(settings["kohort.metrics.groups.max"], self.coordinator.groups)
        self.events = EventWriter(topics, settings, self.purgatory)
        writer = GroupRecordWriter(
            topics.offsets_partitions, self.purgatory, self.storage_errors.note
        )
        self.groups = group_runtime(self.coordinator, writer, syncer)
        self.skipped_records = 0
        self.groups_refusal: StorageError | None = None
        """Why no group is served: `__consumer_offsets` has lost records."""
        self.faults: RequestFaults | None = None
        """Changes what is done with requests, in tests. None while there is no such fault."""
        self._deleted_while_loading: list[DeletedTopic] = []

    # Loading. Topics are already served meanwhile.

    def load_groups(self, clock: Clock) -> Iterator[None]:
        """Rebuild the coordinator chunk by chunk, so that other requests are handled in between."""
        partitions = self.topics.offsets_partitions()
        try:
            for partition in partitions:
                partition.check_usable()
        except StorageError as refusal:
            # The coordinator is not started, so it answers COORDINATOR_NOT_AVAILABLE.
            self.groups_refusal = refusal
            log_events.warning("groups-refused", reason=refusal)
            return
        self.coordinator.start()
        for index, partition in enumerate(partitions):
            began = clock.monotonic()
            yield from self._load_groups_of(partition)
            self.metrics.load_seconds[index] = clock.monotonic() - began
        self._report_unknown_records()
        self.groups.resume(clock.now())
        if self._deleted_while_loading:
            change = TopicsChanged(deleted=tuple(self._deleted_while_loading))
            self.groups.submit(change, clock.now())

    def _load_groups_of(self, partition: PartitionLog) -> Iterator[None]:
        loader = GroupLoader()
        coordinator = self.coordinator
        for chunk in partition.batches(partition.start_offset, _LOAD_CHUNK):
            for record in loader.read(chunk):
                if isinstance(record, Skipped):
                    self.skipped_records += 1
                    log_events.info("record-skipped", reason=record.reason)
                else:
                    coordinator.apply(record)
            yield
        rest = loader.finish()
        while records := list(islice(rest, _LOAD_RECORDS)):
            coordinator.apply_all(records)
            yield

    def _report_unknown_records(self) -> None:
        unknown = self.coordinator.unknown_records.values()
        if unknown:
            kinds = sorted({record.kind for record in unknown})
            names = ",".join(str(kind) for kind in kinds)
            log_events.info("unknown-records", count=len(unknown), kinds=names)

    # The stages of an iteration

    def write_events(self) -> None:
        """Update the metrics, and append the events of this iteration."""
        groups = self.groups
        if groups.appended:
            self.metrics.count_appended(groups.appended)
            groups.appended.clear()
        if groups.events:
            events, groups.events = groups.events, []
            self.metrics.count_events(events)
            self.events.write(events)

    def take_pending_syncs(self) -> tuple[PendingSync, ...]:
        return self.topics.catalog.take_pending_syncs()

    def shut_down(self, now: Millis) -> None:
        self.groups.submit(Shutdown(), now)
        self.purgatory.make_all_ready()

    # Timers

    def next_deadline(self) -> DeadlineMillis | None:
        group, fetch = self.groups.timers.earliest, self.purgatory.timers.earliest
        if group is None or fetch is None:
            return fetch if group is None else group
        return min(group, fetch)

    # What handlers share

    def park(self, request: Request, respond: Respond[Reply]) -> Ticket:
        """Park a request and return its ticket. The reply to the ticket becomes the response."""
        return self.groups.open(Parked(request, respond))

    def answer_after_sync(self, request: Request, response: object) -> None:
        """Answer when everything written so far is synced; without fsync, at once."""
        if self.syncer is None:
            request.answer(response)
        else:
            self.syncer.hold(HeldResponse(request, response))

    def delete_topics(self, topics: Sequence[CatalogTopic], now: Millis) -> None:
        """Delete all of the topics, or none."""
        if not topics:
            return
        self.topics.delete([topic.name for topic in topics])
        for topic in topics:
            self.purgatory.topic_changed(topic.name)
        deleted = [DeletedTopic(topic=each.name, topic_id=each.topic_id) for each in topics]
        if self.coordinator.phase is CoordinatorState.ACTIVE:
            self.groups.submit(TopicsChanged(deleted=tuple(deleted)), now)
        elif self.groups_refusal is None:
            self._deleted_while_loading += deleted


def group_runtime(
    coordinator: Coordinator, writer: RecordWriter[Record], syncer: Syncer | None = None
) -> GroupRuntime:
    """The runtime of the group coordinator."""
    return Runtime(
        coordinator,
        writer,
        syncer,
        timer_fired=_timer_fired,
        unsynced_replies=(HeartbeatAccepted, RequestRefused),
    )


def _timer_fired(key: TimerKey) -> Command:
    return TimerFired(key=key)
