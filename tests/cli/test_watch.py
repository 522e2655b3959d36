"""kohort groups watch: the screen fits, changes become lines, the terminal is restored."""

import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import closing
from fcntl import ioctl
from pathlib import Path

import pytest

import kohort
from kohort.admin.cluster_connection import open_cluster
from kohort.admin.group_monitor.monitor import now_ms, start_monitor
from kohort.admin.group_monitor.views import GroupView
from kohort.cli.groups.watch_view import (
    WatchState,
    describe_changes,
    format_partitions,
    format_trend,
    render_screen,
)
from kohort.types import GroupId
from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip
from tests.cli.cluster_setup import SETTINGS, join, partition_of, set_up, settle
from tests.cli.command_process import running
from tests.client.node_cluster import Cluster
from tests.tidy.repository import ROOT
from tests.wait import wait_until


@pytest.fixture(scope="module", params=["kohort", pytest.param("apache", marks=pytest.mark.full)])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster with the group `billing` of two members."""
    if request.param == "apache":
        try:
            kafka = Kafka(tmp_path_factory.mktemp("kafka"))
        except Unavailable as reason:
            skip(reason)
        with kafka, set_up(kafka.bootstrap_servers):
            yield Cluster(bootstrap_servers=kafka.bootstrap_servers)
        return
    with kohort.Node(settings=SETTINGS) as node, set_up(node.bootstrap_servers):
        yield Cluster(bootstrap_servers=node.bootstrap_servers)


# Rendering


def view_of(cluster: Cluster) -> GroupView:
    """Return the view of the group when it is complete."""
    found: list[GroupView] = []
    with open_cluster(cluster.bootstrap_servers) as admin, start_monitor(admin) as monitor:

        def is_known() -> bool:
            with monitor.locked_state() as state:
                view = state.find_group(GroupId("billing"), now_ms())
            if view is None or view.row.lag is None or len(view.members) != 2:
                return False
            found.append(view)
            return view.row.state == "Stable"

        wait_until(is_known, 60, "the view")
    return found[-1]


def state_of(view: GroupView | None, error: str = "") -> WatchState:
    return WatchState(
        group_id=GroupId("billing"),
        cluster="HOST:PORT",
        view=view,
        error=error,
        share_read=1.0,
        is_exact=True,
        now_ms=now_ms(),
    )


def screen(view: GroupView | None, width: int, height: int, error: str = "") -> list[str]:
    return [line.text for line in render_screen(state_of(view, error), width, height)]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 12), (40, 10), (200, 60), (20, 4)])
def test_screen_has_the_size_of_the_terminal(cluster: Cluster, width: int, height: int) -> None:
    lines = screen(view_of(cluster), width, height)

    assert len(lines) == height
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("billing  Stable")


def test_screen_shows_members_partitions_and_lag(cluster: Cluster) -> None:
    rows = [line.split() for line in screen(view_of(cluster), 120, 40)]

    summary = ["2", "members", "3", "partitions", "of", "1", "topic", "lag", "6"]
    assert summary in [each[:9] for each in rows]
    assert ["orders:0", "4", "1", "5", "behind"] in [each[:5] for each in rows]
    assert ["billing-1", "*", "127.0.0.1"] in [each[:3] for each in rows]
    assert ["rack-2", "127.0.0.1"] in [each[:2] for each in rows]


def test_trigger_is_shown_only_with_events(cluster: Cluster) -> None:
    view = view_of(cluster)
    text = "\n".join(screen(view, 120, 40))

    if view.rebalances and view.rebalances[-1].is_exact:
        assert "member-joined" in text
    else:
        assert "member-joined" not in text


def test_missing_group_has_its_own_screen() -> None:
    lines = screen(None, 80, 24)

    assert lines[:2] == ["billing", "the group does not exist yet"]
    assert lines[-1] == "q: quit  HOST:PORT"


def test_cluster_error_is_in_the_footer() -> None:
    assert screen(None, 80, 24, "connection lost")[-1] == "cluster not reachable: connection lost"


def test_first_state_is_described_and_then_only_changes(cluster: Cluster) -> None:
    view = view_of(cluster)

    first = [*describe_changes(None, view)]

    assert first[0].startswith("Stable")
    assert sorted(line.split(" owns ")[0] for line in first[1:]) == ["billing-1", "rack-2"]
    assert [*describe_changes(view, view)] == []


def test_consecutive_partitions_are_a_range() -> None:
    held = [partition_of("b", 1), *(partition_of("a", number) for number in (4, 0, 1, 2))]

    assert format_partitions(held) == "a:0-2,4 b:1"
    assert format_partitions([]) == "none"


def test_trend_is_empty_without_changes() -> None:
    assert format_trend([0, 5, 10]) == "▁▄█"
    assert format_trend([3, 3, None, 3]) == ""
    assert format_trend([]) == ""


# Command


def test_each_change_is_a_line_without_a_terminal(cluster: Cluster, tmp_path: Path) -> None:
    with running(cluster, "groups", "watch", "newcomers", at=tmp_path) as command:
        command.wait_for_error("group 'newcomers' does not exist yet")
        with join(cluster.bootstrap_servers, "new-1", group="newcomers") as member:
            settle(cluster.bootstrap_servers, member, group="newcomers")
            command.wait_for("new-1", "owns orders:0-2")
        command.wait_for("new-1 left")
        assert command.end(signal.SIGINT) == 0

        assert all("Z  " in line for line in command.stdout.splitlines())


def test_each_change_is_a_json_object(cluster: Cluster, tmp_path: Path) -> None:
    with running(cluster, "groups", "watch", "billing", "--json", at=tmp_path) as command:
        document = json.loads(command.wait_for("Stable"))
        assert command.end(signal.SIGTERM) == 0

    assert (document["group"], document["state"], len(document["members"])) == (
        "billing",
        "Stable",
        2,
    )
    assert sorted(tuple(held) for each in document["members"] for held in each["holds"]) == [
        ("orders", 0),
        ("orders", 1),
        ("orders", 2),
    ]


class Terminal:
    """A command on a pseudo terminal of 80 x 24."""

    def __init__(self, cluster: Cluster, *args: str) -> None:
        self._master, self._slave = pty.openpty()
        ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {"KOHORT_BOOTSTRAP": cluster.bootstrap_servers, "TERM": "xterm-256color"}
        self.seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kohort", *args],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
        )

    @property
    def settings(self) -> list[object]:
        """The modes of the terminal."""
        return termios.tcgetattr(self._master)[:4]

    def press(self, key: bytes) -> None:
        os.write(self._master, key)

    def wait_for(self, content: bytes) -> None:
        def is_seen() -> bool:
            while select.select([self._master], [], [], 0)[0]:
                self.seen += os.read(self._master, 65_536)
            return content in self.seen

        wait_until(is_seen, 60, f"{content!r}")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)


@pytest.mark.parametrize("ending", ["q", "signal"])
def test_terminal_is_restored_after_quit(cluster: Cluster, ending: str) -> None:
    with closing(Terminal(cluster, "groups", "watch", "billing")) as terminal:
        before = terminal.settings
        terminal.wait_for(b"rack-2")
        during = terminal.settings
        if ending == "q":
            terminal.press(b"q")
        else:
            terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for(b"\x1b[?1049l")
        assert terminal.process.wait(30) == 0

        assert b"\x1b[?1049h" in terminal.seen
        assert before == terminal.settings != during
