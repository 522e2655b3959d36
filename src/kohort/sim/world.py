"""One run: everybody there is, everything that befalls them, and the verdict.

First topics are made. Then things go wrong, as the plan has it. Then they heal, and everyone must
settle. At the end the node loses its power once more, and everything promised must be there.
"""

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from kohort.client.topic_partition import TopicPartition
from kohort.node.config import Settings
from kohort.sim.admin import Admin
from kohort.sim.befalling import Fate
from kohort.sim.checkers.liveness import find_lags
from kohort.sim.checkers.replay import Memory, check_replay
from kohort.sim.checkers.violation import Violation
from kohort.sim.court import Court
from kohort.sim.dice import Dice
from kohort.sim.drawing import CALM
from kohort.sim.journal import listening
from kohort.sim.machine import Death, Machine
from kohort.sim.network import Network
from kohort.sim.node import EPOCH_MS
from kohort.sim.plan import Kind, Plan
from kohort.sim.producer import Producer
from kohort.sim.slot import Slot
from kohort.sim.stage import Stage
from kohort.sim.tap import WireTap
from kohort.sim.timeline import MS, Timeline
from kohort.sim.trace import Trace
from kohort.types import Millis, value

_SETUP_MS = 30_000
_LATE_WRITES_MS = 600
"""For so long after healing there is still something to read."""
_GLANCE_MS = 50
_HOUSEKEEPING_MS_MAX = 1_000
_AUDIT_MS = 60_000


@value
class Verdict:
    """What became of a run."""

    plan: Plan
    rule: str | None
    """The rule that was broken, if one was; `broken` where the code under test raised an error."""
    what: str
    events: int
    ended_ms: int
    lives: int
    """Of the node."""
    processed: int
    details: str = ""
    """Where an error was raised."""

    @property
    def is_good(self) -> bool:
        return self.rule is None


