"""The parser of kohort serve without Typer agrees with Typer, or leaves the arguments to it."""

import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kohort.cli import serve
from kohort.cli.app import app
from kohort.cli.serve_args import ServeOptions, parse_serve_args
from tests.node.served_node import command

TYPER_ONLY = {"--console", "--settings"}
"""Options that the parser leaves to Typer."""


def parse_with_typer(args: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments that Typer passes to kohort serve; None for a usage error."""
    calls: list[dict[str, Any]] = []

    @functools.wraps(serve.run)
    def record(**options: Any) -> None:
        calls.append(options)

    recorder = typer.Typer()
    recorder.command()(record)
    CliRunner().invoke(recorder, list(args))
    return calls[0] if calls else None


def as_arguments(options: ServeOptions) -> dict[str, Any]:
    return {
        "listen": options.listen,
        "data": options.data,
        "set_": list(options.set) or None,
        "config": options.config,
        "metrics": options.metrics,
        "control": options.control,
        "ready_file": options.ready_file,
        "stop_at_eof": options.stop_at_eof,
        "advertise": options.advertise,
        "allowed_host": list(options.allowed_host) or None,
        "console": "",
        "settings": False,
    }


def options_of_serve() -> set[str]:
    commands: Any = typer.main.get_command(app)
    return {name for option in commands.load_commands()["serve"].params for name in option.opts}


def command_lines(names: list[str], texts: list[str]) -> st.SearchStrategy[list[str]]:
    """Options with = or a space before the value, and sometimes an option or value alone."""
    option, text = st.sampled_from(names), st.sampled_from(texts)
    usual = st.tuples(option, text) | st.tuples(st.builds("{}={}".format, option, text))
    return st.lists(usual | usual | usual | st.tuples(option) | st.tuples(text), max_size=5).map(
        lambda groups: [arg for group in groups for arg in group]
    )


SUPPORTED = sorted(options_of_serve() - TYPER_ONLY)
UNSUPPORTED = [*sorted(TYPER_ONLY), "--help", "--nonsense", "--liste", "-l", "--", ""]
TEXTS = ["127.0.0.1:0", "a=b", "a=", "=b", "x y", "\u00e4/\udcff"]


@given(
    args=command_lines(SUPPORTED, TEXTS)
    | command_lines(SUPPORTED + UNSUPPORTED, [*TEXTS, "", "-", "-1"])
)
def test_accepted_arguments_are_parsed_like_typer(args: list[str]) -> None:
    options = parse_serve_args(args)

    if options is not None:
        assert as_arguments(options) == parse_with_typer(args)


@pytest.mark.parametrize("option", SUPPORTED)
@pytest.mark.parametrize("form", ["{} a=b", "{}=a=b"])
def test_every_option_of_the_node_is_accepted(option: str, form: str) -> None:
    args = form.format(option).split()

    options = parse_serve_args(args)

    assert options is not None
    assert options != ServeOptions()
    assert as_arguments(options) == parse_with_typer(args)


def test_no_arguments_give_the_defaults() -> None:
    assert parse_serve_args([]) == ServeOptions()
    assert as_arguments(ServeOptions()) == parse_with_typer([])


def test_repeated_options_keep_their_order_and_others_take_the_last_value() -> None:
    options = parse_serve_args(
        [
            *("--set", "a=1", "--listen=x:1", "--set=b=2", "--listen", "y:2"),
            *("--allowed-host", "a", "--advertise=a", "--allowed-host=b", "--advertise", "b:1"),
        ]
    )

    assert options == ServeOptions(
        listen="y:2", set=("a=1", "b=2"), advertise="b:1", allowed_host=("a", "b")
    )


@pytest.mark.parametrize(
    "args",
    [
        ("--help",),
        ("--settings",),
        ("--console", "127.0.0.1:0"),
        ("--nonsense",),
        ("--listen",),
        ("--listen=",),
        ("--listen", ""),
        ("--listen", "--data"),
        ("--liste", "127.0.0.1:0"),
        ("listen", "127.0.0.1:0"),
        ("listen=127.0.0.1:0",),
        ("127.0.0.1:0",),
        ("--", "--listen", "127.0.0.1:0"),
        ("--data", "x", "--"),
    ],
)
def test_other_arguments_are_left_to_typer(args: tuple[str, ...]) -> None:
    assert parse_serve_args(args) is None


# Processes


def test_node_starts_without_importing_typer() -> None:
    loaded = "import sys, kohort.cli.entry, kohort.cli.serve_run; print(*sys.modules)"
    finished = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )

    modules = set(finished.stdout.split())
    assert "kohort.node.server" in modules
    assert not {"typer", "click", "rich", "pydantic", "kohort.cli.app"} & modules


def test_help_and_usage_errors_come_from_typer() -> None:
    helped = subprocess.run(command("--help"), capture_output=True, text=True, check=True)
    refused = subprocess.run(command("--listen"), capture_output=True, text=True, check=False)

    assert "Run a broker until SIGTERM or Ctrl-C." in helped.stdout
    assert refused.returncode == 2
    assert "--listen" in refused.stderr


@pytest.mark.parametrize("args", [(), ("--",)], ids=["without Typer", "with Typer"])
def test_closed_stdout_ends_the_node_without_traceback(
    args: tuple[str, ...], tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    where = ("--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"))

    try:
        ended = subprocess.run(
            command(*where, *args),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=30,
        )
    finally:
        os.close(writing)

    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
