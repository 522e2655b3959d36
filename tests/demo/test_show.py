"""The whole demo without Spark, in this process: what it tells, and that nothing is left of it."""

import os
import socket
import threading
from pathlib import Path
from urllib.request import urlopen

import pytest

from kohort.demo.cast import PARTITIONS, PROGRAMS
from kohort.demo.console import bind_console
from kohort.demo.news import (
    Acted,
    Died,
    Ending,
    News,
    Opened,
    Rebalanced,
    Summary,
)
from kohort.demo.parts import start_part
from kohort.demo.schedule import MINUTES_MIN, perform
from kohort.demo.show import Stop, play
from kohort.demo.stage import DemoWish
from tests.waiting import wait_until

SEED = 3


def children() -> set[int]:
    """The processes that this one has started and not yet waited for."""
    own = os.getpid()
    tasks = Path(f"/proc/{own}/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


def is_listening(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), 1):
            return True
    except OSError:
        return False


def split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.removeprefix("http://"), int(port)


class Run:
    """One demo, watched from beginning to end."""

    def __init__(self, directory: Path) -> None:
        self.before = children(), set(threading.enumerate())
        self.told: list[News] = []
        self.page = b""
        wish = DemoWish(seed=SEED, minutes=MINUTES_MIN, directory=directory, has_spark=False)
        for told in play(wish, bind_console("127.0.0.1:0", directory), Stop()):
            self.told.append(told.news)
            if isinstance(told.news, Rebalanced) and not self.page:
                with urlopen(f"{self.opened.console}/groups/checkout.json") as answer:  # noqa: S310
                    self.page = answer.read()

    @property
    def opened(self) -> Opened:
        (opened,) = (news for news in self.told if isinstance(news, Opened))
        return opened

    @property
    def summary(self) -> Summary:
        summary = self.told[-1]
        assert isinstance(summary, Summary)
        return summary


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("demo"))


def test_it_opens_follows_its_schedule_ends_and_sums_up(run: Run) -> None:
    acts = [news.act for news in run.told if isinstance(news, Acted)]
    ends = [news.why for news in run.told if isinstance(news, Ending)]

    assert isinstance(run.told[0], Opened)
    assert acts == list(perform(SEED, MINUTES_MIN))
    assert ends == ["the time is over"]
    assert not [news for news in run.told if isinstance(news, Died)]


def test_all_programs_find_their_groups(run: Run) -> None:
    rebalances = [news for news in run.told if isinstance(news, Rebalanced)]

    sizes = dict.fromkeys(("checkout", "billing"), 0)
    for news in rebalances:
        sizes[news.group_id] = max(sizes[news.group_id], news.members)

    assert sum(sizes.values()) == len(PROGRAMS)
    assert all(news.trigger for news in rebalances)


def test_every_order_that_was_placed_is_read_by_both_services(run: Run) -> None:
    summary = run.summary

    assert summary.produced > 0
    assert summary.lag == {"checkout": 0, "billing": 0}
    assert all(count >= summary.produced for count in summary.consumed.values())
    assert summary.ingested is None


def test_the_console_shows_it_while_it_happens(run: Run) -> None:
    assert b"checkout" in run.page


def test_what_stays_is_told(run: Run) -> None:
    places = {place.what: Path(place.path) for place in run.summary.places}

    assert set(places) == {"node's data", "journals"}
    assert (places["node's data"] / f"orders-{PARTITIONS - 1}").is_dir()
    assert {each.stem for each in places["journals"].iterdir()} == {"kohort", *PROGRAMS}


def test_nothing_is_left_behind(run: Run) -> None:
    processes, threads = run.before

    wait_until(lambda: set(threading.enumerate()) <= threads, what="all threads to end")

    assert children() == processes
    assert not is_listening(*split(run.opened.console))
    assert not is_listening(*split(run.opened.bootstrap_servers))


def test_a_part_that_dies_is_told_of_with_its_reason() -> None:
    heard: list[tuple[str, str]] = []

    def fail() -> None:
        raise ValueError("it broke\nin many pieces")

    start_part("toy", fail, lambda part, why: heard.append((part, why))).join()

    assert heard == [("toy", "it broke")]
