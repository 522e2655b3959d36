"""A node that is killed loses nothing that it has promised."""

import os
import time
from pathlib import Path

import pytest

from tests.node.killing import Killing

KILLS = 16
"""For each of the two durabilities. `make soak` has the patience for a thousand."""


@pytest.fixture
def seed() -> int:
    """A new one every time; a failure shows it, and KOHORT_SEED takes it."""
    seed = int(os.environ.get("KOHORT_SEED", time.time_ns() % 2**32))
    print(f"KOHORT_SEED={seed}")
    return seed


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_what_was_promised_is_there_after_every_kill(
    tmp_path: Path, seed: int, durability: str
) -> None:
    killing = Killing(tmp_path, seed, durability)

    killing.run(KILLS, on_kill=print)

    assert killing.kills >= KILLS
    assert killing.records_acked > 0
