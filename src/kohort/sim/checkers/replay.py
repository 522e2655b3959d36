"""The groups read back from the log are the groups that live: nothing is only in memory."""

from collections.abc import Mapping

from kohort.coordinator.machine import Coordinator
from kohort.coordinator.recordcodec import Skipped
from kohort.node.broker import Broker
from kohort.node.history import read_back
from kohort.sim.checkers.violation import Violation
from kohort.sim.machine import Death
from kohort.sim.node import Process
from kohort.types import GroupId, Millis

HardState = Mapping[GroupId, object]

_RULE = "replay"
_CHUNK = 1 << 20


def rebuilt(broker: Broker, now: Millis) -> Coordinator:
    """The coordinator that a start at this moment would make of the log."""
    coordinator = Coordinator(broker.settings.limits())
    for partition in broker.topics.offsets_partitions(now):
        for chunk in partition.batches(partition.start_offset, _CHUNK):
            for record in read_back(chunk):
                if isinstance(record, Skipped):
                    raise Violation(_RULE, f"a record cannot be read: {record.reason}")
                coordinator.apply(record)
    return coordinator


def check_replay(broker: Broker, now: Millis) -> None:
    _compare(broker.groups.coordinator.hard_state(), rebuilt(broker, now).hard_state())


class Memory:
    """What one life of the node knew, the next one knows, unless the power went between them."""

    def __init__(self) -> None:
        self._last: HardState | None = None

    def node_ended(self, process: Process, death: Death, /) -> None:
        self._last = None
        # Of one that died in the middle of a write, some may be kept that it never took for true.
        is_whole = process.is_loaded and not process.mount.was_interrupted
        if death in (Death.KILL, Death.STOP) and is_whole:
            self._last = process.broker.groups.coordinator.hard_state()

    def node_started(self, process: Process, /) -> None:
        if self._last is not None:
            _compare(self._last, process.broker.groups.coordinator.hard_state())
            self._last = None


def _compare(live: HardState, kept: HardState) -> None:
    for group_id in sorted(live.keys() | kept.keys()):
        if live.get(group_id) != kept.get(group_id):
            what = f"{group_id} lives as {live.get(group_id)}, is kept as {kept.get(group_id)}"
            raise Violation(_RULE, what)
