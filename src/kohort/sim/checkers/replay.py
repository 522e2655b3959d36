"""Groups loaded from the log equal the groups in memory."""

from collections.abc import Mapping

from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.events import GroupEvent
from kohort.coordinator.record_codec import Skipped
from kohort.node.broker import Broker
from kohort.node.group_loader import read_batches
from kohort.sim.checkers import Violation
from kohort.sim.host import ExitKind
from kohort.sim.node import NodeProcess
from kohort.types import GroupId

HardState = Mapping[GroupId, object]

_RULE = "replay"
_CHUNK = 1 << 20


def rebuilt(broker: Broker) -> Coordinator:
    """The coordinator that a restart now would load from the log."""
    coordinator = Coordinator(broker.settings.group_config())
    for partition in broker.topics.offsets_partitions():
        for chunk in partition.batches(partition.start_offset, _CHUNK):
            for record in read_batches(chunk):
                if isinstance(record, Skipped):
                    raise Violation(_RULE, f"a record cannot be decoded: {record.reason}")
                coordinator.apply(record)
    return coordinator


def check_replay(broker: Broker) -> None:
    _compare(broker.coordinator.hard_state(), rebuilt(broker).hard_state())


class RestartChecker:
    """A restart without power failure loads the groups of the previous process."""

    def __init__(self) -> None:
        self._last: HardState | None = None

    def node_ended(self, process: NodeProcess, exit_kind: ExitKind, /) -> None:
        self._last = None
        # A process killed during a write may have written records that it had not applied.
        is_whole = process.is_loaded and not process.mount.was_interrupted
        if exit_kind in (ExitKind.KILL, ExitKind.STOP) and is_whole:
            self._last = process.broker.coordinator.hard_state()

    def node_resumed(self, suspended: int, /) -> None: ...

    def groups_changed(self, events: list[GroupEvent], /) -> None: ...

    def node_started(self, process: NodeProcess, /) -> None:
        if self._last is not None:
            _compare(self._last, process.broker.coordinator.hard_state())
            self._last = None


def _compare(live: HardState, kept: HardState) -> None:
    for group_id in sorted(live.keys() | kept.keys()):
        if live.get(group_id) != kept.get(group_id):
            what = f"{group_id} in memory: {live.get(group_id)}, in the log: {kept.get(group_id)}"
            raise Violation(_RULE, what)
