"""A killed node loses no acknowledged data."""

import os
import time
from pathlib import Path

import pytest

from tests.node.kill_loop import KillLoop

KILLS = 16
"""For each of the two durabilities. `make soak` has the patience for a thousand."""


KILLS_UNTIL_A_LOSS = 64
"""At the first kills there may be no data to lose."""


@pytest.fixture
def seed() -> int:
    """A new one every time; a failure shows it, and KOHORT_SEED takes it."""
    seed = int(os.environ.get("KOHORT_SEED", time.time_ns() % 2**32))
    print(f"KOHORT_SEED={seed}")
    return seed


@pytest.mark.parametrize("durability", ["fsync", pytest.param("os", marks=pytest.mark.full)])
def test_acknowledged_data_survives_every_kill(tmp_path: Path, seed: int, durability: str) -> None:
    killing = KillLoop(tmp_path, seed, durability)

    killing.run(KILLS, on_check=print)

    assert killing.kills >= KILLS
    assert killing.records_acked > 0


@pytest.mark.parametrize("victim", ["t-0", "__consumer_offsets-0", "churn-*-0"])
def test_kill_loop_detects_lost_data(tmp_path: Path, seed: int, victim: str) -> None:
    def lose_half(data: Path) -> None:
        """Of the newest segments, as a node would that promised too early."""
        # A partition that was not written yet has no segment.
        for segment in [
            max(files) for each in data.glob(victim) if (files := [*each.glob("*.log")])
        ]:
            os.truncate(segment, segment.stat().st_size // 2)

    killing = KillLoop(tmp_path, seed, "os")

    # Losing half of the groups' log can cost a member its group before it costs an offset. A
    # batch of which half is lost may also be refused.
    with pytest.raises(
        AssertionError,
        match=r"ends at|is committed|although it is the only member|CORRUPT_MESSAGE",
    ):
        killing.run(KILLS_UNTIL_A_LOSS, on_death=lose_half)
