"""Decisions of the plan, carried out."""

from collections.abc import Callable

from kohort.client.topic_partition import TopicPartition
from kohort.sim.admin import Admin
from kohort.sim.machine import Death, Machine
from kohort.sim.plan import Decision, Kind
from kohort.sim.producer import Producer
from kohort.sim.slot import Slot
from kohort.sim.stage import Stage
from kohort.sim.timeline import MS

_DEATHS = {
    Kind.NODE_KILL: Death.KILL,
    Kind.NODE_POWER: Death.POWER,
    Kind.NODE_STOP: Death.STOP,
}


class Fate:
    def __init__(
        self,
        stage: Stage,
        machine: Machine,
        admin: Admin,
        slots: dict[str, Slot],
        producers: list[Producer],
    ) -> None:
        self._stage = stage
        self._machine = machine
        self._admin = admin
        self._slots = slots
        self._producers = producers
        self.is_over = False

    def appointment(self, decision: Decision) -> Callable[[], None]:
        return lambda: self._befall(decision)

    def _befall(self, decision: Decision) -> None:
        if self.is_over:
            return
        amount = f"{decision.amount}" + (f"+{decision.operations}" if decision.operations else "")
        who = decision.target or "node"
        self._stage.trace.tell(
            "world", "befalls", f"!{decision.number}", decision.kind, who, amount
        )
        if decision.target in self._slots:
            self._befall_member(self._slots[decision.target], decision)
        elif decision.kind is Kind.GROW:
            self._admin.grow(decision.target, decision.amount, self._on_grown)
        elif decision.target:
            self._befall_connections(decision)
        else:
            self._befall_node(decision)

    def _befall_node(self, decision: Decision) -> None:
        machine, amount = self._machine, decision.amount
        match decision.kind:
            case Kind.NODE_KILL | Kind.NODE_POWER | Kind.NODE_STOP:
                death = _DEATHS[decision.kind]
                machine.doom(death, amount, f"{decision.number}", decision.operations)
            case Kind.DISK_FULL:
                machine.platters.is_full = True
                self._stage.timeline.after(amount * MS, machine.make_room)
            case Kind.SYNC_FAILS:
                machine.platters.failing_syncs = 1
            case Kind.SYNC_SLOW:
                machine.slow_until = self._stage.timeline.now + amount * MS
            case Kind.CLOCK_JUMP:
                machine.clock.skew_ms += amount
            case _:
                raise AssertionError(f"{decision.kind} does not befall a node")

    def _befall_connections(self, decision: Decision) -> None:
        network = self._stage.network
        match decision.kind:
            case Kind.CUT:
                for link in network.links_of(decision.target):
                    link.cut()
            case Kind.SILENCE:
                for link in network.links_of(decision.target):
                    link.mute()
            case Kind.STALL:
                network.isolate(decision.target, decision.amount)
            case _:
                raise AssertionError(f"{decision.kind} does not befall {decision.target}")

    def _befall_member(self, slot: Slot, decision: Decision) -> None:  # noqa: C901  # a flat table
        amount = decision.amount
        match decision.kind:
            case Kind.CRASH:
                slot.crash(amount, is_vanishing=False)
            case Kind.VANISH:
                slot.crash(amount, is_vanishing=True)
            case Kind.PAUSE:
                slot.pause(amount)
            case Kind.BUSY:
                slot.be_busy(amount)
            case Kind.LEAVE:
                slot.leave(amount)
            case Kind.SUBSCRIBE:
                slot.subscribe(amount)
            case Kind.REJOIN:
                slot.rejoin()
            case Kind.TWIN:
                slot.twin()
            case Kind.GHOST:
                said = slot.said()
                if said:
                    self._admin.haunt(said[-1 - amount % len(said)])
            case _:
                self._befall_connections(decision)

    def _on_grown(self, partition: TopicPartition) -> None:
        for producer in self._producers:
            producer.grow(partition)
