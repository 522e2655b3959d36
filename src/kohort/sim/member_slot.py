"""One planned member: its processes, one after another, or two with the same instance id."""

from kohort.sim.application import SimulatedApplication
from kohort.sim.consumer import ProcessEnd, SimulatedConsumer
from kohort.sim.context import SimContext
from kohort.sim.plan import MemberPlan, topics_in
from kohort.types import GroupId, Topic
from kohort.virtual_time.scheduler import MS, ScheduledCall
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.api.k14_sync_group import SyncGroupRequest


class MemberSlot:
    def __init__(self, context: SimContext, plan: MemberPlan, topic_count: int) -> None:
        self._context = context
        self.plan = plan
        self._topic_count = topic_count
        self._bits = plan.topics
        self._started = 0
        self._programs: list[tuple[SimulatedConsumer, SimulatedApplication]] = []
        self._is_awaited = False
        self._arrival: ScheduledCall | None = None

    @property
    def running(self) -> list[SimulatedConsumer]:
        return [consumer for consumer, _ in self._programs if consumer.process.is_running]

    @property
    def has_tasks(self) -> bool:
        """Whether a running application has unfinished tasks."""
        return any(program.has_tasks for program in self._running_programs())

    @property
    def is_empty(self) -> bool:
        """Whether no process runs and none will start."""
        return not self.running and not self._is_awaited

    @property
    def is_awaited(self) -> bool:
        return self._is_awaited

    def start_after(self, delay_ms: int) -> None:
        self._is_awaited = True
        if self._arrival is not None:
            self._arrival.cancel()
        self._arrival = self._context.scheduler.after(delay_ms * MS, self.start)

    def start(self) -> None:
        self._is_awaited = False
        self._arrival = None
        self._started += 1
        consumer = SimulatedConsumer(self._context, self.plan, self._started)
        topics = frozenset(map(Topic, topics_in(self._bits, self._topic_count)))
        self._programs.append((consumer, SimulatedApplication(self._context, consumer, topics)))

    # Planned events

    def crash(self, restart_ms: int, *, is_vanishing: bool) -> None:
        self._last_end(ProcessEnd.VANISHED if is_vanishing else ProcessEnd.CRASHED, restart_ms)

    def pause(self, for_ms: int) -> None:
        for consumer in self.running:
            consumer.process.pause(for_ms)

    def block(self, for_ms: int) -> None:
        for program in self._running_programs():
            program.block(for_ms)

    def leave(self, return_ms: int) -> None:
        for consumer, program in self._programs:
            if not consumer.process.is_running:
                continue
            program.close()
            if return_ms:
                self._is_awaited = True
                consumer.on_end = lambda: self._replace(return_ms)

    def subscribe(self, bits: int) -> None:
        self._bits = bits
        topics = frozenset(map(Topic, topics_in(bits, self._topic_count)))
        for program in self._running_programs():
            program.subscribe(topics)

    def rejoin(self) -> None:
        for program in self._running_programs():
            program.rejoin()

    def start_duplicate(self) -> None:
        """Start a second process with the same group.instance.id, if this is a static member."""
        if self.plan.instance_id is not None and len(self.running) == 1:
            self.start()

    def sent_requests(self) -> list[object]:
        return [body for consumer, _ in self._programs for body in consumer.sent_requests]

    def pipelined(self, amount: int) -> list[object]:
        """An old request; for odd amounts also a LeaveGroup of its last member id."""
        sent_requests = self.sent_requests()
        bodies = [sent_requests[-1 - amount % len(sent_requests)]] if sent_requests else []
        member_ids = [
            each.member_id for each in sent_requests if isinstance(each, SyncGroupRequest)
        ]
        if amount % 2 and member_ids:
            leaver = MemberIdentity(member_id=member_ids[-1])
            bodies.insert(
                0, LeaveGroupRequest(group_id=GroupId(self.plan.group), members=(leaver,))
            )
        return bodies

    def _running_programs(self) -> list[SimulatedApplication]:
        return [program for consumer, program in self._programs if consumer.process.is_running]

    def _last_end(self, end: ProcessEnd, restart_ms: int) -> None:
        running = self.running
        for consumer in running:
            consumer.end(end)
        if running and restart_ms:
            self._replace(restart_ms)

    def _replace(self, delay_ms: int) -> None:
        """Start another process unless one runs."""
        if not self.running:
            self.start_after(delay_ms)
