"""A complete demo without Spark in this process: its events, and that it leaves nothing running."""

import os
import socket
import threading
from pathlib import Path
from urllib.request import urlopen

import pytest

from kohort.demo.console_port import bind_console
from kohort.demo.demo_events import (
    ActionTaken,
    DemoEvent,
    DemoStarted,
    DemoStopping,
    DemoSummary,
    GroupRebalanced,
    PartFailed,
)
from kohort.demo.runner import StopSignals, run_demo
from kohort.demo.schedule import MINUTES_MIN, generate_schedule
from kohort.demo.services import CONSUMERS, PARTITIONS
from kohort.demo.setup import DemoOptions
from kohort.demo.threads import start_thread
from tests.wait import wait_until

SEED = 3


def child_pids() -> set[int]:
    own = os.getpid()
    tasks = Path(f"/proc/{own}/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


def is_listening(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), 1):
            return True
    except OSError:
        return False


def split_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.removeprefix("http://"), int(port)


class CompletedDemo:
    """The events of a demo that ran to its end."""

    def __init__(self, directory: Path) -> None:
        self.pids_before, self.threads_before = child_pids(), set(threading.enumerate())
        self.events: list[DemoEvent] = []
        self.page = b""
        options = DemoOptions(seed=SEED, minutes=MINUTES_MIN, directory=directory, has_spark=False)
        console = bind_console("127.0.0.1:0", directory)
        for each in run_demo(options, console, StopSignals()):
            self.events.append(each.event)
            if isinstance(each.event, GroupRebalanced) and not self.page:
                url = f"{self.started.console_url}/groups/checkout.json"
                with urlopen(url) as response:  # noqa: S310
                    self.page = response.read()

    @property
    def started(self) -> DemoStarted:
        (started,) = (event for event in self.events if isinstance(event, DemoStarted))
        return started

    @property
    def summary(self) -> DemoSummary:
        summary = self.events[-1]
        assert isinstance(summary, DemoSummary)
        return summary


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> CompletedDemo:
    return CompletedDemo(tmp_path_factory.mktemp("demo"))


def test_demo_follows_its_schedule_and_stops(demo: CompletedDemo) -> None:
    actions = [event.action for event in demo.events if isinstance(event, ActionTaken)]
    reasons = [event.why for event in demo.events if isinstance(event, DemoStopping)]

    assert isinstance(demo.events[0], DemoStarted)
    assert actions == list(generate_schedule(SEED, MINUTES_MIN))
    assert reasons == ["the time is over"]
    assert not [event for event in demo.events if isinstance(event, PartFailed)]


def test_all_consumers_join_their_groups(demo: CompletedDemo) -> None:
    rebalances = [event for event in demo.events if isinstance(event, GroupRebalanced)]

    sizes = dict.fromkeys(("checkout", "billing"), 0)
    for event in rebalances:
        sizes[event.group_id] = max(sizes[event.group_id], event.members)

    assert sum(sizes.values()) == len(CONSUMERS)
    assert all(event.trigger for event in rebalances)


def test_both_services_consume_every_order(demo: CompletedDemo) -> None:
    summary = demo.summary

    assert summary.produced > 0
    assert summary.lag == {"checkout": 0, "billing": 0}
    assert all(count >= summary.produced for count in summary.consumed.values())
    assert summary.ingested is None


def test_console_shows_groups_during_the_demo(demo: CompletedDemo) -> None:
    assert b"checkout" in demo.page


def test_summary_lists_the_remaining_paths(demo: CompletedDemo) -> None:
    paths = {each.what: Path(each.path) for each in demo.summary.paths}

    assert set(paths) == {"node's data", "logs"}
    assert (paths["node's data"] / f"orders-{PARTITIONS - 1}").is_dir()
    assert {each.stem for each in paths["logs"].iterdir()} == {"kohort", *CONSUMERS}


def test_no_process_thread_or_port_remains(demo: CompletedDemo) -> None:
    wait_until(lambda: set(threading.enumerate()) <= demo.threads_before, what="all threads to end")

    assert child_pids() == demo.pids_before
    assert not is_listening(*split_address(demo.started.console_url))
    assert not is_listening(*split_address(demo.started.bootstrap_servers))


def test_failed_thread_is_reported_with_first_line_of_its_error() -> None:
    failures: list[tuple[str, str]] = []

    def fail() -> None:
        raise ValueError("first line\nsecond line")

    start_thread("part", fail, lambda part, why: failures.append((part, why))).join()

    assert failures == [("part", "first line")]
