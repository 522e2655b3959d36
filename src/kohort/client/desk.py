"""Where the program's thread meets the consumer's own: one program thread at a time, and waiting.

Callbacks of the program are run here, on its thread and outside the lock, so that they may use the
consumer like any other code.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from kohort.client.agent import Agent
from kohort.client.errors import ConsumerError, WrongUse
from kohort.client.heartbeat import Heartbeat
from kohort.client.member.effects import Call, Change
from kohort.client.member.events import CallbackReturned, Position
from kohort.client.options import Options
from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis

CommitCallback: TypeAlias = Callable[
    [Mapping[TopicPartition, Position], ConsumerError | None], object
]
"""Hears of a commit: what it was, and why it was not kept, if it was not."""


class Desk:
    def __init__(self, options: Options, heartbeat: Heartbeat) -> None:
        self._options = options
        self.heartbeat = heartbeat
        self.is_closed = False
        self.is_listening = False
        """Whether the listener is being called."""
        self._program = threading.RLock()
        self._finished: deque[Callable[[], object]] = deque()
        """Callbacks of commits, for the program's thread to call."""

    @contextmanager
    def program(self) -> Iterator[None]:
        """One thread at a time; the listener, which is called on the same one, may come again."""
        if not self._program.acquire(blocking=False):
            raise WrongUse("another thread is using this consumer; give each thread its own")
        try:
            if self.is_closed:
                raise WrongUse("the consumer is closed")
            yield
        finally:
            self._program.release()

    def refuse_listener(self, what: str) -> None:
        """Some things a listener cannot do: they wait for it to return."""
        if self.is_listening:
            raise WrongUse(f"a listener is called by the consumer, and cannot {what}")

    @contextmanager
    def agent(self) -> Iterator[Agent]:
        with self.program(), self.heartbeat.agent() as agent:
            yield agent

    def until(self, timeout_ms: int | None) -> Millis:
        """The moment at which a call that takes so long is over."""
        wait_ms = self._options.default_api_timeout_ms if timeout_ms is None else timeout_ms
        return Millis(self.heartbeat.now() + wait_ms)

    def wait(self, agent: Agent, is_over: Callable[[], bool], until: Millis) -> bool:
        """Under the lock: whether it became true in time. Raises if it never will."""

        def is_hopeless() -> bool:
            return is_over() or agent.unsupported is not None

        has_come = self._wait(is_hopeless, until)
        if agent.unsupported is not None and not is_over():
            raise agent.unsupported
        return has_come

    def wait_to_commit(self, agent: Agent, until: Millis) -> None:
        """Let a rebalance go on to where a last commit is taken, if there is one to make.

        A member that keeps its partitions through a rebalance would else leave without a word
        about them, and others would read again what was read.
        """
        if self._options.enable_auto_commit and agent.subscription.done_with():
            self._wait(lambda: agent.can_commit, until)

    def _wait(self, is_over: Callable[[], bool], until: Millis) -> bool:
        while not is_over():
            if self.heartbeat.now() >= until:
                return False
            self.heartbeat.wait(until)
        return True

    # Callbacks

    def finish(self, callback: CommitCallback) -> CommitCallback:
        """The same, but called later, on the program's thread."""

        def later(
            positions: Mapping[TopicPartition, Position], error: ConsumerError | None
        ) -> None:
            self._finished.append(lambda: callback(positions, error))

        return later

    def run_callbacks(self) -> None:
        while self._finished:
            self._finished.popleft()()

    def run_call(self, call: Call) -> None:
        """Tell the listener. Its error is raised once the group knows that it has returned."""
        with self.heartbeat.agent() as agent:
            agent.hear_call(call)
            listener = agent.subscription.listener
        partitions = sorted(call.partitions)
        self.is_listening = True
        try:
            match call.change:
                case Change.ASSIGNED:
                    listener.on_partitions_assigned(partitions)
                case Change.REVOKED:
                    listener.on_partitions_revoked(partitions)
                case Change.LOST:
                    listener.on_partitions_lost(partitions)
        finally:
            self.is_listening = False
            with self.heartbeat.agent() as agent:
                if call.change is not Change.ASSIGNED:
                    agent.subscription.remove(call.partitions)
                agent.tell(CallbackReturned(), self.heartbeat.now())
                agent.advance(self.heartbeat.now())

    def run_calls(self, is_over: Callable[[Agent], bool], until: Millis) -> bool:
        """Wait until it is so, and tell the listener what it must hear meanwhile."""
        errors: list[Exception] = []
        while True:
            with self.heartbeat.agent() as agent:
                has_come = self._wait(lambda: is_over(agent) or agent.call is not None, until)
                call = agent.call
            if not has_come or call is None:
                break
            try:
                self.run_call(call)
            except Exception as error:  # raised below: what was begun is ended first
                errors.append(error)
        if errors:
            raise errors[0]
        return has_come
