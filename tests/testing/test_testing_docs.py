"""The programs of README.md and docs/guide/testing.md, clock.md and testing-languages.md run.

Their tables name every setting, fault, helper and control operation.
"""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

import kohort
from kohort.node.config import SETTINGS, format_value
from kohort.node.control.operations import OPERATIONS
from kohort.testing.cluster_handle import ClusterHandle
from kohort.testing.faults import Faults
from kohort.testing.local_node import LocalNode
from kohort.testing.node_settings import TEST_DEFAULTS
from tests.testing.guide_programs import GUIDE, LANGUAGES, SCRIPTS, TESTS, blocks, write_tests
from tests.testing.wait_setup import consume
from tests.wait import wait_until

TIMEOUT_S = 300


def run(
    *command: str, directory: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    # The commands of this environment, such as kohort, come first.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": path, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


# Python


def test_the_tests_of_the_guide_pass(tmp_path: Path) -> None:
    write_tests(tmp_path)

    words = ("-p", "kohort.testing.pytest_plugin", "-p", "no:cacheprovider", "-W", "error")
    ended = run(
        sys.executable, "-m", "pytest", *words, f"--rootdir={tmp_path}", ".", directory=tmp_path
    )

    assert len(TESTS) >= 6
    assert f"{len(TESTS)} passed" in ended.stdout


@pytest.mark.parametrize("program", SCRIPTS, ids=range(len(SCRIPTS)))
def test_the_programs_of_the_guides_run(program: str, tmp_path: Path) -> None:
    ended = run(sys.executable, "-W", "error", "-c", program, directory=tmp_path)

    # The node may log, for example that the manual clock has closed an idle connection.
    assert "Traceback" not in ended.stderr


# Other languages


@contextmanager
def consumer_of_the_next_node(directory: Path) -> Iterator[None]:
    """A member of the group billing, on the node that a program in another language starts.

    The program keeps the node's ready file in a temporary directory, which is in `directory`.
    """
    stopping = threading.Event()

    def join() -> None:
        found = wait_until(lambda: find_ready_file(directory) or stopping.is_set(), TIMEOUT_S)
        if isinstance(found, Path):
            address = json.loads(found.read_text("utf-8"))["bootstrap_servers"]
            consume(address, "consumer", stopping)

    thread = threading.Thread(target=join)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def find_ready_file(directory: Path) -> Path | None:
    return next(iter(directory.rglob("ready.json")), None)


def run_language(tmp_path: Path, program: str, *command: str) -> str:
    """Run the page's program of this language, with a consumer for it to wait for."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed here")
    directory, source = tmp_path / "temporary", tmp_path / "source"
    directory.mkdir()
    source.mkdir()
    (block,) = blocks(LANGUAGES, program.rpartition(".")[2])
    (source / program).write_text(block, "utf-8")
    variables = {"TMPDIR": f"{directory}", "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={directory}"}
    with consumer_of_the_next_node(directory):
        return run(*command, directory=source, variables=variables).stdout


def test_the_go_test_waits_for_a_consumer(tmp_path: Path) -> None:
    output = run_language(tmp_path, "billing_test.go", "go", "test", "-v", "billing_test.go")

    assert "--- PASS: TestBillingReadsEverything" in output


def test_the_java_program_waits_for_a_consumer(tmp_path: Path) -> None:
    output = run_language(tmp_path, "KohortNode.java", "java", "KohortNode.java")

    assert "start your consumer with 127.0.0.1:" in output


def test_the_javascript_test_waits_for_a_consumer(tmp_path: Path) -> None:
    output = run_language(tmp_path, "billing.test.js", "node", "--test", "billing.test.js")

    assert "# pass 1" in output


def test_the_shell_commands_control_a_node(tmp_path: Path) -> None:
    start, control = blocks(GUIDE, "sh")
    script = (
        f"set -eu\n{start}\n"
        'CONTROL=$(sed \'s/.*"control_url": "\\([^"]*\\)".*/\\1/\' ready.json)\n'
        f"trap 'kill $!; wait' EXIT\n{control}"
    )

    with consumer_of_the_next_node(tmp_path):
        ended = run("bash", "-c", script, directory=tmp_path)

    lines = [each for each in ended.stdout.splitlines() if not each.startswith("kohort ")]
    addresses, waited, added, listed, described = lines
    assert json.loads(addresses).keys() == json.loads(blocks(GUIDE, "json")[0]).keys()
    assert json.loads(waited)["state"] == "Stable"
    assert [each["id"] for each in json.loads(listed)["faults"]] == [json.loads(added)["id"]]
    assert described.startswith("billing: Stable, ")


# Tables


def first_cells(page: str) -> set[str]:
    """What the first cells of tables say in code, without arguments."""
    cells = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w.-]+)", cell)}


def public_names(cls: type) -> set[str]:
    return {name for name in vars(cls) if not name.startswith("_")}


def test_the_table_of_defaults_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| (\S+) \| (\S+) \| [^|]+ \|$", GUIDE, re.MULTILINE)

    assert rows == [
        (name, given, format_value(SETTINGS[name].default)) for name, given in TEST_DEFAULTS.items()
    ]


def test_every_fault_is_in_the_guide() -> None:
    assert public_names(Faults) - first_cells(GUIDE) == {"list", "clear", "discard_added"}


def test_every_helper_is_in_the_guide() -> None:
    methods = public_names(ClusterHandle) | public_names(LocalNode)

    undocumented = {name for name in methods if not re.search(rf"`[^`\n]*\b{name}\b", GUIDE)}

    assert undocumented == {"disconnect", "all_rebalances", "event_position"}


def test_every_control_operation_is_in_the_guide() -> None:
    assert OPERATIONS.keys() <= first_cells(GUIDE)


def test_every_argument_of_a_node_is_in_the_guide() -> None:
    arguments = inspect.signature(kohort.Node).parameters

    assert arguments.keys() <= first_cells(GUIDE)
