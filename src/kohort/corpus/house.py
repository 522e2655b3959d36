"""The broker's part, without sockets: the node's own runtime around the real coordinator, writing
the node's own topics into a data directory, in virtual time.

What the script does to it is done here: it can be started again with another limit, and its disk
can refuse to keep one group's next assignment.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kohort.coordinator.commands import Request, Shutdown, Ticket
from kohort.coordinator.limits import Limits
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.notes import Note, RebalanceStarted
from kohort.coordinator.records import GenerationFormed, Record
from kohort.coordinator.replies import Reply
from kohort.corpus.dice import Dice, draw_topic_id
from kohort.corpus.timeline import DONE, Timeline
from kohort.log.catalog import Catalog
from kohort.node.config import Settings
from kohort.node.events import EventsTopic
from kohort.node.offsets_topic import OffsetsTopic
from kohort.node.runtime import Keeper, NotKept, Runtime
from kohort.node.topics import EVENTS, Topics
from kohort.types import ErrorCode, GroupId, Millis, Partition, Topic


class Lost(Exception):
    """An event did not fit into its topic: the corpus would not be what its truth says."""


class House(Keeper):
    def __init__(
        self,
        directory: Path,
        dice: Dice,
        begin: Millis,
        limits: Limits,
        *,
        partition_count: int,
        has_events: bool,
    ) -> None:
        self.timeline = Timeline(begin)
        self.kept = 0
        """Records of `__consumer_offsets` so far."""
        self.on_rebalance: dict[GroupId, Callable[[], None]] = {}
        """Whom to tell that a group's members will soon hear of a rebalance."""
        self._refusals: dict[GroupId, Callable[[], None]] = {}
        settings = Settings(
            {
                "offsets.topic.num.partitions": f"{partition_count}",
                "kohort.events.enable": f"{has_events}".lower(),
            }
        )
        ids = dice.named("topic ids")
        self._catalog, _ = Catalog.open(directory, begin, cluster_id="kohort-corpus")
        self._topics = Topics(self._catalog, settings, lambda: draw_topic_id(ids))
        self._offsets = OffsetsTopic(
            self._topics.offsets_partitions, None, _ignore_append, self._count
        )
        self._events = EventsTopic(self._topics, settings, _ignore_append, _complain)
        self._limits = limits
        self._runtime = self._start(Coordinator(limits))

    def _start(self, coordinator: Coordinator) -> Runtime:
        runtime = Runtime(coordinator, self, self._on_notes)
        runtime.resume(self.now)
        return runtime

    @property
    def now(self) -> Millis:
        return self.timeline.now

    @property
    def events(self) -> int:
        log = self._catalog.partition(EVENTS, 0)
        return 0 if log is None else log.end_offset

    # Being asked

    def ask(self, request: Callable[[Ticket], Request], deliver: Callable[[Reply], None]) -> None:
        """The answer may come at once or with time; whoever hears it must not ask at once."""
        self._runtime.submit(request(self._runtime.issue(deliver)), self.now)

    def run(self, until: Millis) -> None:
        """Let time pass: timers fire before anybody does anything else at that moment."""
        timeline = self.timeline
        while True:
            planned, deadline = timeline.next(), self._runtime.next_deadline()
            if deadline is not None and (planned is None or (deadline, DONE) <= planned):
                if deadline > until:
                    break
                timeline.now = max(timeline.now, deadline)
                self._runtime.fire_due(timeline.now)
            elif planned is not None and planned[0] <= until:
                timeline.step()
            else:
                break
        timeline.now = until

    # What the script does to it

    def restart(self, group_max_size: int) -> None:
        """As from a compacted log: what is kept comes back, whoever waits is sent away."""
        kept = self._runtime.coordinator.hard_state()
        self._runtime.submit(Shutdown(), self.now)
        self._limits = replace(self._limits, group_max_size=group_max_size)
        coordinator = Coordinator(self._limits)
        coordinator.start()
        for formed, offsets in kept.values():
            if formed is not None:
                coordinator.apply(formed)
            coordinator.apply_all(list(offsets))
        self._runtime = self._start(coordinator)

    def refuse_assignment(self, group_id: GroupId, then: Callable[[], None]) -> None:
        """The disk will not keep this group's next generation; `then` is called when it happens."""
        self._refusals[group_id] = then

    def close(self) -> None:
        self._catalog.close(self.now)

    # As the runtime's keeper

    def keep(self, records: list[Record], now: Millis) -> list[Record]:
        first = records[0]
        if isinstance(first, GenerationFormed) and first.members:
            refusal = self._refusals.pop(first.group_id, None)
            if refusal is not None:
                refusal()
                raise NotKept(ErrorCode.NOT_ENOUGH_REPLICAS)
        return self._offsets.keep(records, now)

    def when_durable(self, then: Callable[[], None]) -> None:
        self._offsets.when_durable(then)

    @property
    def is_durable(self) -> bool:
        return self._offsets.is_durable

    def _count(self, records: list[Record]) -> None:
        self.kept += len(records)

    def _on_notes(self, notes: list[Note]) -> None:
        self._events.write(notes)
        for note in notes:
            if isinstance(note, RebalanceStarted):
                self.on_rebalance[note.group_id]()


def _ignore_append(_topic: Topic, _partition: Partition, _size: int) -> None:
    """Nobody waits for new records here."""


def _complain(count: int) -> None:
    raise Lost(f"{count} events could not be kept")
