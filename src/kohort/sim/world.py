"""One simulation run: sets up the simulated cluster, runs the plan and checks the rules.

The run creates topics, applies the planned events, ends all faults and waits until every group is
stable. Then the node crashes once more, and all acknowledged data must still be there.
"""

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from kohort.node.config import BrokerConfig
from kohort.sim.admin_client import SimulatedAdminClient
from kohort.sim.checker_hub import CheckerHub
from kohort.sim.checkers import Violation
from kohort.sim.checkers.liveness import find_lags
from kohort.sim.checkers.replay import RestartChecker, check_replay
from kohort.sim.context import SimContext
from kohort.sim.fault_injector import FaultInjector
from kohort.sim.host import ExitKind, NodeHost
from kohort.sim.logging_capture import capture_logs
from kohort.sim.member_slot import MemberSlot
from kohort.sim.network import SimulatedNetwork
from kohort.sim.pipeliner import Pipeliner
from kohort.sim.plan import EventKind, SimulationPlan
from kohort.sim.plan_generator import CALM
from kohort.sim.producer import SimulatedProducer
from kohort.sim.trace import Trace
from kohort.sim.wire_tap import WireTap
from kohort.types import TopicPartition, value
from kohort.virtual_time.rng import RandomStreams
from kohort.virtual_time.scheduler import MS, Scheduler

_CALLS_PER_MS_MAX = 20_000
"""More calls within one virtual millisecond mean an endless loop in the code under test."""
_SETUP_MS = 30_000
_LATE_WRITES_MS = 600
"""How long producers write after the faults have ended."""
_CHECK_INTERVAL_MS = 50
_HOUSEKEEPING_MS_MAX = 1_000
_AUDIT_MS = 60_000


@value
class RunResult:
    """The result of a run."""

    plan: SimulationPlan
    rule: str | None
    """The rule that was broken, if any; `broken` if the code under test raised an error."""
    what: str
    steps: int
    ended_ms: int
    node_starts: int
    processed: int
    details: str = ""
    """The traceback of the error."""

    @property
    def is_good(self) -> bool:
        return self.rule is None


