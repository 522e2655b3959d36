"""A node in a program that forks."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PRELUDE = """
import os, sys
import kohort
from tests.testing.node_client import connect, produce, read

def is_cut(connected):
    try:
        return connected.recv(1) == b""
    except ConnectionResetError:
        return True

def run_in_child(play):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            play()
            sys.stdout.flush()
            code = 0
        finally:
            os._exit(code)
    return child
"""


def run(program: str, kind: str) -> str:
    """Return what the program prints. `make` in it makes a node."""
    make = {"thread": "kohort.Node", "process": "kohort.Node.process"}[kind]
    text = PRELUDE + f"make = {make}\n" + textwrap.dedent(program)
    ran = subprocess.run(
        # Python 3.12 warns of a fork beside threads, which is what these tests are about.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", text],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


pytestmark = pytest.mark.parametrize("kind", ["thread", "process"])


def test_methods_of_the_node_raise_an_error_in_a_forked_child(kind: str) -> None:
    program = """
        with make() as node:
            def play():
                for call in (node.start, node.stop, node.restart, node.kill, node.reset):
                    try:
                        call()
                    except RuntimeError as error:
                        print(call.__name__, "forked child" in str(error))
                node.close()
                produce(node.bootstrap_servers, "orders", "from the child")
            _, status = os.waitpid(run_in_child(play), 0)
            print(status, read(node.bootstrap_servers, "orders"))
        """

    assert run(program, kind).splitlines() == [
        "start True",
        "stop True",
        "restart True",
        "kill True",
        "reset True",
        "0 ['from the child']",
    ]


def test_child_that_exits_does_not_remove_the_data_of_its_parent(kind: str) -> None:
    program = """
        with make() as node:
            produce(node.bootstrap_servers, "orders", "a")
            child = os.fork()
            if child == 0:
                sys.exit(0)
            _, status = os.waitpid(child, 0)
            node.restart()
            print(status, read(node.bootstrap_servers, "orders"))
        """

    assert run(program, kind).splitlines() == ["0 ['a']"]


def test_node_restarts_and_cuts_its_connections_although_a_child_lives(kind: str) -> None:
    program = """
        with make(control="127.0.0.1:0", metrics="127.0.0.1:0") as node:
            produce(node.bootstrap_servers, "orders", "a")
            client = connect(node.bootstrap_servers)
            reading, writing = os.pipe()
            def play():
                os.close(writing)
                os.read(reading, 1)
            child = run_in_child(play)
            for end in (node.stop, node.kill):
                end()
                print(is_cut(client.socket))
                node.start()
                client = connect(node.bootstrap_servers)
            print(read(node.bootstrap_servers, "orders"))
            os.close(writing)
            os.waitpid(child, 0)
        """

    assert run(program, kind).splitlines() == ["True", "True", "['a']"]


def test_node_runs_in_the_child_that_has_started_it(kind: str) -> None:
    program = """
        node = make()
        def play():
            with node:
                produce(node.bootstrap_servers, "orders", "a")
                print(read(node.bootstrap_servers, "orders"))
        _, status = os.waitpid(run_in_child(play), 0)
        print(status)
        """

    assert run(program, kind).splitlines() == ["['a']", "0"]


def test_temporary_data_is_removed_at_the_end_of_the_program(kind: str, tmp_path: Path) -> None:
    program = f"""
        import tempfile
        tempfile.tempdir = {str(tmp_path)!r}
        node = make().start()
        produce(node.bootstrap_servers, "orders", "a")
        print(len(os.listdir(tempfile.tempdir)) > 0)
        """

    assert run(program, kind) == "True\n"
    assert list(tmp_path.iterdir()) == []
