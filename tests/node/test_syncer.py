"""One sync for many, and nothing promised after a failed one."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

from kohort.node.syncer import Syncer


class _Later(Executor):
    """Runs nothing until told to."""

    def __init__(self) -> None:
        self.work: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self.work.append((future, fn, args))
        return future

    def run_one(self) -> None:
        future, fn, args = self.work.popleft()
        try:
            future.set_result(fn(*args))
        except OSError as error:
            future.set_exception(error)


class _File:
    def __init__(self, error: OSError | None = None) -> None:
        self.syncs = 0
        self.error = error

    def sync(self) -> None:
        if self.error is not None:
            raise self.error
        self.syncs += 1


class _Bench:
    def __init__(self, file: _File | None = None) -> None:
        self.file = file or _File()
        self.loop: deque[Callable[[], None]] = deque()
        self.executor = _Later()
        self.failures: list[BaseException] = []
        self.syncer = Syncer(
            lambda: [self.file], self.loop.append, self.failures.append, self.executor
        )

    def turn(self) -> None:
        """One turn of the loop: what was called soon runs."""
        for _ in range(len(self.loop)):
            self.loop.popleft()()

    def settle(self) -> None:
        """As many turns as something is called soon in."""
        while self.loop:
            self.turn()


def test_everything_written_in_one_turn_shares_one_sync() -> None:
    bench, told = _Bench(), list[str]()
    for name in "abc":
        bench.syncer.after(partial(told.append, name))
    bench.settle()
    assert told == []

    bench.executor.run_one()
    bench.settle()

    assert told == ["a", "b", "c"]
    assert bench.file.syncs == 1


def test_what_comes_while_a_sync_runs_waits_for_the_next_one() -> None:
    bench, told = _Bench(), list[str]()
    bench.syncer.after(lambda: told.append("first"))
    bench.settle()
    bench.syncer.after(lambda: told.append("second"))
    bench.executor.run_one()
    bench.settle()
    assert told == ["first"]

    bench.executor.run_one()
    bench.settle()

    assert told == ["first", "second"]
    assert bench.syncer.is_idle


def test_those_who_come_turn_after_turn_share_one_sync() -> None:
    bench, told = _Bench(), list[str]()
    for name in "abc":
        bench.syncer.after(partial(told.append, name))
        bench.turn()
    assert not bench.executor.work

    bench.settle()
    bench.executor.run_one()
    bench.settle()

    assert told == ["a", "b", "c"]
    assert bench.file.syncs == 1


def test_an_endless_stream_does_not_keep_the_first_waiting() -> None:
    bench = _Bench()

    for _ in range(10):
        bench.syncer.after(lambda: None)
        bench.turn()

    assert len(bench.executor.work) == 1


def test_a_failed_sync_tells_nobody_but_the_node() -> None:
    error = OSError("gone")
    bench, told = _Bench(_File(error)), list[str]()
    bench.syncer.after(lambda: told.append("lie"))
    bench.settle()

    bench.executor.run_one()
    bench.settle()

    assert told == []
    assert bench.failures == [error]


def test_nothing_is_promised_again_after_a_failed_sync() -> None:
    bench, told = _Bench(_File(OSError("gone"))), list[str]()
    bench.syncer.after(lambda: told.append("lie"))
    bench.settle()
    bench.executor.run_one()
    bench.settle()
    bench.file.error = None

    bench.syncer.after(lambda: told.append("another lie"))
    bench.settle()

    assert not bench.executor.work
    assert told == []
