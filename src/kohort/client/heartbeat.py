"""The thread that keeps a consumer alive while its program is busy: one lock and one loop.

It owns the network. Everything else is the agent's, which both threads use under the lock: the
program's puts something in and waits for the condition, this one carries requests and answers.
"""

import threading
import time
from random import Random
from typing import Final

from kohort.client.agent import Agent
from kohort.client.errors import ConsumerError, UnsupportedBroker
from kohort.client.member.events import Loss
from kohort.client.network.connections import Network, Outcome
from kohort.client.options import Options
from kohort.types import Millis

_NEVER: Final = Millis(2**62)
_STOP_S: Final = 2.0
"""It never waits for anything, so it ends at once; should it not, nobody waits for it either."""


class Locked:
    """To be used as `with heartbeat.agent() as agent`; a generator would cost each poll more."""

    __slots__ = ("_heartbeat",)

    def __init__(self, heartbeat: "Heartbeat") -> None:
        self._heartbeat = heartbeat

    def __enter__(self) -> Agent:
        return self._heartbeat.enter()

    def __exit__(self, *_: object) -> None:
        self._heartbeat.leave()


class Heartbeat:
    def __init__(self, options: Options) -> None:
        self._started_ns = time.time_ns() - time.monotonic_ns()
        self._condition = threading.Condition()
        # Dice of our own: a program that seeds Python's is not to find them rolled by a thread.
        dice = Random()  # noqa: S311  # for pauses between attempts, not for secrets
        self._agent = Agent(options, dice.random)
        self._network = Network(options, dice.random, self._agent.cluster.addresses)
        self._locked = Locked(self)
        self._sleeps_until = _NEVER
        self._news = 0
        self._is_stopping = False
        self._crash: BaseException | None = None
        name = f"kohort-consumer-{options.group_id or options.client_id}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Without a word to anybody: what was to be said was said before."""
        self._is_stopping = True
        self._network.wake()
        # A consumer that was forgotten may be found by the collector on this very thread.
        if threading.current_thread() is not self._thread:
            self._thread.join(_STOP_S)

    def now(self) -> Millis:
        """Since the epoch, but never backwards: the moment of the start, and what has passed."""
        return Millis((self._started_ns + time.monotonic_ns()) // 1_000_000)

    # For the program's thread

    def agent(self) -> Locked:
        """The agent, under the lock. What the program has asked for is sent when it lets go."""
        return self._locked

    def check(self) -> None:
        if self._crash is not None:
            raise ConsumerError("the consumer's own thread has died") from self._crash

    def enter(self) -> Agent:
        self._condition.acquire()
        if self._crash is not None:
            self._condition.release()
            self.check()
        return self._agent

    def leave(self) -> None:
        try:
            self._hand_over()
        finally:
            self._condition.release()

    def _hand_over(self) -> None:
        """Wake the loop if there is something for it to do sooner than it thinks."""
        agent = self._agent
        if not agent.post.is_empty:
            self._network.wake()
        elif agent.news != self._news:
            self._news = agent.news
            deadline = agent.deadline()
            if deadline is not None and deadline < self._sleeps_until:
                self._network.wake()

    def wait(self, until: Millis) -> None:
        """Under the lock: until something has happened, or it is that late."""
        self._hand_over()
        self._condition.wait(min(max(0, until - self.now()) / 1000, threading.TIMEOUT_MAX))
        self.check()

    # The loop

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._turn()
        except BaseException as error:  # told to the program at its next call
            with self._condition:
                self._crash = error
                self._condition.notify_all()
        finally:
            self._network.close()

    def _turn(self) -> None:
        network = self._network
        with self._condition:
            now = self.now()
            news = self._agent.news
            self._agent.advance(now)
            if self._agent.news > news + 1:  # more than the question itself
                self._condition.notify_all()
            requests = self._agent.post.take()
            agents = self._agent.deadline()
            self._sleeps_until = _NEVER if agents is None else agents
        for request in requests:
            network.send(request, now)
        moments = (agents, network.deadline())
        until = min((each for each in moments if each is not None), default=None)
        ready = network.wait(None if until is None else Millis(max(0, until - self.now())))
        outcomes = network.attend(ready, self.now())
        if outcomes:
            with self._condition:
                self._deliver(outcomes)
                self._condition.notify_all()

    def _deliver(self, outcomes: list[Outcome]) -> None:
        now = self.now()
        for request, answer in outcomes:
            if isinstance(answer, UnsupportedBroker):
                self._agent.unsupported = answer
                request.then(Loss.UNREACHABLE, now)
            else:
                request.then(answer, now)
