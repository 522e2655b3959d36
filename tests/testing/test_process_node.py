"""`kohort.Node.process`: what concerns the process alone."""

import subprocess
import sys
from pathlib import Path

import kohort
from kohort.cli.serve_args import parse_serve_args
from tests.testing.node_client import connect, list_topics
from tests.wait import wait_until

START = """
import sys
import kohort

node = kohort.Node.process().start()
print(node.pid, node.bootstrap_servers, flush=True)
sys.stdin.read()
"""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_node_ends_when_its_parent_process_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid, servers = parent.stdout.readline().split()
        assert list_topics(servers) == ["__consumer_offsets"]
        parent.kill()

    wait_until(lambda: not is_running(int(pid)), 30, "the node has ended")


def test_node_is_a_process_of_its_own() -> None:
    with kohort.Node.process() as node:
        first = node.pid
        assert is_running(first)
        node.restart()
        assert not is_running(first)
        assert is_running(node.pid)
        last = node.pid

    assert not is_running(last)


def test_advertised_address_and_allowed_hosts_reach_the_process() -> None:
    with kohort.Node.process(
        advertise="node.example:19092", allowed_hosts=["pages.example"]
    ) as node:
        host, _, port = node.control_url.removeprefix("http://").rpartition(":")
        with connect(f"{host}:{port}") as client:
            client.socket.sendall(b"GET /status HTTP/1.1\r\nHost: pages.example\r\n\r\n")
            answer = client.socket.makefile("rb").read()

        assert b'"bootstrap_servers": "node.example:19092"' in answer


def test_process_is_started_without_typer_which_is_in_an_extra() -> None:
    with kohort.Node.process(
        settings={"log.retention.ms": -1, "advertised.listeners": ""},
        metrics="127.0.0.1:0",
        allowed_hosts=["pages.example"],
    ) as node:
        words = Path(f"/proc/{node.pid}/cmdline").read_text("utf-8").rstrip("\0").split("\0")

    assert words[2:5] == ["-m", "kohort", "serve"]
    assert parse_serve_args(words[5:]) is not None
