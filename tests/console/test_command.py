"""kohort console and kohort serve --console as processes: start, errors and stop."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.client.node_cluster import Cluster
from tests.console.http_client import HttpClient
from tests.wait import wait_until

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
    """The pattern's group in the first output line that matches."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(f"the process ended without output {pattern!r}: {process.communicate()}")


def test_it_serves_until_sigterm(node: Cluster) -> None:
    with running(
        "console", "--bootstrap", node.bootstrap_servers, "--listen", "127.0.0.1:0"
    ) as process:
        url = read_until(process, r"kohort console ready on (http://\S+)")
        client = HttpClient(url)
        response = client.get("/overview")
        with client.feed("/overview") as feed:
            next(feed)

            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=STARTS_S)

    assert response.status == 200
    assert process.returncode == 0
    assert errors == ""


def test_serve_runs_the_console_in_the_node_process(tmp_path: Path) -> None:
    with running(
        *("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path)),
        *("--console", "127.0.0.1:0"),
    ) as process:
        address = read_until(process, r"kohort ready on (\S+)")
        client = HttpClient(read_until(process, r"kohort console ready on (http://\S+)"))
        data = client.json("/overview")

        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=STARTS_S)

    assert data["cluster"] == address
    assert process.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize("verb", ["console", "serve"])
def test_a_port_in_use_is_reported(node: Cluster, verb: str, tmp_path: Path) -> None:
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


def test_an_unreachable_cluster_is_reported() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{unused.getsockname()[1]}"
        ended = run("console", "--bootstrap", where, "--listen", "127.0.0.1:0")

    assert ended.returncode == 1
    assert ended.stderr == f"kohort: no broker answered at {where} (Connection refused)\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["console", "--listen", "nonsense"],
        ["console", "--listen", "127.0.0.1:99999"],
        ["console", "--bootstrap", "nonsense", "--listen", "127.0.0.1:0"],
        ["console", "--forensics", "/no/such/directory"],
        ["console", "--command-config", "/no/such/file"],
        ["serve", "--console", "nonsense"],
    ],
)
def test_an_invalid_option_is_reported(arguments: list[str]) -> None:
    ended = run(*arguments)

    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_a_console_survives_a_restart_of_the_cluster(tmp_path: Path) -> None:
    with running("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path)) as first:
        address = read_until(first, r"kohort ready on (\S+)")
        with running("console", "--bootstrap", address, "--listen", "127.0.0.1:0") as process:
            client = HttpClient(read_until(process, r"ready on (http://\S+)"))
            first.kill()
            first.wait()

            client.wait_json("/overview", lambda data: not data["health"]["is_reachable"])
            page = client.get("/overview")
            topics = client.get("/topics")
            with running("serve", "--listen", address, "--data", str(tmp_path)) as second:
                read_until(second, r"kohort ready on (\S+)")

                client.wait_json("/overview", lambda data: data["health"]["is_reachable"])
                wait_until(lambda: client.get("/topics").status == 200, STARTS_S, "topics")

    assert "Cluster unreachable" in page.text
    assert topics.status == 503
