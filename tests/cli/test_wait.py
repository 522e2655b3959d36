"""kohort wait: conditions, output and exit codes, by polling and through a control port."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kohort.cli.app import app
from kohort.node.broker_thread import BrokerThread
from kohort.node.control.errors import ControlError
from tests.cli.cluster_setup import commit, write
from tests.testing.wait_setup import WaitNode, consumers


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WaitNode]:
    """Its group has one member, and has consumed a record."""
    started = WaitNode(tmp_path_factory.mktemp("node"))
    write(started.bootstrap_servers, {("orders", 0): 1})
    commit(started.bootstrap_servers, "shipping", {("orders", 0): 0})
    with consumers(started.bootstrap_servers, "a"):
        yield started
    started.stop()


@contextmanager
def control_port(broker: BrokerThread) -> Iterator[str]:
    """The control operations of a broker over HTTP; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                status, answer = 200, dict(broker.request(self.path.strip("/"), body))
            except ControlError as error:
                status, answer = 400, {"error": str(error), **error.details}
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(params=["bootstrap", "control"])
def environment(request: pytest.FixtureRequest, node: WaitNode) -> Iterator[dict[str, str]]:
    if request.param == "bootstrap":
        yield {"KOHORT_BOOTSTRAP": node.bootstrap_servers}
    else:
        with control_port(node.broker) as url:
            yield {"KOHORT_CONTROL": url}


def wait(environment: dict[str, str], *words: str) -> Result:
    return CliRunner().invoke(app, ["wait", *words], env=environment)


def test_condition_that_holds_exits_with_0(environment: dict[str, str]) -> None:
    words = ("billing", "--members", "1", "--stable", "--lag", "0", "--assigned", "4")

    ended = wait(environment, *words, "--topic", "orders", "--timeout", "30s")

    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout.startswith("billing: Stable, ")
    assert ended.stdout.endswith("1 member, 4 partitions assigned, lag 0\n")


def test_json_describes_the_group(environment: dict[str, str]) -> None:
    ended = wait(environment, "billing", "--stable", "--lag", "0", "--timeout", "30", "--json")

    found = json.loads(ended.stdout)
    assert (found["group"], found["state"], found["lag"]) == ("billing", "Stable", 0)
    assert found["members"][0]["assignment"] == {"orders": [0, 1, 2, 3]}
    assert found["partitions"][0]["committed"] == 1


def test_timeout_exits_with_3_and_says_what_is_missing(environment: dict[str, str]) -> None:
    ended = wait(environment, "shipping", "--lag", "0", "--state", "Stable", "--timeout", "10ms")

    assert (ended.exit_code, ended.stdout) == (3, "")
    assert ended.stderr.startswith("kohort: not within 10 ms: state is Empty")
    assert ended.stderr.endswith("lag is 1, at most 0 was expected: orders-0 1\n")


def test_rebalance_shows_generation_and_cause(environment: dict[str, str]) -> None:
    words = ("billing", "--rebalance", "--after", "0", "--timeout", "30s")

    text, as_json = wait(environment, *words), wait(environment, *words, "--json")

    assert text.stdout.startswith("billing: generation 1, took ")
    assert text.stdout.endswith(", a joined\n")
    assert json.loads(as_json.stdout)["trigger"] == "member-joined"


def test_commit_shows_its_offset(environment: dict[str, str]) -> None:
    words = ("billing", "--commit", "orders:0:1", "--timeout", "30s")

    text, as_json = wait(environment, *words), wait(environment, *words, "--json")

    assert text.stdout == "billing: orders:0 committed offset 1\n"
    assert json.loads(as_json.stdout)["commits"][0]["offset"] == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--rebalance", "--lag", "0"], "--rebalance and --commit exclude each other"),
        (["--after", "1"], "--after needs --rebalance"),
        (["--topic", "orders"], "--topic needs --lag"),
        (["--commit", "orders:0"], "--commit 'orders:0' is not TOPIC:PARTITION:OFFSET"),
        (["--timeout", "soon"], "--timeout: 'soon' is no duration"),
        (["--control", "here"], "--control: 'here' is not"),
        (["--state", "Happy"], "state='Happy' is invalid"),
        (["--timeout", "2h"], "timeout=7200.0 is invalid: not between 0 and 3600.0"),
    ],
)
def test_invalid_command_line_exits_with_2(node: WaitNode, words: list[str], reason: str) -> None:
    environment = {"KOHORT_BOOTSTRAP": node.bootstrap_servers, "TERMINAL_WIDTH": "300"}

    ended = wait(environment, "billing", *words)

    assert ended.exit_code == 2
    assert reason in ended.stderr


def test_cluster_must_be_named() -> None:
    ended = wait({"TERMINAL_WIDTH": "300"}, "billing")

    assert ended.exit_code == 2
    assert "name a cluster with --bootstrap" in ended.stderr


def test_cluster_on_the_command_line_has_priority(node: WaitNode) -> None:
    unreachable = {"KOHORT_CONTROL": "http://127.0.0.1:1"}

    ended = wait(unreachable, "shipping", "--bootstrap", node.bootstrap_servers)

    assert ended.exit_code == 0


def test_unreachable_control_port_exits_with_1() -> None:
    ended = wait({"KOHORT_CONTROL": "http://127.0.0.1:1"}, "billing")

    assert ended.exit_code == 1
    assert "127.0.0.1:1" in ended.stderr
