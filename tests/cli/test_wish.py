"""kohort serve read without Typer: as Typer reads it, or not at all."""

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
from kohort.cli.wish import Wish, read_plainly
from tests.node.serving import command

TYPERS_ALONE = {"--console", "--settings"}
"""Who asks for these does not wait for the node alone."""


def read_by_typer(words: Sequence[str]) -> dict[str, Any] | None:
    """What Typer would call kohort serve with; None if it would refuse the words."""
    calls: list[dict[str, Any]] = []

    @functools.wraps(serve.run)
    def note(**options: Any) -> None:
        calls.append(options)

    noting = typer.Typer()
    noting.command()(note)
    CliRunner().invoke(noting, list(words))
    return calls[0] if calls else None


def as_called(wish: Wish) -> dict[str, Any]:
    return {
        "listen": wish.listen,
        "data": wish.data,
        "set_": list(wish.set) or None,
        "config": wish.config,
        "metrics": wish.metrics,
        "console": "",
        "settings": False,
    }


def options_of_serve() -> set[str]:
    commands: Any = typer.main.get_command(app)
    return {name for option in commands.commands["serve"].params for name in option.opts}


def lines_of(options: list[str], texts: list[str]) -> st.SearchStrategy[list[str]]:
    """Options and what they take, joined or apart, and now and then one without the other."""
    option, text = st.sampled_from(options), st.sampled_from(texts)
    usual = st.tuples(option, text) | st.tuples(st.builds("{}={}".format, option, text))
    return st.lists(usual | usual | usual | st.tuples(option) | st.tuples(text), max_size=5).map(
        lambda groups: [word for group in groups for word in group]
    )


PLAIN = sorted(options_of_serve() - TYPERS_ALONE)
ODD = [*sorted(TYPERS_ALONE), "--help", "--nonsense", "--liste", "-l", "--", ""]
TEXTS = ["127.0.0.1:0", "a=b", "a=", "=b", "x y", "\u00e4/\udcff"]


@given(words=lines_of(PLAIN, TEXTS) | lines_of(PLAIN + ODD, [*TEXTS, "", "-", "-1"]))
def test_what_is_read_plainly_is_what_typer_reads(words: list[str]) -> None:
    wish = read_plainly(words)

    if wish is not None:
        assert as_called(wish) == read_by_typer(words)


@pytest.mark.parametrize("option", PLAIN)
@pytest.mark.parametrize("form", ["{} a=b", "{}=a=b"])
def test_every_option_about_the_node_is_read_plainly(option: str, form: str) -> None:
    words = form.format(option).split()

    wish = read_plainly(words)

    assert wish is not None
    assert wish != Wish()
    assert as_called(wish) == read_by_typer(words)


def test_no_words_are_plain_as_well() -> None:
    assert read_plainly([]) == Wish()
    assert as_called(Wish()) == read_by_typer([])


def test_settings_are_kept_in_their_order_and_of_the_rest_the_last_counts() -> None:
    wish = read_plainly(["--set", "a=1", "--listen=x:1", "--set=b=2", "--listen", "y:2"])

    assert wish == Wish(listen="y:2", set=("a=1", "b=2"))


@pytest.mark.parametrize(
    "words",
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
def test_what_may_be_meant_otherwise_is_left_to_typer(words: tuple[str, ...]) -> None:
    assert read_plainly(words) is None


# As processes


def test_a_node_starts_without_typer() -> None:
    loaded = "import sys, kohort.cli.entry, kohort.cli.serving; print(*sys.modules)"
    finished = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )

    modules = set(finished.stdout.split())
    assert "kohort.node.server" in modules
    assert not {"typer", "click", "rich", "pydantic", "kohort.cli.app"} & modules


def test_help_and_refusals_are_typers() -> None:
    helped = subprocess.run(command("--help"), capture_output=True, text=True, check=True)
    refused = subprocess.run(command("--listen"), capture_output=True, text=True, check=False)

    assert "Serve Kafka clients until SIGTERM or Ctrl-C." in helped.stdout
    assert refused.returncode == 2
    assert "--listen" in refused.stderr


@pytest.mark.parametrize("words", [(), ("--",)], ids=["plainly", "by Typer"])
def test_a_node_that_nobody_hears_ends_quietly(words: tuple[str, ...], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    where = ("--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"))

    try:
        ended = subprocess.run(
            command(*where, *words),
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
