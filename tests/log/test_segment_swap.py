"""Replacement of segments: after an interruption the old segments or the new one are complete."""

import copy
from collections.abc import Mapping
from contextlib import suppress

import pytest

from kohort.log.file_names import CLEANED
from kohort.log.index import AbortedTxn
from kohort.log.limits import Limits
from kohort.log.producer_snapshot import encode_snapshot
from kohort.log.producer_state import ProducerStateManager
from kohort.log.recovery import LoadedLog, LoadParameters, load_partition
from kohort.log.segment import Segment
from kohort.log.segment_swap import replace_segments
from kohort.types import Offset, ProducerId
from kohort.wire.batch import assign_offset, peek
from tests.log.faulty_disks import Crash, CrashingDisk, MemoryDisk
from tests.log.log_setup import NOW, numbered_batch

DIRECTORY = "orders-0"
ABORTED = AbortedTxn(
    producer_id=ProducerId(1),
    first_offset=Offset(1),
    last_offset=Offset(2),
    last_stable_offset=Offset(3),
)
OLD = (0, 4, 8)
NEW = (1, 2, 7, 9, 11)
LAST = 12


def write_segment(disk: MemoryDisk, base: int, offsets: list[int], stage: str = "") -> Segment:
    segment = Segment.create(disk, DIRECTORY, Offset(base), NOW, stage=stage)
    segment.set_index_interval(100)
    for offset in offsets:
        batch = bytearray(numbered_batch(offset))
        assign_offset(batch, base_offset=Offset(offset), partition_leader_epoch=0)
        segment.append(batch, Offset(offset), peek(batch).max_timestamp)
    if base == 0:
        segment.add_aborted(ABORTED)
    segment.seal()
    return segment


def disk_before_swap() -> MemoryDisk:
    """Three synced segments of four batches, an active one, and a .cleaned one for the three."""
    disk = MemoryDisk()
    disk.make_directory(DIRECTORY)
    for base in (*OLD, LAST):
        segment = write_segment(disk, base, [] if base == LAST else [*range(base, base + 4)])
        segment.sync()
    snapshot = disk.create(f"{DIRECTORY}/{LAST:020d}.snapshot")
    snapshot.append(encode_snapshot(ProducerStateManager(Limits())))
    snapshot.sync()
    disk.sync_directory("")
    disk.sync_directory(DIRECTORY)
    write_segment(disk, 0, [*NEW], stage=CLEANED)
    return disk


def load(disk: MemoryDisk) -> LoadedLog:
    parameters = LoadParameters(
        listed=disk.list(DIRECTORY),
        start_offset=None,
        recovery_point=Offset(LAST),
        is_clean=False,
        index_interval_bytes=100,
    )
    return load_partition(disk, DIRECTORY, parameters, Limits(), NOW)


def offsets_in(loaded: LoadedLog) -> list[int]:
    return [info[2] for segment in loaded.segments for info in segment.walk(0)]


def swap(disk: CrashingDisk, sizes: Mapping[str, int]) -> None:
    old = [Segment(disk, DIRECTORY, Offset(base), sizes) for base in OLD]
    replace_segments(
        disk, DIRECTORY, Segment(disk, DIRECTORY, Offset(0), sizes, stage=CLEANED), old
    )


@pytest.mark.parametrize("is_killed", [True, False])
def test_swap_is_atomic_at_every_crash(
    is_killed: bool,  # noqa: FBT001 - pytest gives parameters by name
) -> None:
    prepared = disk_before_swap()
    counting = CrashingDisk(copy.deepcopy(prepared))
    swap(counting, counting.list(DIRECTORY))
    seen = set()
    for crash_at in range(counting.changes + 1):
        for seed in range(1 if is_killed else 25):
            disk = copy.deepcopy(prepared)
            with suppress(Crash):
                swap(CrashingDisk(disk, crash_at), disk.list(DIRECTORY))
            if is_killed:
                disk.kill()
            else:
                disk.power_off(seed)

            loaded = load(disk)

            offsets = offsets_in(loaded)
            assert offsets in ([*range(12)], [*NEW])
            assert (loaded.start_offset, loaded.end_offset) == (0, LAST)
            assert [each for segment in loaded.segments for each in segment.aborted] == [ABORTED]
            assert offsets_in(load(disk)) == offsets
            seen.add(len(offsets))
    assert counting.changes > 15
    assert seen == {12, len(NEW)}