class World:
    def __init__(self, plan: SimulationPlan, write: Callable[[str], None] | None = None) -> None:
        self._plan = plan
        self._scheduler = scheduler = Scheduler(units_per_ms=MS, calls_per_ms_max=_CALLS_PER_MS_MAX)
        self._trace = trace = Trace(scheduler, write)
        streams = RandomStreams(plan.seed)
        self._checkers = checkers = CheckerHub(scheduler, plan)
        tap = WireTap(checkers.request, checkers.response)
        self._host = host = NodeHost(
            scheduler,
            streams,
            _node_settings(plan),
            tap=tap,
            log=lambda event, *fields: trace.log("node", event, *fields),
            sync_ms=plan.sync_ms,
        )
        network = SimulatedNetwork(scheduler, streams, CALM, host)
        host.network = network
        host.observers += [checkers, RestartChecker()]
        self._context = SimContext(
            scheduler=scheduler, streams=streams, network=network, checkers=checkers, trace=trace
        )
        self._admin_client = SimulatedAdminClient(self._context, plan)
        self._slots = {
            member.name: MemberSlot(self._context, member, len(plan.topics))
            for member in plan.members
        }
        self._producers: list[SimulatedProducer] = []
        pipeliner = Pipeliner(self._context, plan)
        self._injector = FaultInjector(
            self._context,
            host,
            self._admin_client,
            self._slots,
            self._producers,
            pipeliner=pipeliner,
        )

    def run(self) -> RunResult:
        rule, what, details = None, "", ""
        with capture_logs(lambda who, line: self._trace.log(who, "logs", line)):
            try:
                self._run()
            except Violation as violation:
                rule, what = violation.rule, violation.what
            except Exception as error:  # any error is a finding
                rule, what = "broken", repr(error)
                details = _traceback(error)
        if rule is not None:
            self._trace.log("world", "violation", f"{rule}: {what}")
        return RunResult(
            plan=self._plan,
            rule=rule,
            what=what,
            steps=self._scheduler.calls,
            ended_ms=self._scheduler.now_ms,
            node_starts=self._host.node_starts,
            processed=self._checkers.deliveries.count,
            details=details,
        )

    def _run(self) -> None:
        plan, scheduler = self._plan, self._scheduler
        self._host.start()
        self._await("topics", self._admin_client.create_topics, _SETUP_MS)
        self._context.network.conditions = plan.conditions
        begin = scheduler.now
        for slot in self._slots.values():
            slot.start_after(slot.plan.start_ms)
        self._producers += [
            SimulatedProducer(self._context, each, plan.topics) for each in plan.producers
        ]
        for event in plan.events:
            scheduler.after(event.at_ms * MS, self._injector.scheduled(event))
        scheduler.run(begin + plan.faulty_ms * MS)
        self._end_faults()
        self._settle()
        self._check()
        self._crash_again()
        self._check()

    def _crash_again(self) -> None:
        """Crash the node, and maybe a member, after everything is stable."""
        plan, scheduler = self._plan, self._scheduler
        exit_kind = ExitKind.POWER if plan.durability == "fsync" else ExitKind.KILL
        self._host.schedule_exit(exit_kind, 10, "the last", 0)
        victim = self._slots.get(plan.last_victim)
        has_victim = victim is not None and self._has_group_members(victim)
        if victim is not None and has_victim:
            victim.crash(0, is_vanishing=True)
        if plan.housekeeping_ms <= _HOUSEKEEPING_MS_MAX:
            # Wait for the next log cleaning: it may act on state that was loaded wrongly.
            scheduler.run(scheduler.now + (plan.housekeeping_ms + 100) * MS)
        if has_victim:
            for producer in self._producers:
                producer.resume()
            scheduler.run(scheduler.now + _LATE_WRITES_MS * MS)
            self._finish_writing()
            self._settle()

    def _has_group_members(self, victim: MemberSlot) -> bool:
        return any(
            slot.running
            for slot in self._slots.values()
            if slot is not victim and slot.plan.group == victim.plan.group
        )

    def _end_faults(self) -> None:
        self._trace.log("world", "faults-end")
        host = self._host
        self._injector.is_over = True
        self._context.network.end_faults(CALM)
        host.end_faults()
        groups: dict[str, list[MemberSlot]] = {}
        for slot in self._slots.values():
            groups.setdefault(slot.plan.group, []).append(slot)
        for slots in groups.values():
            if all(slot.is_empty for slot in slots):
                slots[0].start_after(10)
        self._scheduler.after_ms(_LATE_WRITES_MS, self._finish_writing)

    def _finish_writing(self) -> None:
        for producer in self._producers:
            producer.stop()

    # Waiting until all groups are stable

    def _settle(self) -> None:
        began, timeout = self._scheduler.now, self._settle_timeout_ms * MS
        missing = ["time"]
        has_nudged = not self._may_leave_unassigned
        while missing and self._scheduler.now < began + timeout:
            self._scheduler.run(self._scheduler.now + _CHECK_INTERVAL_MS * MS)
            missing = list(self._find_missing())
            if not has_nudged and self._scheduler.now > began + timeout // 2:
                has_nudged = True
                self._request_rebalance()
        if missing:
            raise Violation("liveness", "; ".join(missing))

    @property
    def _may_leave_unassigned(self) -> bool:
        """Whether a partition may stay unassigned although all members are stable.

        As in Kafka, a static member that rejoins a stable group gets its old assignment without a
        rebalance. If it was the leader, it misses partitions that were added meanwhile. If it was
        about to revoke a partition and rejoin, no other member gets that partition.
        """
        static = [member for member in self._plan.members if member.instance_id is not None]
        is_growing = any(event.kind is EventKind.GROW for event in self._plan.events)
        is_cooperative = any("cooperative-sticky" in member.assignors for member in static)
        return bool(static) and (is_growing or is_cooperative)

    def _request_rebalance(self) -> None:
        """Make every member rejoin, as an operator would."""
        for slot in self._slots.values():
            slot.rejoin()

    @property
    def _settle_timeout_ms(self) -> int:
        """Covers the slowest recovery: sessions, polls, requests and the longest event."""
        slowest = [
            2 * member.session_ms + 2 * member.max_poll_ms + 3 * member.request_ms
            for member in self._plan.members
        ]
        longest = max((d.amount for d in self._plan.events if 0 < d.amount < 60_000), default=0)
        return 30_000 + 2 * max(slowest) + longest + 2 * self._plan.initial_delay_ms

    def _find_missing(self) -> Iterator[str]:
        process = self._host.process
        if process is None or not process.is_loaded:
            yield "the node"
            return
        for producer in self._producers:
            if not producer.is_done:
                yield f"{producer.plan.name} has unacknowledged batches"
        for slot in self._slots.values():
            if slot.is_awaited:
                yield f"{slot.plan.name} is not started"
            if slot.has_tasks:
                yield f"{slot.plan.name} has pending tasks"
            for consumer in slot.running:
                if not consumer.is_stable:
                    yield f"{consumer.name} is {consumer.member.state}"
        checkers = self._checkers
        yield from find_lags(
            checkers.commits, checkers.records, checkers.deliveries, self._wanted()
        )

    def _wanted(self) -> dict[str, list[TopicPartition]]:
        """The partitions that each group reads."""
        wanted: dict[str, list[TopicPartition]] = {}
        partitions = self._admin_client.all_partitions()
        for slot in self._slots.values():
            for consumer in slot.running:
                of_group = wanted.setdefault(slot.plan.group, [])
                of_group += [
                    at for at in partitions if at.topic in consumer.topics and at not in of_group
                ]
        return wanted

    # Checks after the run

    def _check(self) -> None:
        groups = list(dict.fromkeys(member.group for member in self._plan.members))
        self._await("audit", lambda then: self._admin_client.audit(groups, then), _AUDIT_MS)
        for group, partitions in self._wanted().items():
            for partition in partitions:
                self._checkers.deliveries.check_end(group, partition)
        self._checkers.check_responses(self._settle_timeout_ms)
        process = self._host.process
        assert process is not None, "the node has just responded"
        check_replay(process.broker)

    def _await(
        self, what: str, begin: Callable[[Callable[[], None]], None], within_ms: int
    ) -> None:
        is_done = False

        def done() -> None:
            nonlocal is_done
            is_done = True

        begin(done)
        ends_at = self._scheduler.now + within_ms * MS
        while not is_done:
            if not self._scheduler.step(ends_at):
                raise Violation("liveness", f"{what} did not finish")


def _traceback(error: BaseException) -> str:
    """The frames of an error, without those of the simulation."""
    return "\n".join(
        f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "sim" not in Path(frame.filename).parts
    )


def _node_settings(plan: SimulationPlan) -> BrokerConfig:
    return BrokerConfig(
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
