"""A broker without sockets in virtual time: the node's runtime, coordinator and record writer.

A script can restart it with another group.max.size, and can make the next append of a group's
assignment fail.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kohort.coordinator.commands import Command, Request, Shutdown, Ticket
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.events import GroupEvent, RebalanceStarted
from kohort.coordinator.records import ClassicGroupMetadata, Record
from kohort.coordinator.replies import Reply
from kohort.events.internal_topics import KOHORT_EVENTS
from kohort.log.catalog import Catalog
from kohort.node.broker import GroupRuntime, group_runtime
from kohort.node.config import BrokerConfig
from kohort.node.events_topic import EventWriter
from kohort.node.fetch_purgatory import FetchPurgatory
from kohort.node.group_record_writer import GroupRecordWriter
from kohort.node.topics import Topics
from kohort.types import DeadlineMillis, ErrorCode, GroupId, Millis
from kohort.virtual_time.rng import RandomStreams, random_topic_id
from kohort.virtual_time.scheduler import NORMAL, Scheduler


class LostEvents(Exception):
    """Events could not be written, so the history would not match its labels."""


class VirtualBroker:
    def __init__(
        self,
        directory: Path,
        streams: RandomStreams,
        begin: Millis,
        config: GroupConfig,
        *,
        partition_count: int,
        has_events: bool,
    ) -> None:
        self.scheduler = Scheduler(begin)
        self.records_written = 0
        """To `__consumer_offsets`."""
        self.on_rebalance: dict[GroupId, Callable[[], None]] = {}
        """Called when a rebalance of the group starts."""
        self._append_failures: dict[GroupId, Callable[[], None]] = {}
        settings = BrokerConfig(
            {
                "offsets.topic.num.partitions": f"{partition_count}",
                "kohort.events.enable": f"{has_events}".lower(),
            }
        )
        ids = streams.named("topic ids")
        self._catalog, _ = Catalog.open(directory, begin, cluster_id="kohort-corpus")
        self._topics = Topics(self._catalog, settings, lambda: random_topic_id(ids))
        fetches = FetchPurgatory(self._topics)
        self._writer = GroupRecordWriter(
            self._topics.offsets_partitions, fetches, self._topics.storage_errors.note
        )
        self._events = EventWriter(self._topics, settings, fetches)
        self._config = config
        self._runtime = self._start(Coordinator(config))

    def _start(self, coordinator: Coordinator) -> GroupRuntime:
        self._coordinator = coordinator
        runtime = group_runtime(coordinator, self)
        runtime.timers.now = DeadlineMillis(self.now)
        runtime.resume(self.now)
        return runtime

    @property
    def now(self) -> Millis:
        return self.scheduler.now_ms

    @property
    def events(self) -> int:
        log = self._catalog.partition(KOHORT_EVENTS, 0)
        return 0 if log is None else log.end_offset

    # Requests

    def send(self, request: Callable[[Ticket], Request], deliver: Callable[[Reply], None]) -> None:
        """`deliver` is called now or later; it must not send another request directly."""
        self._submit(request(self._runtime.open(_Waiter(deliver))))

    def _submit(self, command: Command) -> None:
        self._runtime.timers.now = DeadlineMillis(self.now)
        self._runtime.submit(command, self.now)
        self._end_iteration()

    def _end_iteration(self) -> None:
        runtime = self._runtime
        runtime.append_deferred()
        self.records_written += len(runtime.appended)
        runtime.appended.clear()
        events, runtime.events = runtime.events, []
        if events:
            self._write_events(events)

    def run(self, until: Millis) -> None:
        """Advance the time. Timers of the coordinator fire before calls of the same time."""
        scheduler = self.scheduler
        while True:
            planned, deadline = scheduler.next(), self._runtime.timers.earliest
            if deadline is not None and (planned is None or (deadline, NORMAL) <= planned):
                if deadline > until:
                    break
                scheduler.now = max(scheduler.now_ms, deadline)
                self._runtime.fire_due(DeadlineMillis(self.now), self.now)
                self._end_iteration()
            elif planned is not None and planned[0] <= until:
                scheduler.step(until)
            else:
                break
        scheduler.now = until

    # Faults

    def restart(self, group_max_size: int) -> None:
        """Restart as from a compacted log; requests in the purgatory are answered with errors."""
        stored = self._coordinator.hard_state()
        self._submit(Shutdown())
        self._config = replace(self._config, group_max_size=group_max_size)
        coordinator = Coordinator(self._config)
        coordinator.start()
        for metadata, offsets in stored.values():
            if metadata is not None:
                coordinator.apply(metadata)
            coordinator.apply_all(list(offsets))
        self._runtime = self._start(coordinator)

    def fail_next_assignment(self, group_id: GroupId, then: Callable[[], None]) -> None:
        """The append of this group's next generation fails; `then` is called at that time."""
        self._append_failures[group_id] = then

    def close(self) -> None:
        self._catalog.close(self.now)

    # The runtime's record writer

    def append(
        self, outcomes: Sequence[tuple[list[Record], Millis]]
    ) -> list[list[Record] | ErrorCode]:
        return [self._append(records, at) for records, at in outcomes]

    def _append(self, records: list[Record], at: Millis) -> list[Record] | ErrorCode:
        first = records[0]
        if isinstance(first, ClassicGroupMetadata) and first.members:
            on_failure = self._append_failures.pop(first.group_id, None)
            if on_failure is not None:
                on_failure()
                return ErrorCode.NOT_ENOUGH_REPLICAS
        (result,) = self._writer.append([(records, at)])
        return result

    def _write_events(self, events: list[GroupEvent]) -> None:
        self._events.write(events)
        if self._events.lost_count:
            raise LostEvents(f"{self._events.lost_count} events could not be written")
        for event in events:
            if isinstance(event, RebalanceStarted):
                self.on_rebalance[event.group_id]()


class _Waiter:
    def __init__(self, deliver: Callable[[Reply], None]) -> None:
        self.deliver = deliver
