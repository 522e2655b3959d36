"""A disk that keeps what was synced, and of the rest whatever luck keeps."""

from contextlib import suppress
from random import Random

import pytest

from kohort.log.disk import read_file
from kohort.log.errors import StorageError
from kohort.sim.disk import Killed, Mount, Platters

CHANCES = range(40)


def after_power_loss(platters: Platters, seed: int) -> Mount:
    platters.power_off(Random(seed))  # noqa: S311  # drawn again from the same seed
    return Mount(platters)


def written(synced: bytes, unsynced: bytes) -> Platters:
    platters = Platters()
    mount = Mount(platters)
    file = mount.create("log")
    mount.sync_directory("")
    file.append(synced)
    file.sync()
    file.append(unsynced)
    return platters


@pytest.mark.parametrize("seed", CHANCES)
def test_what_was_synced_survives_and_a_beginning_is_all_there_is_of_the_rest(seed: int) -> None:
    mount = after_power_loss(written(b"safe" * 200, b"gone" * 300), seed)

    found = read_file(mount, "log")

    assert found.startswith(b"safe" * 200)
    assert len(found) <= 2000


def test_every_way_of_losing_a_tail_is_drawn_by_some_chance() -> None:
    tails = {
        read_file(after_power_loss(written(b"safe", b"gone" * 300), seed), "log")[4:]
        for seed in range(400)
    }

    assert any(tail and b"gone".startswith(tail[:4]) for tail in tails), "cut short"
    assert any(tail.endswith(bytes(8)) for tail in tails), "never written"
    assert any(b"gone" not in tail and tail.strip(b"\0") for tail in tails), "garbage"
    assert any(bytes(8) in tail and tail.endswith(b"gone") for tail in tails), "out of order"


@pytest.mark.parametrize("seed", CHANCES)
def test_a_process_that_is_killed_loses_nothing(seed: int) -> None:
    platters = written(b"safe", b"also")
    first = Mount(platters)

    first.die()

    assert read_file(Mount(platters), "log") == b"safealso"
    second = Mount(platters)
    second.open("log").sync()
    assert read_file(after_power_loss(platters, seed), "log") == b"safealso"


def test_names_that_were_not_synced_may_be_gone_or_there() -> None:
    found = set()
    for seed in CHANCES:
        platters = Platters()
        mount = Mount(platters)
        mount.create("old")
        mount.sync_directory("")
        mount.rename("old", "new")
        mount.create("other")
        found.add(tuple(sorted(after_power_loss(platters, seed).list(""))))

    assert found == {("old",), ("new",), ("old", "other"), ("new", "other")}


@pytest.mark.parametrize("seed", CHANCES)
def test_a_file_replaced_in_one_step_is_never_half_there(seed: int) -> None:
    platters = Platters()
    mount = Mount(platters)
    mount.write_atomically("catalog", b"first")
    mount.fatal_operation = mount.operations + seed % 7

    with suppress(Killed):
        mount.write_atomically("catalog", b"second one")

    assert read_file(after_power_loss(platters, seed), "catalog") in (b"first", b"second one")


def test_a_sync_keeps_what_was_there_when_it_began() -> None:
    platters = written(b"", b"before")
    mount = Mount(platters)
    marks = platters.mark()
    file = mount.open("log")
    file.append(b"after")

    with mount.as_of(marks):
        file.sync()

    lengths = set()
    for seed in CHANCES:
        copy = written(b"", b"before")
        other = Mount(copy)
        marks = copy.mark()
        other.open("log").append(b"after")
        with other.as_of(marks):
            other.open("log").sync()
        found = read_file(after_power_loss(copy, seed), "log")
        assert found.startswith(b"before")
        lengths.add(len(found))
    assert len(b"before") in lengths


def test_a_full_disk_takes_part_of_a_write_and_says_so() -> None:
    platters = written(b"safe", b"")
    mount = Mount(platters)
    platters.is_full = True

    with pytest.raises(StorageError, match="No space left"):
        mount.open("log").append(b"too much")

    assert read_file(mount, "log") == b"safetoo "


def test_only_a_sync_of_the_thread_that_syncs_fails() -> None:
    platters = written(b"", b"data")
    mount = Mount(platters)
    platters.failing_syncs = 1

    mount.open("log").sync()

    with mount.as_of(platters.mark()), pytest.raises(StorageError, match="Input/output"):
        mount.open("log").sync()


def test_a_dead_process_can_do_nothing_more() -> None:
    mount = Mount(written(b"safe", b""))
    file = mount.open("log")

    mount.die()

    with pytest.raises(Killed):
        file.append(b"from beyond")


def test_a_directory_is_locked_by_one_process_at_a_time() -> None:
    platters = Platters()
    first, second = Mount(platters), Mount(platters)

    assert first.lock(".lock") is not None
    assert second.lock(".lock") is None
    first.die()
    assert second.lock(".lock") is not None
