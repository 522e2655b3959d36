"""The simulated disk: syncs, power failures, kills and full disks."""

from contextlib import suppress
from random import Random

import pytest

from kohort.log.disk import read_file
from kohort.log.errors import StorageError
from kohort.sim.disk import DiskImage, Killed, Mount

CHANCES = range(40)


def after_power_loss(disk_image: DiskImage, seed: int) -> Mount:
    disk_image.power_off(Random(seed))  # noqa: S311  # drawn again from the same seed
    return Mount(disk_image)


def written(synced: bytes, unsynced: bytes) -> DiskImage:
    disk_image = DiskImage()
    mount = Mount(disk_image)
    file = mount.create("log")
    mount.sync_directory("")
    file.append(synced)
    file.sync()
    file.append(unsynced)
    return disk_image


@pytest.mark.parametrize("seed", CHANCES)
def test_synced_data_survives_a_power_failure(seed: int) -> None:
    mount = after_power_loss(written(b"safe" * 200, b"gone" * 300), seed)

    found = read_file(mount, "log")

    assert found.startswith(b"safe" * 200)
    assert len(found) <= 2000


def test_every_kind_of_lost_tail_occurs() -> None:
    tails = {
        read_file(after_power_loss(written(b"safe", b"gone" * 300), seed), "log")[4:]
        for seed in range(400)
    }

    assert any(tail and b"gone".startswith(tail[:4]) for tail in tails), "cut short"
    assert any(tail.endswith(bytes(8)) for tail in tails), "never written"
    assert any(b"gone" not in tail and tail.strip(b"\0") for tail in tails), "garbage"
    assert any(bytes(8) in tail and tail.endswith(b"gone") for tail in tails), "out of order"


@pytest.mark.parametrize("seed", CHANCES)
def test_a_kill_loses_no_written_data(seed: int) -> None:
    disk_image = written(b"safe", b"also")
    first = Mount(disk_image)

    first.die()

    assert read_file(Mount(disk_image), "log") == b"safealso"
    second = Mount(disk_image)
    second.open("log").sync()
    assert read_file(after_power_loss(disk_image, seed), "log") == b"safealso"


def test_unsynced_names_may_survive_or_be_lost() -> None:
    found = set()
    for seed in CHANCES:
        disk_image = DiskImage()
        mount = Mount(disk_image)
        mount.create("old")
        mount.sync_directory("")
        mount.rename("old", "new")
        mount.create("other")
        found.add(tuple(sorted(after_power_loss(disk_image, seed).list(""))))

    assert found == {("old",), ("new",), ("old", "other"), ("new", "other")}


@pytest.mark.parametrize("seed", CHANCES)
def test_an_atomic_write_is_never_half_visible(seed: int) -> None:
    disk_image = DiskImage()
    mount = Mount(disk_image)
    mount.write_atomically("catalog", b"first")
    mount.fatal_operation = mount.operations + seed % 7

    with suppress(Killed):
        mount.write_atomically("catalog", b"second one")

    assert read_file(after_power_loss(disk_image, seed), "catalog") in (b"first", b"second one")


def test_a_sync_covers_data_written_before_it_started() -> None:
    disk_image = written(b"", b"before")
    mount = Mount(disk_image)
    marks = disk_image.mark()
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


def test_a_full_disk_fails_after_a_partial_write() -> None:
    disk_image = written(b"safe", b"")
    mount = Mount(disk_image)
    disk_image.is_full = True

    with pytest.raises(StorageError, match="No space left"):
        mount.open("log").append(b"too much")

    assert read_file(mount, "log") == b"safetoo "


def test_only_background_syncs_fail() -> None:
    disk_image = written(b"", b"data")
    mount = Mount(disk_image)
    disk_image.failing_syncs = 1

    mount.open("log").sync()

    with mount.as_of(disk_image.mark()), pytest.raises(StorageError, match="Input/output"):
        mount.open("log").sync()


def test_a_killed_process_cannot_use_the_disk() -> None:
    mount = Mount(written(b"safe", b""))
    file = mount.open("log")

    mount.die()

    with pytest.raises(Killed):
        file.append(b"from beyond")


def test_only_one_process_can_lock_a_directory() -> None:
    disk_image = DiskImage()
    first, second = Mount(disk_image), Mount(disk_image)

    assert first.lock(".lock") is not None
    assert second.lock(".lock") is None
    first.die()
    assert second.lock(".lock") is not None
