"""Rolling: when the next segment begins, and what the files are called."""

from pathlib import Path

import pytest

from kohort.types import Millis
from kohort.wire.batch_header import HEADER_BYTES
from tests.log.disks import ForgetfulDisk
from tests.log.logs import NOW, TOPIC, file_names, new_batch, new_record, numbered_batch, opened


def rolls(settings: dict[str, str], batches: list[bytes], times: list[int]) -> int:
    """How many segments there are after the batches."""
    disk = ForgetfulDisk()
    with opened(disk, settings) as log:
        for batch, now in zip(batches, times, strict=True):
            log.append(batch, Millis(now))
    return sum(name.endswith(".log") for name in disk.list(f"{TOPIC}-0"))


SIZE = len(numbered_batch(0))


@pytest.mark.parametrize(("room", "segments"), [(2 * SIZE, 2), (2 * SIZE - 1, 4), (4 * SIZE, 1)])
def test_a_segment_is_never_larger_than_it_may_be(room: int, segments: int) -> None:
    settings = {"internal.segment.bytes": str(room)}

    assert rolls(settings, [numbered_batch(n) for n in range(4)], [NOW] * 4) == segments


def at(timestamp: int) -> bytes:
    return new_batch(new_record(timestamp=timestamp))


@pytest.mark.parametrize(("later", "segments"), [(1000, 1), (1001, 2)])
def test_a_batch_much_later_than_the_first_begins_a_segment(later: int, segments: int) -> None:
    settings = {"segment.ms": "1000"}

    assert rolls(settings, [at(NOW), at(NOW + later)], [NOW, NOW]) == segments


@pytest.mark.parametrize(("later", "segments"), [(1000, 1), (1001, 2)])
def test_without_timestamps_the_clock_decides(later: int, segments: int) -> None:
    settings = {"segment.ms": "1000"}

    assert rolls(settings, [at(-1), at(-1)], [NOW, NOW + later]) == segments


def test_a_compacted_topic_rolls_in_time_for_its_compaction() -> None:
    settings = {"cleanup.policy": "compact", "max.compaction.lag.ms": "500"}

    assert rolls(settings, [at(NOW), at(NOW + 501)], [NOW, NOW]) == 2


def test_an_index_that_is_full_begins_a_segment() -> None:
    settings = {"segment.index.bytes": "36", "index.interval.bytes": "0"}

    assert rolls(settings, [numbered_batch(n) for n in range(6)], [NOW] * 6) == 2


def test_offsets_too_far_from_the_first_begin_a_segment() -> None:
    disk = ForgetfulDisk()
    wide = bytearray(numbered_batch(0))
    # Only compaction makes a batch with so many offsets, and only our own batches may have them.
    wide[23:27] = (2**31 - 2).to_bytes(4)
    with opened(disk) as log:
        log.append_own(bytes(wide), NOW)
        log.append(numbered_batch(1), NOW)
        log.append(numbered_batch(2), NOW)

    logs = [name for name in disk.list(f"{TOPIC}-0") if name.endswith(".log")]
    assert logs == [f"{0:020d}.log", f"{2**31:020d}.log"]
    assert HEADER_BYTES == 61


def test_the_files_have_kafkas_names(tmp_path: Path) -> None:
    with opened(tmp_path, {"internal.segment.bytes": str(3 * SIZE)}) as log:
        for number in range(5):
            log.append(numbered_batch(number), NOW)

    directory = tmp_path / f"{TOPIC}-0"
    assert file_names(directory, "") == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000003.index",
        "00000000000000000003.log",
        "00000000000000000003.snapshot",
        "00000000000000000003.timeindex",
        "00000000000000000005.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert (directory / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    )
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    assert file_names(tmp_path, "") == [
        ".kafka_cleanshutdown",
        ".lock",
        "kohort-catalog.json",
        f"{TOPIC}-0",
        "recovery-point-offset-checkpoint",
    ]
