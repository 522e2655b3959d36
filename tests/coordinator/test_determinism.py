"""The same commands give the same outcomes, byte by byte, for every hash seed."""

import os
import subprocess
import sys
from collections import Counter

from tests.coordinator.random_walk import random_walk
from tests.coordinator.trace_player import Player
from tests.tidy.repository import ROOT

SEED, STEPS = 20_240_817, 3_000


def run_random_walk(hash_seed: int) -> str:
    command = [sys.executable, "-m", "tests.coordinator.random_walk", str(SEED), str(STEPS)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    finished = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, check=True, encoding="utf-8"
    )
    return finished.stdout


def test_outcomes_do_not_depend_on_the_hash_seed() -> None:
    first, second = run_random_walk(1), run_random_walk(2)

    assert first == second
    assert first.count("\n") > STEPS


def test_random_walk_reaches_every_kind_of_reply() -> None:
    driver = random_walk(SEED, STEPS).driver

    seen = Counter(type(each).__name__ for each in (*driver.records, *driver.replies))
    assert seen["ClassicGroupMetadata"] > 50
    assert seen["Joined"] > 50
    assert seen["Synced"] > 50
    assert seen["CommitAnswered"] > 50
    assert seen["HeartbeatAccepted"] > 50


def test_random_walk_can_be_replayed_from_its_trace() -> None:
    crowd = random_walk(SEED, STEPS // 10)
    player = Player()

    player.play(crowd.trace("A crowd wandered."))

    assert player.driver.records == crowd.driver.records
    assert player.driver.coordinator.hard_state() == crowd.driver.coordinator.hard_state()
    assert player.driver.timers == crowd.driver.timers
    assert len(player.driver.replies) == len(crowd.driver.replies)
