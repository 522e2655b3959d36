"""When the log rolls, and the names of its files."""

from pathlib import Path

import pytest

from kohort.types import Millis
from kohort.wire.batch_header import HEADER_BYTES
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    NOW,
    TOPIC,
    file_names,
    new_batch,
    new_record,
    numbered_batch,
    open_log,
)


def count_segments(settings: dict[str, str], batches: list[bytes], times: list[int]) -> int:
    """The number of segments after the appends."""
    disk = MemoryDisk()
    with open_log(disk, settings) as log:
        for batch, now in zip(batches, times, strict=True):
            log.append(batch, Millis(now))
    return sum(name.endswith(".log") for name in disk.list(f"{TOPIC}-0"))


SIZE = len(numbered_batch(0))


@pytest.mark.parametrize(
    ("free_bytes", "segments"), [(2 * SIZE, 2), (2 * SIZE - 1, 4), (4 * SIZE, 1)]
)
def test_log_rolls_at_segment_bytes(free_bytes: int, segments: int) -> None:
    settings = {"internal.segment.bytes": str(free_bytes)}

    assert count_segments(settings, [numbered_batch(n) for n in range(4)], [NOW] * 4) == segments


def at(timestamp: int) -> bytes:
    return new_batch(new_record(timestamp=timestamp))


@pytest.mark.parametrize(("later", "segments"), [(1000, 1), (1001, 2)])
def test_log_rolls_at_segment_ms(later: int, segments: int) -> None:
    settings = {"segment.ms": "1000"}

    assert count_segments(settings, [at(NOW), at(NOW + later)], [NOW, NOW]) == segments


@pytest.mark.parametrize(("later", "segments"), [(1000, 1), (1001, 2)])
def test_log_rolls_by_append_time_without_timestamps(later: int, segments: int) -> None:
    settings = {"segment.ms": "1000"}

    assert count_segments(settings, [at(-1), at(-1)], [NOW, NOW + later]) == segments


def test_compacted_topic_rolls_at_max_compaction_lag() -> None:
    settings = {"cleanup.policy": "compact", "max.compaction.lag.ms": "500"}

    assert count_segments(settings, [at(NOW), at(NOW + 501)], [NOW, NOW]) == 2


def test_log_rolls_when_an_index_is_full() -> None:
    settings = {"segment.index.bytes": "36", "index.interval.bytes": "0"}

    assert count_segments(settings, [numbered_batch(n) for n in range(6)], [NOW] * 6) == 2


def test_log_rolls_when_relative_offsets_overflow() -> None:
    disk = MemoryDisk()
    wide = bytearray(numbered_batch(0))
    # Only trusted batches may have more offsets than records.
    wide[23:27] = (2**31 - 2).to_bytes(4)
    with open_log(disk) as log:
        log.append_trusted(bytes(wide), NOW)
        log.append(numbered_batch(1), NOW)
        log.append(numbered_batch(2), NOW)

    logs = [name for name in disk.list(f"{TOPIC}-0") if name.endswith(".log")]
    assert logs == [f"{0:020d}.log", f"{2**31:020d}.log"]
    assert HEADER_BYTES == 61


def test_file_names_match_kafka(tmp_path: Path) -> None:
    with open_log(tmp_path, {"internal.segment.bytes": str(3 * SIZE)}) as log:
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
        "kohort-segments",
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
        "kohort-catalog.journal",
        "kohort-catalog.json",
        "log-start-offset-checkpoint",
        f"{TOPIC}-0",
        "recovery-point-offset-checkpoint",
    ]
