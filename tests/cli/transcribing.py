"""Commands and everything they said, as one text that is compared with a kept one.

What differs from run to run is masked: ids, ports, moments, and how long things took. Errors are
marked by an exclamation mark, and an exit code other than zero is said. `pytest --rewrite` writes
down what is said now: read the difference, and keep only what you understand and want.
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
    (re.compile(r"\b\d+ ms\b|\b\d+\.\d s\b"), "LONG"),
    (re.compile(r'(_ms": )\d+'), r"\1LONG"),
    # A masked cell is as wide as another one; that columns are straight is shown elsewhere.
    (re.compile(r"(?<=\S) {2,}"), "  "),
)


class Transcript:
    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._runner = CliRunner()
        self._parts: list[str] = []

    def run(self, line: str, stdin: str | None = None) -> str:
        """Run `kohort` with these words; gives what it wrote to stdout, unmasked."""
        environment = {"KOHORT_BOOTSTRAP": self._bootstrap_servers}
        ended = self._runner.invoke(app, shlex.split(line), env=environment, input=stdin)
        assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
        said = [f"$ kohort {line}", *ended.stdout.splitlines()]
        said += [f"! {each}" for each in ended.stderr.splitlines()]
        if ended.exit_code:
            said.append(f"exit {ended.exit_code}")
        self._parts.append("\n".join(said) + "\n")
        return ended.stdout

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
