"""Runs commands and compares their output with a stored transcript.

Ids, ports, timestamps and durations are masked. Lines of stderr begin with an exclamation mark. A
non-zero exit code is a line of its own. `pytest --rewrite` writes the current output: review the
diff before you commit it.
"""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from kohort.cli.app import app

FOLDER = Path(__file__).with_name("transcripts")

_MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST:PORT"),
    (re.compile(r'"port": \d+'), '"port": PORT'),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r"\b\d+ ms\b|\b\d+\.\d s\b"), "DURATION"),
    (re.compile(r'(_ms": )\d+'), r"\1DURATION"),
    # Masks change the width of cells. test_tables tests the alignment.
    (re.compile(r"(?<=\S) {2,}"), "  "),
)


class Transcript:
    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._runner = CliRunner()
        self._parts: list[str] = []

    def run(self, line: str, stdin: str | None = None) -> str:
        """Run `kohort` with these arguments and return its stdout, unmasked."""
        environment = {"KOHORT_BOOTSTRAP": self._bootstrap_servers}
        result = self._runner.invoke(app, shlex.split(line), env=environment, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            result.exception
        )
        lines = [f"$ kohort {line}", *result.stdout.splitlines()]
        lines += [f"! {each}" for each in result.stderr.splitlines()]
        if result.exit_code:
            lines.append(f"exit {result.exit_code}")
        self._parts.append("\n".join(lines) + "\n")
        return result.stdout

    @property
    def text(self) -> str:
        return mask("\n".join(self._parts))


def mask(text: str) -> str:
    for pattern, masked in _MASKS:
        text = pattern.sub(masked, text)
    return text


def check(transcript: Transcript, name: str, *, is_rewriting: bool) -> None:
    path = FOLDER / f"{name}.txt"
    if is_rewriting:
        path.write_text(transcript.text, "utf-8")
    assert transcript.text == path.read_text("utf-8")
