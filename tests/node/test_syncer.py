"""One sync for many responses, and nothing is released after a failed one."""

from collections.abc import Sequence

from kohort.log.sync_queue import PendingSync
from kohort.node.syncer import Syncer


class _Disk:
    """Counts the rounds that were started."""

    def __init__(self) -> None:
        self.rounds = 0

    def start(self, files: Sequence[PendingSync]) -> None:
        assert files == ()
        self.rounds += 1


class _Response:
    def __init__(self, name: str, released: list[str]) -> None:
        self._name = name
        self._released = released

    def release(self) -> None:
        self._released.append(self._name)


class _Bench:
    def __init__(self) -> None:
        self.disk = _Disk()
        self.syncer = Syncer(self.disk)
        self.released: list[str] = []

    def hold(self, *names: str) -> None:
        for name in names:
            self.syncer.hold(_Response(name, self.released))

    def iterate(self) -> None:
        self.syncer.end_iteration(tuple)

    def iterate_until_started(self) -> None:
        while self.syncer.is_collecting:
            self.iterate()


def test_everything_held_in_one_iteration_shares_one_sync() -> None:
    bench = _Bench()
    bench.hold("a", "b", "c")
    bench.iterate_until_started()
    assert bench.released == []

    bench.syncer.finish(0.0)

    assert bench.released == ["a", "b", "c"]
    assert bench.disk.rounds == 1
    assert bench.syncer.is_idle


def test_what_is_held_while_a_sync_runs_waits_for_the_next_one() -> None:
    bench = _Bench()
    bench.hold("first")
    bench.iterate_until_started()
    bench.hold("second")
    bench.iterate()
    bench.syncer.finish(0.0)
    assert bench.released == ["first"]

    bench.iterate_until_started()
    bench.syncer.finish(0.0)

    assert bench.released == ["first", "second"]
    assert bench.disk.rounds == 2


def test_a_sync_waits_while_each_iteration_brings_more() -> None:
    bench = _Bench()

    for name in "abc":
        bench.hold(name)
        bench.iterate()
    assert bench.disk.rounds == 0
    bench.iterate()

    assert bench.disk.rounds == 1


def test_an_endless_stream_does_not_delay_the_first_response_forever() -> None:
    bench = _Bench()

    for number in range(10):
        bench.hold(str(number))
        bench.iterate()

    assert bench.disk.rounds == 1


def test_nothing_is_released_or_synced_after_a_failed_sync() -> None:
    bench = _Bench()
    bench.hold("lost")
    bench.iterate_until_started()
    bench.syncer.fail()

    bench.hold("later")
    for _ in range(10):
        bench.iterate()

    assert bench.released == []
    assert bench.disk.rounds == 1


def test_the_duration_of_a_sync_is_measured() -> None:
    bench = _Bench()
    bench.hold("a")
    bench.iterate_until_started()

    bench.syncer.finish(0.25)

    assert bench.syncer.seconds.total == 0.25
