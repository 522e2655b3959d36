"""Applies the planned events."""

from collections.abc import Callable

from kohort.sim.admin_client import SimulatedAdminClient
from kohort.sim.context import SimContext
from kohort.sim.host import ExitKind, NodeHost
from kohort.sim.member_slot import MemberSlot
from kohort.sim.pipeliner import Pipeliner
from kohort.sim.plan import EventKind, PlannedEvent
from kohort.sim.producer import SimulatedProducer
from kohort.types import TopicPartition
from kohort.virtual_time.scheduler import MS

_DEATHS = {
    EventKind.NODE_KILL: ExitKind.KILL,
    EventKind.NODE_POWER: ExitKind.POWER,
    EventKind.NODE_STOP: ExitKind.STOP,
}


class FaultInjector:
    def __init__(
        self,
        context: SimContext,
        host: NodeHost,
        admin_client: SimulatedAdminClient,
        slots: dict[str, MemberSlot],
        producers: list[SimulatedProducer],
        *,
        pipeliner: Pipeliner,
    ) -> None:
        self._context = context
        self._host = host
        self._admin_client = admin_client
        self._slots = slots
        self._producers = producers
        self._pipeliner = pipeliner
        self.is_over = False

    def scheduled(self, event: PlannedEvent) -> Callable[[], None]:
        return lambda: self._apply(event)

    def _apply(self, event: PlannedEvent) -> None:
        if self.is_over:
            return
        amount = f"{event.amount}" + (f"+{event.operations}" if event.operations else "")
        who = event.target or "node"
        self._context.trace.log("world", "event", f"!{event.number}", event.kind, who, amount)
        if event.target in self._slots:
            self._apply_to_member(self._slots[event.target], event)
        elif event.kind is EventKind.GROW:
            self._admin_client.grow(event.target, event.amount, self._on_grown)
        elif event.target:
            self._apply_to_connections(event)
        else:
            self._apply_to_node(event)

    def _apply_to_node(self, event: PlannedEvent) -> None:
        host, amount = self._host, event.amount
        match event.kind:
            case EventKind.NODE_KILL | EventKind.NODE_POWER | EventKind.NODE_STOP:
                exit_kind = _DEATHS[event.kind]
                host.schedule_exit(exit_kind, amount, f"{event.number}", event.operations)
            case EventKind.DISK_FULL:
                host.disk_image.is_full = True
                self._context.scheduler.after(amount * MS, host.free_space)
            case EventKind.SYNC_FAILS:
                host.disk_image.failing_syncs = 1
            case EventKind.SYNC_SLOW:
                host.slow_until = self._context.scheduler.now + amount * MS
            case EventKind.CLOCK_JUMP:
                host.clock.skew_ms += amount
            case EventKind.NODE_SUSPEND:
                host.suspend(amount)
            case _:
                raise AssertionError(f"{event.kind} does not apply to the node")

    def _apply_to_connections(self, event: PlannedEvent) -> None:
        network = self._context.network
        match event.kind:
            case EventKind.CUT:
                for link in network.links_of(event.target):
                    link.cut()
            case EventKind.SILENCE:
                for link in network.links_of(event.target):
                    link.mute()
            case EventKind.STALL:
                network.isolate(event.target, event.amount)
            case _:
                raise AssertionError(f"{event.kind} does not apply to {event.target}")

    def _apply_to_member(  # noqa: C901  # one flat match
        self, slot: MemberSlot, event: PlannedEvent
    ) -> None:
        amount = event.amount
        match event.kind:
            case EventKind.CRASH:
                slot.crash(amount, is_vanishing=False)
            case EventKind.VANISH:
                slot.crash(amount, is_vanishing=True)
            case EventKind.PAUSE:
                slot.pause(amount)
            case EventKind.BUSY:
                slot.block(amount)
            case EventKind.LEAVE:
                slot.leave(amount)
            case EventKind.SUBSCRIBE:
                slot.subscribe(amount)
            case EventKind.REJOIN:
                slot.rejoin()
            case EventKind.TWIN:
                slot.start_duplicate()
            case EventKind.GHOST:
                sent_requests = slot.sent_requests()
                if sent_requests:
                    self._admin_client.resend(sent_requests[-1 - amount % len(sent_requests)])
            case EventKind.PIPELINE:
                self._pipeliner.send(slot.pipelined(amount))
            case _:
                self._apply_to_connections(event)

    def _on_grown(self, partition: TopicPartition) -> None:
        for producer in self._producers:
            producer.grow(partition)
