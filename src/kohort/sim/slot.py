"""The place of one member: the processes that fill it, one after another, or two at once."""

from kohort.sim.consumer import Consumer, End
from kohort.sim.plan import MemberPlan, topics_in
from kohort.sim.program import Program
from kohort.sim.stage import Stage
from kohort.sim.timeline import MS, Appointment
from kohort.types import Topic


class Slot:
    def __init__(self, stage: Stage, plan: MemberPlan, topic_count: int) -> None:
        self._stage = stage
        self.plan = plan
        self._topic_count = topic_count
        self._bits = plan.topics
        self._started = 0
        self._programs: list[tuple[Consumer, Program]] = []
        self._is_awaited = False
        self._arrival: Appointment | None = None

    @property
    def running(self) -> list[Consumer]:
        return [consumer for consumer, _ in self._programs if consumer.life.is_running]

    @property
    def is_restless(self) -> bool:
        """Whether somebody there is still to do something it was told."""
        return any(program.has_errands for program in self._running_programs())

    @property
    def is_empty(self) -> bool:
        """Whether nobody is there, and nobody will come."""
        return not self.running and not self._is_awaited

    @property
    def is_awaited(self) -> bool:
        return self._is_awaited

    def start_after(self, delay_ms: int) -> None:
        self._is_awaited = True
        if self._arrival is not None:
            self._arrival.cancel()
        self._arrival = self._stage.timeline.after(delay_ms * MS, self.start)

    def start(self) -> None:
        self._is_awaited = False
        self._arrival = None
        self._started += 1
        consumer = Consumer(self._stage, self.plan, self._started)
        topics = frozenset(map(Topic, topics_in(self._bits, self._topic_count)))
        self._programs.append((consumer, Program(self._stage, consumer, topics)))

    # What befalls it

    def crash(self, restart_ms: int, *, is_vanishing: bool) -> None:
        self._last_end(End.VANISHED if is_vanishing else End.CRASHED, restart_ms)

    def pause(self, for_ms: int) -> None:
        for consumer in self.running:
            consumer.life.pause(for_ms)

    def be_busy(self, for_ms: int) -> None:
        for program in self._running_programs():
            program.be_busy(for_ms)

    def leave(self, return_ms: int) -> None:
        for consumer, program in self._programs:
            if not consumer.life.is_running:
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

    def twin(self) -> None:
        """Only a static member can have one: it is known by its name."""
        if self.plan.instance_id is not None and len(self.running) == 1:
            self.start()

    def said(self) -> list[object]:
        return [body for consumer, _ in self._programs for body in consumer.said]

    def _running_programs(self) -> list[Program]:
        return [program for consumer, program in self._programs if consumer.life.is_running]

    def _last_end(self, end: End, restart_ms: int) -> None:
        running = self.running
        for consumer in running:
            consumer.end(end)
        if running and restart_ms:
            self._replace(restart_ms)

    def _replace(self, delay_ms: int) -> None:
        """Another process comes, unless one is there."""
        if not self.running:
            self.start_after(delay_ms)
