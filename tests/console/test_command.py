"""kohort console and kohort serve --console as processes: how they start, refuse and end."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.client.clusters import Cluster
from tests.console.visiting import Visitor
from tests.waiting import wait_until

STARTS_S = 60.0


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kohort", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kohort", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=STARTS_S, check=False)


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """What the pattern's group matches in the first line of its output that has it."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(f"it ended and never said {pattern!r}: {process.communicate()}")


def test_it_serves_until_it_is_told_to_stop(node: Cluster) -> None:
    with running(
        "console", "--bootstrap", node.bootstrap_servers, "--listen", "127.0.0.1:0"
    ) as process:
        url = read_until(process, r"kohort console ready on (http://\S+)")
        visitor = Visitor(url)
        answer = visitor.get("/overview")
        with visitor.feed("/overview") as feed:
            next(feed)

            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=STARTS_S)

    assert answer.status == 200
    assert process.returncode == 0
    assert errors == ""


def test_a_node_serves_its_console_beside_it(tmp_path: Path) -> None:
    with running(
        *("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path)),
        *("--console", "127.0.0.1:0"),
    ) as process:
        address = read_until(process, r"kohort ready on (\S+)")
        visitor = Visitor(read_until(process, r"kohort console ready on (http://\S+)"))
        told = visitor.json("/overview")

        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=STARTS_S)

    assert told["cluster"] == address
    assert process.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize("verb", ["console", "serve"])
def test_a_busy_port_is_told_in_one_sentence(node: Cluster, verb: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = (
            run("console", "--bootstrap", node.bootstrap_servers, "--listen", where)
            if verb == "console"
            else run("serve", "--data", str(tmp_path), "--console", where)
        )

    assert ended.returncode == 1
    assert f"cannot listen on {where}: Address already in use" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_cluster_that_is_not_there_is_told_in_one_sentence() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{unused.getsockname()[1]}"
        ended = run("console", "--bootstrap", where, "--listen", "127.0.0.1:0")

    assert ended.returncode == 1
    assert ended.stderr == f"kohort: no broker can be reached: {where}: Connection refused\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["console", "--listen", "nonsense"],
        ["console", "--listen", "127.0.0.1:99999"],
        ["console", "--bootstrap", "nonsense"],
        ["console", "--forensics", "/no/such/directory"],
        ["console", "--command-config", "/no/such/file"],
        ["serve", "--console", "nonsense"],
    ],
)
def test_a_wrong_option_is_told_and_nothing_starts(arguments: list[str]) -> None:
    ended = run(*arguments)

    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_a_console_outlives_its_cluster_and_finds_it_again(tmp_path: Path) -> None:
    with running("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path)) as first:
        address = read_until(first, r"kohort ready on (\S+)")
        with running("console", "--bootstrap", address, "--listen", "127.0.0.1:0") as process:
            visitor = Visitor(read_until(process, r"ready on (http://\S+)"))
            first.kill()
            first.wait()

            visitor.wait_json("/overview", lambda told: not told["health"]["is_reachable"])
            page = visitor.get("/overview")
            asked = visitor.get("/topics")
            with running("serve", "--listen", address, "--data", str(tmp_path)) as second:
                read_until(second, r"kohort ready on (\S+)")

                visitor.wait_json("/overview", lambda told: told["health"]["is_reachable"])
                wait_until(lambda: visitor.get("/topics").status == 200, STARTS_S, "topics")

    assert "The cluster does not answer" in page.text
    assert asked.status == 503
