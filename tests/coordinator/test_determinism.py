"""The same commands have the same outcome, to the byte, whatever the interpreter's hash seed."""

import os
import subprocess
import sys
from collections import Counter

from tests.coordinator.tracing import Player
from tests.coordinator.wandering import wander
from tests.tidy.repository import ROOT

SEED, STEPS = 20_240_817, 3_000


def what_is_said(hash_seed: int) -> str:
    command = [sys.executable, "-m", "tests.coordinator.wandering", str(SEED), str(STEPS)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    finished = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, check=True, encoding="utf-8"
    )
    return finished.stdout


def test_outcomes_do_not_depend_on_the_hash_seed() -> None:
    first, second = what_is_said(1), what_is_said(2)

    assert first == second
    assert first.count("\n") > STEPS


def test_a_wandering_crowd_gets_around() -> None:
    driver = wander(SEED, STEPS).driver

    seen = Counter(type(each).__name__ for each in (*driver.records, *driver.replies))
    assert seen["GenerationFormed"] > 50
    assert seen["Joined"] > 50
    assert seen["Synced"] > 50
    assert seen["CommitAnswered"] > 50
    assert seen["HeartbeatHeard"] > 50


def test_a_story_that_is_told_as_a_trace_can_be_played_from_it() -> None:
    crowd = wander(SEED, STEPS // 10)
    player = Player()

    player.play(crowd.trace("A crowd wandered."))

    assert player.driver.records == crowd.driver.records
    assert player.driver.machine.hard_state() == crowd.driver.machine.hard_state()
    assert player.driver.timers == crowd.driver.timers
    assert len(player.driver.replies) == len(crowd.driver.replies)
