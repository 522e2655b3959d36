"""Plays every trace of a member and compares its effects."""

from pathlib import Path

import pytest

from tests.client.trace_player import FOLDER, Player
from tests.coordinator.trace_player import read

LINES_MAX = 110
TRACES = sorted(FOLDER.rglob("*.trace"))

each_trace = pytest.mark.parametrize(
    "path", TRACES, ids=lambda path: str(path.relative_to(FOLDER).with_suffix(""))
)


@each_trace
def test_a_trace_gives_its_effects(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()

    played = Player().play(read(text)).text

    if request.config.getoption("--rewrite") and played != text:
        path.write_text(played)
    else:
        assert played.splitlines() == text.splitlines()


@each_trace
def test_a_trace_is_short_and_named_after_its_sentence(path: Path) -> None:
    trace = read(path.read_text())

    words = "".join(letter if letter.isalnum() else " " for letter in trace.title.lower())
    assert path.stem == "-".join(words.split())
    assert len(trace.text.splitlines()) <= LINES_MAX
