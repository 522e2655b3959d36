"""No power failure loses what was acknowledged, or adds what was never written."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kohort.log.errors import LogError
from kohort.types import Uuid
from tests.log.crash_states import Directory
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    get_log,
    headers_of,
    new_batch,
    numbered_batch,
    open_catalog,
    read_all,
)
from tests.log.power_cut import Recording, check_states, record
from tests.log.syscall_recorder import ROOT, NameChange, Synced, Written

ROUNDS = 60
STATES = 300
STATES_FULL = 10_000


@pytest.fixture
def seed() -> int:
    """A new one every time; a failure shows it, and KOHORT_SEED takes it."""
    seed = int(os.environ.get("KOHORT_SEED", time.time_ns() % 2**32))
    print(f"KOHORT_SEED={seed}")
    return seed


def check(recording: Recording, seed: int, states: int) -> int:
    return check_states(recording, Random(seed), states)  # noqa: S311  # reproducible


@pytest.mark.parametrize("states", [STATES, pytest.param(STATES_FULL, marks=pytest.mark.full)])
def test_recovery_is_right_in_all_states_after_a_power_failure(
    tmp_path: Path, seed: int, states: int
) -> None:
    recording = record(tmp_path, seed, ROUNDS)

    checked = check(recording, seed, states)

    assert checked >= states * 0.9


def test_topic_with_the_name_of_a_deleted_one_survives_a_power_failure() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, Uuid(b"1" * 16), 1, {})
    catalog.delete_topic(TOPIC)
    catalog.close(NOW)

    log = get_log(open_catalog(disk))
    log.append(new_batch(), NOW)
    for each in log.take_pending_syncs():
        each.sync()
    disk.power_off()

    assert get_log(open_catalog(disk)).end_offset == 1


def test_records_after_a_lost_segment_are_lost_too() -> None:
    disk = MemoryDisk()
    log = get_log(open_catalog(disk), SMALL_SEGMENTS)
    for number in range(30):
        log.append(numbered_batch(number), NOW)
    lost = log_files(disk)[1]
    disk.kill()
    disk.remove(f"{TOPIC}-0/{lost}")

    recovered = get_log(open_catalog(disk))

    assert recovered.end_offset == int(lost.removesuffix(".log"))
    assert [header.base_offset for header in headers_of(read_all(recovered))] == [
        *range(recovered.end_offset)
    ]


def log_files(disk: MemoryDisk) -> list[str]:
    return sorted(filter(is_log, disk.list(f"{TOPIC}-0")))


def test_states_have_all_synced_bytes_and_any_part_of_the_others() -> None:
    synced, unsynced = b"s" * 700, b"u" * 700
    directory = Directory({ROOT})
    changes = (
        NameChange(ROOT, None, "file", 1),
        Written(1, 0, synced),
        Synced(1, "file"),
        Synced(ROOT, ""),
        Written(1, 700, unsynced),
    )
    for change in changes:
        directory.apply(change)

    found = [tree["file"] or b"" for tree in directory.states(Random(1), 300)]  # noqa: S311

    assert all(content.startswith(synced) for content in found)
    assert {synced, synced + unsynced} <= set(found)
    assert len(found) > 100
    sector = unsynced[: 1024 - 700]
    assert synced + bytes(len(sector)) + unsynced[len(sector) :] in found


# The check detects missing syncs


def is_log(path: str) -> bool:
    return path.endswith(".log")


def is_partition_directory(path: str) -> bool:
    return path[-2:-1] == "-" and "/" not in path


def is_data_directory(path: str) -> bool:
    return path == ""


def is_replacement(path: str) -> bool:
    """Temporary files, which replace others when they are synced."""
    return path.endswith(".tmp")


@pytest.mark.parametrize(
    ("is_lost", "loss"),
    [
        (is_log, "were acknowledged"),
        (is_partition_directory, "were acknowledged"),
        (is_data_directory, "expected one of"),
        (is_replacement, "is corrupt"),
    ],
)
def test_a_skipped_sync_is_detected(
    tmp_path: Path, is_lost: Callable[[str], bool], loss: str
) -> None:
    recording = record(tmp_path, seed=1, rounds=ROUNDS)

    with pytest.raises((AssertionError, LogError), match=loss):
        check(recording.without_syncs(is_lost), seed=1, states=2_000)