class World:
    def __init__(self, plan: Plan, write: Callable[[str], None] | None = None) -> None:
        self._plan = plan
        self._timeline = timeline = Timeline()
        self._trace = trace = Trace(timeline, write)
        dice = Dice(plan.seed)
        self._court = court = Court(timeline, plan)
        tap = WireTap(court.question, court.answer)
        self._machine = machine = Machine(
            timeline,
            dice,
            _node_settings(plan),
            tap=tap,
            tell=lambda word, *facts: trace.tell("node", word, *facts),
            sync_ms=plan.sync_ms,
        )
        network = Network(timeline, dice, CALM, machine)
        machine.network = network
        machine.watchers += [court, Memory()]
        self._stage = Stage(timeline=timeline, dice=dice, network=network, court=court, trace=trace)
        self._admin = Admin(self._stage, plan)
        self._slots = {
            member.name: Slot(self._stage, member, len(plan.topics)) for member in plan.members
        }
        self._producers: list[Producer] = []
        self._fate = Fate(self._stage, machine, self._admin, self._slots, self._producers)

    def run(self) -> Verdict:
        rule, what, details = None, "", ""
        with listening(lambda line: self._trace.tell("node", "node-says", line)):
            try:
                self._live()
            except Violation as violation:
                rule, what = violation.rule, violation.what
            except Exception as error:  # whatever it is, it is what we look for
                rule, what = "broken", repr(error)
                details = _whereabouts(error)
        if rule is not None:
            self._trace.tell("world", "violation", f"{rule}: {what}")
        return Verdict(
            plan=self._plan,
            rule=rule,
            what=what,
            events=self._timeline.events,
            ended_ms=self._timeline.now_ms,
            lives=self._machine.lives,
            processed=self._court.deliveries.count,
            details=details,
        )

    def _live(self) -> None:
        plan, timeline = self._plan, self._timeline
        self._machine.start()
        self._await("topics", self._admin.create_topics, _SETUP_MS)
        self._stage.network.weather = plan.weather
        begin = timeline.now
        for slot in self._slots.values():
            slot.start_after(slot.plan.start_ms)
        self._producers += [Producer(self._stage, each, plan.topics) for each in plan.producers]
        for decision in plan.decisions:
            timeline.after(decision.at_ms * MS, self._fate.appointment(decision))
        timeline.run(begin + plan.faulty_ms * MS)
        self._heal()
        self._settle()
        self._judge()
        self._strike()
        self._judge()

    def _strike(self) -> None:
        """Once more, without warning: what was promised must not depend on luck."""
        plan, timeline = self._plan, self._timeline
        death = Death.POWER if plan.durability == "fsync" else Death.KILL
        self._machine.doom(death, 10, "the last", 0)
        victim = self._slots.get(plan.last_victim)
        has_victim = victim is not None and self._is_missed(victim)
        if victim is not None and has_victim:
            victim.crash(0, is_vanishing=True)
        if plan.housekeeping_ms <= _HOUSEKEEPING_MS_MAX:
            # What a start believes wrongly, the next cleaning acts upon.
            timeline.run(timeline.now + (plan.housekeeping_ms + 100) * MS)
        if has_victim:
            for producer in self._producers:
                producer.resume()
            timeline.run(timeline.now + _LATE_WRITES_MS * MS)
            self._finish_writing()
            self._settle()

    def _is_missed(self, victim: Slot) -> bool:
        return any(
            slot.running
            for slot in self._slots.values()
            if slot is not victim and slot.plan.group == victim.plan.group
        )

    def _heal(self) -> None:
        self._trace.tell("world", "heals")
        machine = self._machine
        self._fate.is_over = True
        self._stage.network.clear_up(CALM)
        machine.heal()
        groups: dict[str, list[Slot]] = {}
        for slot in self._slots.values():
            groups.setdefault(slot.plan.group, []).append(slot)
        for slots in groups.values():
            if all(slot.is_empty for slot in slots):
                slots[0].start_after(10)
        self._timeline.after_ms(_LATE_WRITES_MS, self._finish_writing)

    def _finish_writing(self) -> None:
        for producer in self._producers:
            producer.stop()

    # Settling

    def _settle(self) -> None:
        began, patience = self._timeline.now, self._patience_ms * MS
        missing = ["time"]
        has_nudged = not self._may_leave_orphans
        while missing and self._timeline.now < began + patience:
            self._timeline.run(self._timeline.now + _GLANCE_MS * MS)
            missing = list(self._find_missing())
            if not has_nudged and self._timeline.now > began + patience // 2:
                has_nudged = True
                self._nudge()
        if missing:
            raise Violation("liveness", "; ".join(missing))

    @property
    def _may_leave_orphans(self) -> bool:
        """Whether a partition may be nobody's, with everyone content.

        As in Kafka, a static member that comes back to a stable group is given what it had, and
        nobody deals anew. If it led, it then overlooks partitions that were added meanwhile. If it
        was about to give up a partition and join again, so that another gets it, nobody does.
        """
        static = [member for member in self._plan.members if member.instance_id is not None]
        is_growing = any(decision.kind is Kind.GROW for decision in self._plan.decisions)
        is_cooperative = any("cooperative-sticky" in member.assignors for member in static)
        return bool(static) and (is_growing or is_cooperative)

    def _nudge(self) -> None:
        """What an operator would do."""
        for slot in self._slots.values():
            slot.rejoin()

    @property
    def _patience_ms(self) -> int:
        """Long enough for the slowest way back there is, and not longer."""
        slowest = [
            2 * member.session_ms + 2 * member.max_poll_ms + 3 * member.request_ms
            for member in self._plan.members
        ]
        longest = max((d.amount for d in self._plan.decisions if d.amount < 60_000), default=0)
        return 30_000 + 2 * max(slowest) + longest + 2 * self._plan.initial_delay_ms

    def _find_missing(self) -> Iterator[str]:
        process = self._machine.process
        if process is None or not process.is_loaded:
            yield "the node"
            return
        for producer in self._producers:
            if not producer.is_done:
                yield f"{producer.plan.name} has not written all"
        for slot in self._slots.values():
            if slot.is_awaited:
                yield f"{slot.plan.name} is not there"
            if slot.is_restless:
                yield f"{slot.plan.name} has something to do"
            for consumer in slot.running:
                if not consumer.is_stable:
                    yield f"{consumer.name} is {consumer.member.state}"
        court = self._court
        yield from find_lags(court.commits, court.records, court.deliveries, self._wanted())

    def _wanted(self) -> dict[str, list[TopicPartition]]:
        """What each group reads at the end."""
        wanted: dict[str, list[TopicPartition]] = {}
        partitions = self._admin.all_partitions()
        for slot in self._slots.values():
            for consumer in slot.running:
                of_group = wanted.setdefault(slot.plan.group, [])
                of_group += [
                    at for at in partitions if at.topic in consumer.topics and at not in of_group
                ]
        return wanted

    # Judging

    def _judge(self) -> None:
        groups = list(dict.fromkeys(member.group for member in self._plan.members))
        self._await("audit", lambda then: self._admin.audit(groups, then), _AUDIT_MS)
        for group, partitions in self._wanted().items():
            for partition in partitions:
                self._court.deliveries.check_end(group, partition)
        self._court.check_answers(self._patience_ms)
        process = self._machine.process
        assert process is not None, "it has just been asked"
        check_replay(process.broker, Millis(EPOCH_MS + self._timeline.now_ms))

    def _await(
        self, what: str, begin: Callable[[Callable[[], None]], None], within_ms: int
    ) -> None:
        is_done = False

        def done() -> None:
            nonlocal is_done
            is_done = True

        begin(done)
        ends_at = self._timeline.now + within_ms * MS
        while not is_done:
            if not self._timeline.step(ends_at):
                raise Violation("liveness", f"{what} never came to an end")


def _whereabouts(error: BaseException) -> str:
    """Where an error comes from, without the way that led there through the simulation."""
    return "\n".join(
        f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "sim" not in Path(frame.filename).parts
    )


def _node_settings(plan: Plan) -> Settings:
    return Settings(
        {
            "kohort.durability": plan.durability,
            "auto.create.topics.enable": "false",
            "group.min.session.timeout.ms": "500",
            "group.initial.rebalance.delay.ms": str(plan.initial_delay_ms),
            "offsets.topic.num.partitions": str(plan.offsets_partitions),
            "log.retention.check.interval.ms": str(plan.housekeeping_ms),
            "connections.max.idle.ms": str(plan.idle_ms),
        }
    )
