"""Damaged files: every byte of every file is damaged, one at a time.

Whatever is damaged: the data directory opens, or one sentence names the bad file. A consumer gets
every record unchanged and in order, or an error at its offset. It never misses one silently.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kohort.log.catalog import Catalog
from kohort.log.errors import CorruptFile, LogError, StorageError
from kohort.log.partition import PartitionLog
from kohort.log.repair import Repair, RepairKind
from kohort.types import ErrorCode, Millis, Offset
from kohort.wire.batch import Record, iter_records, peek, split
from kohort.wire.errors import MalformedMessage
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import (
    COMPACTED,
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    TOPIC_ID,
    get_log,
    new_batch,
    new_record,
    numbered_batch,
    open_catalog,
    open_with_repairs,
    records_of,
    values_of,
)

DIRECTORY = f"{TOPIC}-0"
BATCHES = 24
PRODUCER = 7
START = "log-start-offset-checkpoint"
CATALOG = "kohort-catalog.json"
RECOVERY = "recovery-point-offset-checkpoint"

Found = tuple[int, bytes | None, bytes | None, int]
"""Offset, key, value and timestamp of a record."""


@dataclass
class Sample:
    disk: MemoryDisk
    records: list[Found]

    @property
    def segments(self) -> list[str]:
        return segment_bases(self.disk)

    def path(self, segment: int, ending: str) -> str:
        return f"{DIRECTORY}/{self.segments[segment]}{ending}"


def new_sample(*, is_clean: bool = True) -> Sample:
    """Several sealed segments, batches of several sizes, and a producer with sequence numbers."""
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, SMALL_SEGMENTS)
    for number in range(BATCHES):
        batch = numbered_batch(number, records=1 + number % 3, size=20 + number % 5)
        if number % 6 == 4:
            timestamp = NOW + 10 * number
            batch = new_batch(
                new_record(f"p{number}", "v", timestamp),
                producer_id=PRODUCER,
                producer_epoch=0,
                base_sequence=number // 6,
            )
        log.append(batch, NOW)
    data = b"".join(log.batches(Offset(0)))
    if is_clean:
        catalog.close(NOW)
    else:
        for pending in catalog.take_pending_syncs():
            pending.sync()
        catalog.clean(NOW)
        disk.kill()
    return Sample(disk, [found(each) for each in records_of(data)])


def found(record: Record) -> Found:
    return record.offset, record.key, record.value, record.timestamp


def consume(log: PartitionLog) -> tuple[list[Found], set[int]]:
    """Read as a consumer does: it verifies checksums, and after an error it tries the next offset.
    Returns the records, and the offsets at which there was an error."""
    records: list[Found] = []
    errors: set[int] = set()
    offset = log.start_offset
    while offset < log.end_offset:
        batches: list[tuple[int, list[Found]]] = []
        try:
            batches = list(decode_batches(log.read(offset, 250, at_least_one=True)))
        except CorruptFile as error:
            assert "offsets " in str(error), error
            assert error.code is ErrorCode.CORRUPT_MESSAGE
        if not batches:
            errors.add(offset)
            offset = Offset(offset + 1)
        for next_offset, decoded in batches:
            records += [each for each in decoded if each[0] >= offset]
            offset = Offset(next_offset)
    return records, errors


def decode_batches(data: bytes) -> Iterator[tuple[int, list[Found]]]:
    position = 0
    while position < len(data):
        try:
            header = peek(data, position)
            records = [found(each) for each in iter_records(data, position)]
        except MalformedMessage:
            return
        yield header.next_offset, records
        position += header.size_in_bytes


def damage(disk: MemoryDisk, path: str, at: int, mask: int) -> MemoryDisk:
    damaged = copy.deepcopy(disk)
    damaged.content(path)[at] ^= mask
    return damaged


def flips(size: int, *, every_bit: bool = False) -> Iterator[tuple[int, int]]:
    """Positions and masks: every bit, and all bits of a byte; or only one bit of each byte."""
    for at in range(size):
        if every_bit:
            yield from ((at, 1 << bit) for bit in range(8))
            yield at, 0xFF
        else:
            yield at, 1 << (at * 3 % 8)


def check_consumer(sample: Sample, log: PartitionLog) -> None:
    assert log.end_offset == sample.records[-1][0] + 1
    records, errors = consume(log)
    assert records == sorted(records), "out of order"
    assert set(records) <= set(sample.records), "a changed record"
    missed = {each[0] for each in sample.records} - {each[0] for each in records} - errors
    assert not missed, f"silently missed {sorted(missed)}"


def check_times(sample: Sample, log: PartitionLog) -> None:
    for _, _, _, timestamp in sample.records[::4]:
        try:
            answer = log.find_by_timestamp(Millis(timestamp))
        except CorruptFile:
            continue
        right = next(each for each in sample.records if each[3] >= timestamp)
        assert answer is not None
        assert (answer.offset, answer.timestamp) == (right[0], right[3])


def check_damage(sample: Sample, path: str, at: int, mask: int) -> list[Repair]:
    """Returns what was reported."""
    disk = damage(sample.disk, path, at, mask)
    try:
        catalog, repairs = open_with_repairs(disk)
    except LogError as error:
        assert path in str(error), error
        assert "\n" not in str(error)
        return []
    reported = list(repairs)
    catalog.on_repair = reported.append
    log = catalog.partition(TOPIC, 0)
    if log is None:
        # The name of the topic is damaged, so its partitions are not in the catalog.
        assert any(each.path == DIRECTORY and "renamed to" in each.reason for each in reported)
        return reported
    if log.is_refused:
        assert any(each.kind is RepairKind.PARTITION_REFUSED for each in reported)
        with pytest.raises(StorageError):
            log.read(Offset(0), 1, at_least_one=True)
        return reported
    lost = [each for each in reported if each.kind is RepairKind.TAIL_CUT]
    if not lost:
        check_consumer(sample, log)
        check_times(sample, log)
    catalog.close(NOW)
    with_repairs, _ = open_with_repairs(disk)
    if not lost:
        check_consumer(sample, get_log(with_repairs))
    return reported


CLEAN = pytest.param(True, id="after-a-clean-stop")
KILLED = pytest.param(False, id="after-a-kill")


EVERY_BIT = pytest.param(True, id="every-bit", marks=pytest.mark.full)
SOME_BITS = pytest.param(False, id="some-bits")

states = pytest.mark.parametrize("is_clean", [CLEAN, KILLED])
bits = pytest.mark.parametrize("every_bit", [SOME_BITS, EVERY_BIT])


@bits
@states
@pytest.mark.parametrize("ending", [".index", ".timeindex"])
@pytest.mark.parametrize("segment", [0, -1])
def test_damaged_index_skips_no_record(
    segment: int, ending: str, *, is_clean: bool, every_bit: bool
) -> None:
    sample = new_sample(is_clean=is_clean)
    path = sample.path(segment, ending)

    for at, mask in flips(len(sample.disk.content(path)), every_bit=every_bit):
        reported = check_damage(sample, path, at, mask)

        assert {each.kind for each in reported} <= {RepairKind.FILE_REPAIRED}
        assert {each.path for each in reported} <= {path}


@bits
@states
@pytest.mark.parametrize("segment", [0, -1])
def test_damaged_batch_is_an_error_at_its_offsets_only(
    segment: int, *, is_clean: bool, every_bit: bool
) -> None:
    sample = new_sample(is_clean=is_clean)
    path = sample.path(segment, ".log")

    for at, mask in flips(len(sample.disk.content(path)), every_bit=every_bit):
        reported = check_damage(sample, path, at, mask)

        assert {each.path for each in reported} <= {path}


@bits
@states
@pytest.mark.parametrize("path", [RECOVERY, START, CATALOG])
def test_damaged_file_of_the_data_directory_skips_no_record(
    path: str, *, is_clean: bool, every_bit: bool
) -> None:
    sample = new_sample(is_clean=is_clean)

    for at, mask in flips(len(sample.disk.content(path)), every_bit=every_bit):
        check_damage(sample, path, at, mask)


@bits
@pytest.mark.parametrize(
    "name", ["partition.metadata", "leader-epoch-checkpoint", "kohort-segments"]
)
def test_damaged_metadata_of_a_partition_skips_no_record(name: str, *, every_bit: bool) -> None:
    sample = new_sample()
    path = f"{DIRECTORY}/{name}"

    for at, mask in flips(len(sample.disk.content(path)), every_bit=every_bit):
        check_damage(sample, path, at, mask)


@bits
@states
def test_damaged_snapshot_changes_no_producer(*, is_clean: bool, every_bit: bool) -> None:
    sample = new_sample(is_clean=is_clean)
    names = [name for name in sample.disk.list(DIRECTORY) if name.endswith(".snapshot")]
    path = f"{DIRECTORY}/{max(names)}"
    retried = new_batch(
        new_record("p22", "v", NOW + 220), producer_id=PRODUCER, producer_epoch=0, base_sequence=3
    )

    for at, mask in flips(len(sample.disk.content(path)), every_bit=every_bit):
        catalog = open_catalog(damage(sample.disk, path, at, mask))

        assert get_log(catalog).append(retried, NOW).is_duplicate


def test_damaged_batch_of_a_compacted_log_is_an_error_at_its_offsets_only() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, COMPACTED)
    for number in range(60):
        log.append(new_batch(new_record(f"k{number % 7}", f"{number}", NOW + number)), NOW)
    catalog.clean(NOW)
    records = [found(each) for each in records_of(b"".join(log.batches(Offset(0))))]
    catalog.close(NOW)
    sample = Sample(disk, records)
    path = sample.path(0, ".log")

    for at, mask in flips(len(disk.content(path))):
        check_damage(sample, path, at, mask)


# Single cases


def sealed_and_clean() -> Sample:
    return new_sample()


def test_a_rebuilt_index_is_reported_with_its_name_and_stays_repaired() -> None:
    sample = sealed_and_clean()
    path = sample.path(0, ".index")
    intact = bytes(sample.disk.content(path))
    sample.disk.content(path)[7] ^= 0x40
    reported: list[Repair] = []

    catalog = open_catalog(sample.disk)
    catalog.on_repair = reported.append
    consume(get_log(catalog))

    assert [(each.path, each.kind) for each in reported] == [(path, RepairKind.FILE_REPAIRED)]
    assert "rebuilt" in reported[0].reason
    assert bytes(sample.disk.content(path)) == intact


def test_a_damaged_batch_is_reported_once_with_file_position_and_offsets() -> None:
    sample = sealed_and_clean()
    path = sample.path(0, ".log")
    second = peek(bytes(sample.disk.content(path))).size_in_bytes
    sample.disk.content(path)[second + 16] = 1
    reported: list[Repair] = []

    catalog = open_catalog(sample.disk)
    catalog.on_repair = reported.append
    log = get_log(catalog)
    consume(log)
    consume(log)

    (only,) = reported
    assert (only.path, only.position, only.kind) == (path, second, RepairKind.BATCH_DAMAGED)
    assert only.reason.startswith("offsets 1 to 2: ")
    with pytest.raises(CorruptFile, match=r"00000\.log: read at \d+: offsets 1 to 2: "):
        log.read(Offset(2), 100, at_least_one=True)


def test_a_damaged_length_hides_no_other_batch() -> None:
    """The batch seems to contain those after it."""
    sample = sealed_and_clean()
    path = sample.path(0, ".log")
    data = sample.disk.content(path)
    sizes = [peek(bytes(data)).size_in_bytes]
    sizes.append(peek(bytes(data), sizes[0]).size_in_bytes)
    data[8:12] = (sum(sizes) - 12).to_bytes(4)

    log = get_log(open_catalog(sample.disk))

    assert peek(log.read(Offset(1), 1, at_least_one=True)).base_offset == 1
    with pytest.raises(CorruptFile, match="offsets 0 to 0: "):
        log.read(Offset(0), 1, at_least_one=True)


def test_retention_is_not_misled_by_a_damaged_time_index() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, {**SMALL_SEGMENTS, "retention.ms": "3600000"})
    for number in range(BATCHES):
        log.append(numbered_batch(number), NOW)
    catalog.close(NOW)
    sample = Sample(disk, [])
    disk.content(sample.path(0, ".timeindex"))[-12] = 0
    disk.content(sample.path(0, ".timeindex"))[-7:-4] = b"\0\0\0"

    catalog = open_catalog(disk)
    catalog.clean(NOW)

    assert get_log(catalog).start_offset == 0


def test_damage_before_the_recovery_point_removes_nothing_after_a_crash() -> None:
    sample = new_sample(is_clean=False)
    data = sample.disk.content(sample.path(-1, ".log"))
    sizes = {name: size for name, size in sample.disk.list(DIRECTORY).items() if ".log" in name}
    *_, (last, _) = split(bytes(data))
    data[last + 8] ^= 0x40

    _, repairs = open_with_repairs(sample.disk)

    assert [each.kind for each in repairs] == [RepairKind.BATCH_DAMAGED]
    listed = sample.disk.list(DIRECTORY)
    assert {name: size for name, size in listed.items() if ".log" in name} == sizes


def test_what_recovery_cuts_is_reported_with_its_first_offset() -> None:
    disk = MemoryDisk()
    log = get_log(open_catalog(disk))
    for number in range(4):
        log.append(numbered_batch(number), NOW)
    disk.kill()
    size = len(numbered_batch(0))
    disk.content(f"{DIRECTORY}/{0:020d}.log")[2 * size + 70] ^= 1

    _, (cut,) = open_with_repairs(disk)

    assert (cut.kind, cut.position, cut.bytes_truncated) == (
        RepairKind.TAIL_CUT,
        2 * size,
        2 * size,
    )
    assert cut.reason.endswith("cut from offset 2 on")


# Lost files


def remove_partition(disk: MemoryDisk, directory: str = DIRECTORY) -> None:
    for name in list(disk.list(directory)):
        disk.remove(f"{directory}/{name}")
    disk.remove(directory)


def remove_segment_files(disk: MemoryDisk, segment: str) -> None:
    for ending in (".log", ".index", ".timeindex"):
        disk.remove(f"{DIRECTORY}/{segment}{ending}")


@states
@pytest.mark.parametrize(
    "lost", ["directory", "first segment", "middle segment", "last segment", "tail"]
)
def test_partition_with_lost_records_is_refused_and_not_changed(
    lost: str, *, is_clean: bool
) -> None:
    sample = new_sample(is_clean=is_clean)
    disk = sample.disk
    end = sample.records[-1][0] + 1
    if lost == "directory":
        remove_partition(disk)
    elif lost == "first segment":
        remove_segment_files(disk, sample.segments[0])
    elif lost == "middle segment":
        remove_segment_files(disk, sample.segments[1])
    elif lost == "last segment":
        remove_segment_files(disk, sample.segments[-1])
    else:
        del disk.content(sample.path(-1, ".log"))[:]
    files = dict(disk.list(DIRECTORY)) if lost != "directory" else {}

    for _ in range(2):
        catalog, repairs = open_with_repairs(disk)
        log = get_log(catalog)

        assert log.is_refused
        (refused,) = [each for each in repairs if each.kind is RepairKind.PARTITION_REFUSED]
        assert refused.path == DIRECTORY
        assert "are missing" in refused.reason
        for use in (
            lambda log=log: log.append(numbered_batch(1), NOW),
            lambda log=log: log.read(Offset(0), 1, at_least_one=True),
            lambda log=log: list(log.batches(Offset(0))),
            lambda log=log: log.find_by_timestamp(NOW),
            lambda log=log: log.delete_before(Offset(1)),
        ):
            with pytest.raises(StorageError, match="are missing") as raised:
                use()
            assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        catalog.clean(NOW)
        catalog.close(NOW)
        logs = {name: size for name, size in disk.list(DIRECTORY).items() if ".log" in name}
        assert logs == {name: size for name, size in files.items() if ".log" in name}
    assert end > 0


@pytest.mark.parametrize("lost", ["directory", "first segment", "middle segment", "last segment"])
def test_partition_with_accepted_losses_never_uses_an_offset_again(lost: str) -> None:
    sample = new_sample()
    disk = sample.disk
    end = sample.records[-1][0] + 1
    if lost == "directory":
        remove_partition(disk)
    elif lost == "first segment":
        remove_segment_files(disk, sample.segments[0])
    elif lost == "middle segment":
        remove_segment_files(disk, sample.segments[1])
    else:
        remove_segment_files(disk, sample.segments[-1])

    catalog, repairs = Catalog.open(disk, NOW, accepted_losses={DIRECTORY})

    log = get_log(catalog)
    assert RepairKind.DATA_LOSS_ACCEPTED in {each.kind for each in repairs}
    assert log.append(numbered_batch(0), NOW).base_offset == end
    assert {key for key, _ in values_of(log)} <= {each[1] for each in sample.records} | {b"k0.0"}
    catalog.close(NOW)
    _, repairs = open_with_repairs(disk)
    assert repairs == ()


def test_refusal_takes_no_more_memory_with_every_use() -> None:
    sample = new_sample()
    remove_partition(sample.disk)
    log = get_log(open_with_repairs(sample.disk)[0])

    depths = set()
    for _ in range(3):
        with pytest.raises(StorageError) as caught:
            log.check_usable()
        depths.add(len(caught.traceback))

    assert len(depths) == 1


def test_other_partitions_are_served_beside_a_refused_one() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    catalog.create_topic(TOPIC, TOPIC_ID, 2, {})
    for number in (0, 1):
        log = catalog.partition(TOPIC, number)
        assert log is not None
        log.append(numbered_batch(number), NOW)
    catalog.close(NOW)
    remove_partition(disk)

    catalog, _ = open_with_repairs(disk)

    other = catalog.partition(TOPIC, 1)
    assert other is not None
    assert len(values_of(other)) == 1
    assert other.append(numbered_batch(2), NOW).base_offset == 1
    catalog.close(NOW)


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_new_topic_without_records_is_never_refused(*, is_checkpointed: bool) -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    get_log(catalog)
    if is_checkpointed:
        catalog.clean(NOW)
    disk.kill()

    catalog, repairs = open_with_repairs(disk)

    assert repairs == ()
    assert get_log(catalog).append(numbered_batch(0), NOW).base_offset == 0


def test_topic_created_again_is_not_compared_with_the_deleted_one() -> None:
    sample = new_sample()
    catalog = open_catalog(sample.disk)
    catalog.delete_topic(TOPIC)
    get_log(catalog)
    sample.disk.kill()

    catalog, repairs = open_with_repairs(sample.disk)

    assert repairs == ()
    assert get_log(catalog).end_offset == 0


def test_missing_checkpoint_files_refuse_nothing() -> None:
    sample = new_sample()
    sample.disk.remove(RECOVERY)
    sample.disk.remove(START)
    remove_segment_files(sample.disk, sample.segments[0])

    log = get_log(open_catalog(sample.disk))

    assert not log.is_refused
    assert log.end_offset == sample.records[-1][0] + 1


def test_missing_segment_is_reported_with_its_name_and_offsets() -> None:
    sample = new_sample()
    lost, following = sample.segments[1:3]
    remove_segment_files(sample.disk, lost)

    _, repairs = open_with_repairs(sample.disk)

    (refused,) = [each for each in repairs if each.kind is RepairKind.PARTITION_REFUSED]
    assert refused.reason.startswith(
        f"offsets {int(lost)} to {int(following) - 1} are missing: "
        f"there is no {DIRECTORY}/{lost}.log"
    )


def compacted_disk() -> MemoryDisk:
    """Segments that compaction has merged, with gaps between their batches, and others."""
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, COMPACTED)
    emptied: list[str] = []
    for number in range(60):
        log.append(new_batch(new_record(f"k{number % 3}", f"{number}".ljust(50))), NOW)
        if number == 40:
            catalog.clean(NOW)
            emptied = segment_bases(disk)
    catalog.clean(NOW)
    assert not set(emptied) <= set(segment_bases(disk)), "segments were merged"
    for number in range(60):
        log.append(numbered_batch(number), NOW)
    catalog.close(NOW)
    return disk


def segment_bases(disk: MemoryDisk) -> list[str]:
    return sorted(name[:20] for name in disk.list(DIRECTORY) if name.endswith(".log"))


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_compacted_log_with_gaps_is_never_refused(policy: str) -> None:
    disk = compacted_disk()
    catalog = open_catalog(disk)
    catalog.alter_settings(TOPIC, {**COMPACTED, "cleanup.policy": policy})
    catalog.close(NOW)

    catalog, repairs = open_with_repairs(disk)

    assert repairs == ()
    assert not get_log(catalog).is_refused
    remove_segment_files(disk, segment_bases(disk)[1])
    disk.kill()
    assert get_log(open_catalog(disk)).is_refused


def test_log_of_an_earlier_version_is_not_refused_for_its_gaps() -> None:
    sample = new_sample()
    sample.disk.remove(f"{DIRECTORY}/kohort-segments")
    remove_segment_files(sample.disk, sample.segments[1])

    catalog, _ = open_with_repairs(sample.disk)

    assert not get_log(catalog).is_refused
    get_log(catalog).append(numbered_batch(1), NOW)
    catalog.close(NOW)
    remove_segment_files(sample.disk, sample.segments[1])
    assert get_log(open_catalog(sample.disk)).is_refused


def test_segments_removed_by_retention_are_not_missed() -> None:
    sample = new_sample()
    catalog = open_catalog(sample.disk)
    log = get_log(catalog)
    log.delete_before(Offset(int(sample.segments[2])))
    sample.disk.kill()

    catalog, repairs = open_with_repairs(sample.disk)

    assert repairs == ()
    assert get_log(catalog).start_offset == int(sample.segments[0])
    log = get_log(catalog)
    log.delete_before(log.end_offset)
    catalog.clean(NOW)
    sample.disk.kill()
    assert open_with_repairs(sample.disk)[1] == ()


def test_list_of_segments_that_is_damaged_is_written_again() -> None:
    sample = new_sample()
    sample.disk.content(f"{DIRECTORY}/kohort-segments")[-2] ^= 1

    catalog, (repair,) = open_with_repairs(sample.disk)
    get_log(catalog).append(numbered_batch(1), NOW)
    catalog.close(NOW)

    assert repair.kind is RepairKind.FILE_REPAIRED
    assert repair.path == f"{DIRECTORY}/kohort-segments"
    assert open_with_repairs(sample.disk)[1] == ()
    sample.disk.kill()
    remove_segment_files(sample.disk, sample.segments[1])
    assert get_log(open_catalog(sample.disk)).is_refused
