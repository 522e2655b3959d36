"""kohort groups watch: a screen that fits, lines that tell changes, a terminal left as it was."""

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
from kohort.admin.cluster import open_cluster
from kohort.admin.picture.following import follow, now_ms
from kohort.admin.picture.values import GroupView
from kohort.cli.watch_view import Scene, draw, names, span, tell_changes, trend
from kohort.types import GroupId, Millis
from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip
from tests.cli.scenes import SETTINGS, join, place, set_up, settle
from tests.cli.streams import running
from tests.client.clusters import Cluster
from tests.tidy.repository import ROOT
from tests.waiting import wait_until


@pytest.fixture(scope="module", params=["kohort", "apache"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """With the group `billing`, of two members."""
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


# What is drawn


def view_of(cluster: Cluster) -> GroupView:
    """The group as it is, once all is known about it."""
    found: list[GroupView] = []
    with open_cluster(cluster.bootstrap_servers) as asked, follow(asked) as following:

        def is_known() -> bool:
            with following.look() as picture:
                view = picture.find_group(GroupId("billing"), now_ms())
            if view is None or view.row.lag is None or len(view.members) != 2:
                return False
            found.append(view)
            return view.row.state == "Stable"

        wait_until(is_known, 60, "the picture")
    return found[-1]


def scene_of(view: GroupView | None, trouble: str = "") -> Scene:
    return Scene(
        group_id=GroupId("billing"),
        where="HOST:PORT",
        view=view,
        trouble=trouble,
        share_read=1.0,
        is_exact=True,
        now_ms=now_ms(),
    )


def screen(view: GroupView | None, width: int, height: int, trouble: str = "") -> list[str]:
    return [line.text for line in draw(scene_of(view, trouble), width, height)]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 12), (40, 10), (200, 60), (20, 4)])
def test_a_screen_is_exactly_as_large_as_the_terminal(
    cluster: Cluster, width: int, height: int
) -> None:
    lines = screen(view_of(cluster), width, height)

    assert len(lines) == height
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("billing  Stable")


def test_a_screen_says_who_holds_what_and_how_far_behind_they_are(cluster: Cluster) -> None:
    words = [line.split() for line in screen(view_of(cluster), 120, 40)]

    figures = ["2", "members", "3", "partitions", "of", "1", "topic", "lag", "6"]
    assert figures in [each[:9] for each in words]
    assert ["orders:0", "4", "1", "5", "behind"] in [each[:5] for each in words]
    assert ["billing-1", "*", "127.0.0.1"] in [each[:3] for each in words]
    assert ["rack-2", "127.0.0.1"] in [each[:2] for each in words]


def test_a_kohort_knows_why_and_a_stock_kafka_says_that_it_does_not(cluster: Cluster) -> None:
    view = view_of(cluster)
    text = "\n".join(screen(view, 120, 40))

    if view.rebalances and view.rebalances[-1].is_exact:
        assert "member-joined" in text
    else:
        assert "member-joined" not in text


def test_a_group_that_is_not_there_is_waited_for() -> None:
    lines = screen(None, 80, 24)

    assert lines[:2] == ["billing", "there is no such group yet"]
    assert lines[-1] == "q ends  HOST:PORT"


def test_trouble_with_the_cluster_is_said_below() -> None:
    assert screen(None, 80, 24, "it hung up")[-1] == "the cluster does not answer: it hung up"


def test_the_first_look_tells_all_and_the_next_only_what_changed(cluster: Cluster) -> None:
    view = view_of(cluster)

    first = [*tell_changes(None, view)]

    assert first[0].startswith("Stable")
    assert sorted(line.split(" holds ")[0] for line in first[1:]) == ["billing-1", "rack-2"]
    assert [*tell_changes(view, view)] == []


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_500, "1.5 s"),
        (59_000, "59 s"),
        (61_000, "1m 1s"),
        (3_700_000, "1h 1m"),
        (90_000_000, "1d 1h"),
        (-5, "0 ms"),
    ],
)
def test_times_are_shown_in_two_units_at_most(ms: int, shown: str) -> None:
    assert span(Millis(ms)) == shown


def test_partitions_in_a_row_are_shown_as_one() -> None:
    held = [place("b", 1), *(place("a", number) for number in (4, 0, 1, 2))]

    assert names(held) == "a:0-2,4 b:1"
    assert names([]) == "nothing"


def test_a_trend_is_drawn_where_there_is_one() -> None:
    assert trend([0, 5, 10]) == "▁▄█"
    assert trend([3, 3, None, 3]) == ""
    assert trend([]) == ""


# As a command


def test_without_a_terminal_each_change_is_a_line(cluster: Cluster, tmp_path: Path) -> None:
    with running(cluster, "groups", "watch", "newcomers", at=tmp_path) as command:
        command.wait_for_error("there is no group 'newcomers' yet")
        with join(cluster.bootstrap_servers, "new-1", group="newcomers") as member:
            settle(cluster.bootstrap_servers, member, group="newcomers")
            command.wait_for("new-1", "holds orders:0-2")
        command.wait_for("new-1 is out")
        assert command.end(signal.SIGINT) == 0

        assert all("Z  " in line for line in command.written.splitlines())


def test_machines_get_a_json_object_for_each_change(cluster: Cluster, tmp_path: Path) -> None:
    with running(cluster, "groups", "watch", "billing", "--json", at=tmp_path) as command:
        told = json.loads(command.wait_for("Stable"))
        assert command.end(signal.SIGTERM) == 0

    assert (told["group"], told["state"], len(told["members"])) == ("billing", "Stable", 2)
    assert sorted(tuple(held) for each in told["members"] for held in each["holds"]) == [
        ("orders", 0),
        ("orders", 1),
        ("orders", 2),
    ]


class Terminal:
    """A command on a terminal of 80 by 24, and our end of it."""

    def __init__(self, cluster: Cluster, *words: str) -> None:
        self._ours, self._theirs = pty.openpty()
        ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        where = {"KOHORT_BOOTSTRAP": cluster.bootstrap_servers, "TERM": "xterm-256color"}
        self.seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kohort", *words],
            cwd=ROOT,
            env={**os.environ, **where},
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
        )

    @property
    def settings(self) -> list[object]:
        """How it treats keys."""
        return termios.tcgetattr(self._ours)[:4]

    def press(self, key: bytes) -> None:
        os.write(self._ours, key)

    def wait_for(self, content: bytes) -> None:
        def is_seen() -> bool:
            while select.select([self._ours], [], [], 0)[0]:
                self.seen += os.read(self._ours, 65_536)
            return content in self.seen

        wait_until(is_seen, 60, f"{content!r}")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)


@pytest.mark.parametrize("ending", ["q", "signal"])
def test_on_a_terminal_it_ends_at_a_key_and_leaves_all_as_it_was(
    cluster: Cluster, ending: str
) -> None:
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
