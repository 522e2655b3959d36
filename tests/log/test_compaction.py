"""Compaction keeps the last record of each key at its offset and removes the others."""

from pathlib import Path
from typing import Never

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import compaction
from kohort.log.errors import OutOfResources, StorageError
from kohort.log.limits import Limits
from kohort.log.partition import PartitionLog
from kohort.types import Millis, Offset, Partition, Topic, Uuid
from kohort.wire.batch import Codec
from tests.log.faulty_disks import CrashingDisk, MemoryDisk
from tests.log.log_setup import (
    COMPACTED,
    NOW,
    SMALL_SEGMENTS,
    TOPIC,
    file_names,
    get_log,
    headers_of,
    latest_of,
    marker_batch,
    new_batch,
    new_record,
    open_catalog,
    open_log,
    read_all,
    records_of,
    values_of,
)


def fill(log: PartitionLog, rounds: int = 30, keys: int = 3, size: int = 60) -> None:
    """Append several rounds of records with the same keys."""
    for number in range(rounds):
        value = f"{number}".ljust(size, ".")
        log.append(new_batch(*(new_record(f"k{key}", value) for key in range(keys))), NOW)


def offsets_of(log: PartitionLog) -> list[int]:
    return [record.offset for record in records_of(read_all(log))]


def test_last_record_of_each_key_keeps_its_offset() -> None:
    disk = MemoryDisk()
    with open_log(disk, COMPACTED) as log:
        fill(log)
        before = latest_of(log)

        cleaned = log.clean(NOW)

        assert cleaned.compacted is not None
        assert cleaned.is_done
        cleaned_to = cleaned.compacted.cleaned_to
        kept = [each for each in records_of(read_all(log)) if each.offset < cleaned_to]
        assert [(each.key, each.offset) for each in kept] == [
            (b"k0", cleaned_to - 3),
            (b"k1", cleaned_to - 2),
            (b"k2", cleaned_to - 1),
        ]
        assert latest_of(log) == before
        assert cleaned.compacted.records_read == cleaned_to
        assert cleaned.compacted.records_kept == 3
    with open_log(disk) as log:
        assert latest_of(log) == before
        assert log.end_offset == 90


KEYS = st.integers(0, 5).map(lambda each: f"k{each}")
WRITES = st.lists(
    st.tuples(
        st.lists(st.tuples(KEYS, st.none() | st.integers(0, 9).map(str)), min_size=1, max_size=4),
        st.sampled_from(Codec),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


@given(writes=WRITES, keys_max=st.integers(1, 10))
@settings(max_examples=40)
def test_compaction_keeps_the_last_value_of_each_key(
    writes: list[tuple[list[tuple[str, str | None]], Codec, bool]], keys_max: int
) -> None:
    topic_settings = {**COMPACTED, "internal.segment.bytes": "500"}
    disk = MemoryDisk()
    expected: dict[bytes | None, bytes] = {}
    with open_log(disk, topic_settings, Limits(compaction_keys_max=keys_max)) as log:
        now = NOW
        for records, codec, cleans in writes:
            now = Millis(now + 300)
            batch = new_batch(*(new_record(key, text, now) for key, text in records), codec=codec)
            log.append(batch, now)
            for key, text in records:
                if text is None:
                    expected.pop(key.encode(), None)
                else:
                    expected[key.encode()] = text.encode()
            if cleans:
                assert log.clean(now).failure is None

        assert latest_of(log) == expected
        offsets = offsets_of(log)
        assert offsets == sorted(set(offsets))
        for offset in range(log.end_offset):
            data = log.read(Offset(offset), 1, at_least_one=True)
            assert headers_of(data)[0].last_offset >= offset
    with open_log(disk) as log:
        assert latest_of(log) == expected
        assert log.end_offset == sum(len(records) for records, _, _ in writes)


@given(writes=WRITES)
@settings(max_examples=25)
def test_fast_path_drops_the_same_batches_as_the_slow_path(
    writes: list[tuple[list[tuple[str, str | None]], Codec, bool]],
) -> None:
    topic_settings = {**COMPACTED, "internal.segment.bytes": "500"}
    outcomes = []
    for offsets_max in (1 << 20, 0):
        with (
            pytest.MonkeyPatch.context() as patch,
            open_log(MemoryDisk(), topic_settings) as log,
        ):
            patch.setattr(compaction, "_FAST_PATH_OFFSETS_MAX", offsets_max)
            reports = []
            for number, (records, codec, cleans) in enumerate(writes):
                now = Millis(NOW + 300 * number)
                batch = (new_record(key, text, now) for key, text in records)
                log.append(new_batch(*batch, codec=codec), now)
                if cleans:
                    reports.append(log.clean(now).compacted)
            outcomes.append((read_all(log), reports))

    assert outcomes[0] == outcomes[1]


def test_active_segment_is_not_compacted() -> None:
    with open_log(MemoryDisk(), {**COMPACTED, "internal.segment.bytes": "1000000"}) as log:
        fill(log)
        before = read_all(log)

        assert log.clean(NOW).compacted is None
        assert read_all(log) == before


def test_batch_with_all_records_kept_is_copied_unchanged() -> None:
    with open_log(MemoryDisk(), COMPACTED) as log:
        log.append(new_batch(new_record("only", "x" * 50), codec=Codec.GZIP), NOW)
        first = log.read(Offset(0), 1, at_least_one=True)
        fill(log)

        assert log.clean(NOW).compacted is not None
        assert log.read(Offset(0), 1, at_least_one=True) == first


def test_tombstone_is_removed_at_its_delete_horizon() -> None:
    with open_log(MemoryDisk(), COMPACTED) as log:
        log.append(new_batch(new_record("gone", "x")), NOW)
        log.append(new_batch(new_record("gone", None), new_record("kept", "y")), NOW)
        fill(log)

        log.clean(NOW)

        tombstone = headers_of(log.read(Offset(1), 1, at_least_one=True))[0]
        assert tombstone.has_delete_horizon
        assert tombstone.base_timestamp == NOW + 1000
        record = records_of(log.read(Offset(1), 1, at_least_one=True))[0]
        assert (record.offset, record.timestamp, record.value) == (1, NOW, None)

        fill(log)
        log.clean(Millis(NOW + 999))
        assert (b"gone", None) in values_of(log)

        fill(log)
        log.clean(Millis(NOW + 1000))
        assert (b"gone", None) not in values_of(log)
        assert (b"kept", b"y") in values_of(log)


def test_empty_batch_keeps_the_last_sequence_of_a_producer() -> None:
    disk = MemoryDisk()

    def send(log: PartitionLog, sequence: int) -> bool:
        batch = new_batch(
            new_record("k0", "p"), producer_id=5, producer_epoch=0, base_sequence=sequence
        )
        return log.append(batch, NOW).is_duplicate

    with open_log(disk, COMPACTED) as log:
        for sequence in range(4):
            send(log, sequence)
        fill(log)

        log.clean(NOW)

        left = [each for each in headers_of(read_all(log)) if each.producer_id == 5]
        assert [(each.base_sequence, each.record_count) for each in left] == [(3, 0)]
    for path in list(disk.list(f"{TOPIC}-0")):
        if path.endswith(".snapshot"):
            disk.remove(f"{TOPIC}-0/{path}")
    with open_log(disk) as log:
        assert send(log, 3)
        assert not send(log, 4)


def test_last_batch_of_the_range_is_kept_even_if_empty() -> None:
    """Otherwise there would be a gap before the next segment."""
    with open_log(MemoryDisk(), COMPACTED) as log:
        fill(log)
        transactional = new_batch(
            new_record("a", "x" * 900), producer_id=1, producer_epoch=0, is_transactional=True
        )
        offset = log.append_trusted(transactional, NOW).base_offset
        log.append_trusted(marker_batch(1, is_commit=False), NOW)
        log.append_trusted(new_batch(new_record("b"), producer_id=1, producer_epoch=0), NOW)

        compacted = log.clean(NOW).compacted

        assert compacted is not None
        assert compacted.cleaned_to == offset + 1
        headers = {each.base_offset: each for each in headers_of(read_all(log))}
        assert headers[offset].record_count == 0


@pytest.mark.parametrize(("ratio", "is_due"), [("0.49", True), ("0.99", False)])
def test_compaction_waits_for_the_dirty_ratio(
    ratio: str,
    is_due: bool,  # noqa: FBT001 - pytest gives parameters by name
) -> None:
    catalog = open_catalog(MemoryDisk())
    log = get_log(catalog, COMPACTED)
    for number in range(40):
        log.append(new_batch(new_record(f"k{number}", "v" * 100)), NOW)
    assert log.clean(NOW).compacted is not None
    for number in range(60):
        log.append(new_batch(new_record(f"l{number}", "v" * 100)), NOW)

    catalog.alter_settings(TOPIC, {**COMPACTED, "min.cleanable.dirty.ratio": ratio})

    assert (log.clean(NOW).compacted is not None) is is_due


def test_compacted_log_without_new_records_is_not_compacted_again() -> None:
    with open_log(MemoryDisk(), COMPACTED) as log:
        fill(log)
        log.clean(NOW)

        assert log.clean(NOW).compacted is None


def test_compaction_waits_for_min_compaction_lag() -> None:
    with open_log(MemoryDisk(), {**COMPACTED, "min.compaction.lag.ms": "500"}) as log:
        fill(log)

        assert log.clean(Millis(NOW + 499)).compacted is None
        assert log.clean(Millis(NOW + 500)).compacted is not None


def test_max_compaction_lag_overrides_the_dirty_ratio() -> None:
    topic_settings = {
        **COMPACTED,
        "min.cleanable.dirty.ratio": "1",
        "max.compaction.lag.ms": "500",
    }
    with open_log(MemoryDisk(), topic_settings) as log:
        fill(log)

        assert log.clean(Millis(NOW + 500)).compacted is None
        assert log.clean(Millis(NOW + 501)).compacted is not None


def test_compaction_runs_in_steps_between_appends() -> None:
    catalog = open_catalog(MemoryDisk())
    log = get_log(catalog, COMPACTED)
    fill(log, rounds=60)
    expected = latest_of(log)
    steps = 0
    while not catalog.clean(NOW, budget_bytes=1).is_done:
        steps += 1
        log.append(new_batch(new_record("k0", f"{steps}")), NOW)
        expected[b"k0"] = f"{steps}".encode()
        assert latest_of(log) == expected

    assert steps > 5
    assert latest_of(log) == expected


def test_other_partitions_are_cleaned_once_a_second_during_a_round() -> None:
    catalog = open_catalog(MemoryDisk())
    fill(get_log(catalog, COMPACTED), rounds=60)
    expiring = {**SMALL_SEGMENTS, "retention.ms": "1"}
    catalog.create_topic(Topic("visits"), Uuid(bytes(16)), 1, expiring)
    visits = catalog.partition(Topic("visits"), Partition(0))
    assert visits is not None
    assert not catalog.clean(NOW, budget_bytes=1).is_done
    fill(visits, rounds=60)

    assert not catalog.clean(Millis(NOW + 999), budget_bytes=1).partitions
    (cleaned,) = catalog.clean(Millis(NOW + 1000), budget_bytes=1).partitions

    assert cleaned.topic == "visits"
    assert cleaned.cleaned.segments_removed > 1


def test_other_partitions_are_cleaned_during_a_round_after_the_clock_was_set_back() -> None:
    catalog = open_catalog(MemoryDisk())
    fill(get_log(catalog, COMPACTED), rounds=60)
    small = {**SMALL_SEGMENTS, "retention.bytes": "1"}
    catalog.create_topic(Topic("visits"), Uuid(bytes(16)), 1, small)
    visits = catalog.partition(Topic("visits"), Partition(0))
    assert visits is not None
    assert not catalog.clean(NOW, budget_bytes=1).is_done
    fill(visits, rounds=60)

    catalog.clean(Millis(NOW - 3_600_000), budget_bytes=1)

    assert visits.start_offset > 0


def test_failed_round_is_not_retried_immediately() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    fill(get_log(catalog, COMPACTED), rounds=60)
    assert not catalog.clean(NOW, budget_bytes=1).is_done

    def fail(path: str) -> Never:
        raise StorageError(path, "create", "Input/output error")

    disk.create = fail  # type: ignore[method-assign]  # a disk that fails
    while not (cleaned := catalog.clean(NOW, budget_bytes=1)).partitions:
        assert not cleaned.is_done

    assert cleaned.partitions[0].cleaned.failure is not None
    assert cleaned.is_done


def test_deleting_a_topic_during_its_round_unblocks_other_topics() -> None:
    catalog = open_catalog(MemoryDisk())
    fill(get_log(catalog, COMPACTED), rounds=60)
    catalog.create_topic(Topic("visits"), Uuid(bytes(16)), 1, COMPACTED)
    visits = catalog.partition(Topic("visits"), Partition(0))
    assert visits is not None
    fill(visits, rounds=60)
    assert not catalog.clean(NOW, budget_bytes=1).is_done

    catalog.delete_topic(TOPIC)

    cleaned = [each.topic for _ in range(1000) for each in catalog.clean(NOW, 1).partitions]
    assert cleaned == ["visits"]
    assert catalog.clean(NOW, 1).is_done


def test_delete_records_cancels_the_round() -> None:
    disk = MemoryDisk()
    catalog = open_catalog(disk)
    log = get_log(catalog, COMPACTED)
    fill(log, rounds=60)
    expected = latest_of(log)
    while not any(name.endswith(".cleaned") for name in disk.list(f"{TOPIC}-0")):
        assert not log.clean(NOW, budget_bytes=1).is_done

    log.delete_before(Offset(100))

    assert not any(name.endswith(".cleaned") for name in disk.list(f"{TOPIC}-0"))
    assert log.clean(NOW).compacted is not None
    assert latest_of(log) == expected


def test_keys_above_the_limit_take_more_rounds() -> None:
    with open_log(MemoryDisk(), COMPACTED, Limits(compaction_keys_max=10)) as log:
        for number in range(120):
            log.append(new_batch(new_record(f"k{number % 40}", f"{number}".ljust(80))), NOW)
        expected = latest_of(log)

        positions = [0]
        while (compacted := log.clean(NOW).compacted) is not None:
            positions.append(compacted.cleaned_to)

        assert len(positions) > 5
        assert positions == sorted(set(positions))
        assert latest_of(log) == expected
        assert len(values_of(log)) < 60


def test_long_keys_are_distinguished() -> None:
    with open_log(MemoryDisk(), {**COMPACTED, "internal.segment.bytes": "3000"}) as log:
        for number in range(40):
            log.append(new_batch(new_record("k" * 200 + f"{number % 4}", f"{number}")), NOW)
        expected = latest_of(log)

        assert log.clean(NOW).compacted is not None
        assert latest_of(log) == expected
        assert len(expected) == 4


def test_small_segments_are_merged(tmp_path: Path) -> None:
    with open_log(tmp_path, COMPACTED) as log:
        fill(log, rounds=60)
        before = len(file_names(tmp_path / f"{TOPIC}-0"))
        log.clean(NOW)
        fill(log, rounds=4)

        log.clean(NOW)

        assert len(file_names(tmp_path / f"{TOPIC}-0")) < before // 3


def test_aborted_records_do_not_supersede_others() -> None:
    """The abort marker is kept until its records are removed, and then like a tombstone."""
    disk = MemoryDisk()
    with open_log(disk, COMPACTED) as log:
        log.append(new_batch(new_record("a", "committed")), NOW)
        for is_commit, value in ((False, "aborted"), (True, "also committed")):
            log.append_trusted(
                new_batch(
                    new_record("a" if not is_commit else "b", value),
                    producer_id=1,
                    producer_epoch=0,
                    is_transactional=True,
                ),
                NOW,
            )
            log.append_trusted(marker_batch(1, is_commit=is_commit), NOW)
        fill(log)

        log.clean(NOW)

        assert (b"a", b"committed") in values_of(log)
        assert (b"a", b"aborted") not in values_of(log)
        assert (b"b", b"also committed") in values_of(log)
        markers = [each.base_offset for each in headers_of(read_all(log)) if each.is_control]
        assert markers == [2, 4]

        fill(log)
        log.clean(NOW)
        fill(log)
        log.clean(Millis(NOW + 1000))

        markers = [each.base_offset for each in headers_of(read_all(log)) if each.is_control]
        assert markers == [4]
        assert (b"a", b"committed") in values_of(log)


def test_compaction_stops_before_an_open_transaction() -> None:
    with open_log(MemoryDisk(), COMPACTED) as log:
        fill(log, rounds=10)
        open_at = log.end_offset
        log.append_trusted(
            new_batch(new_record("t"), producer_id=1, producer_epoch=0, is_transactional=True), NOW
        )
        fill(log, rounds=30)

        compacted = log.clean(NOW).compacted

        assert compacted is not None
        assert compacted.cleaned_to <= open_at


def test_corrupt_batch_cancels_the_round(tmp_path: Path) -> None:
    with open_log(tmp_path, COMPACTED) as log:
        fill(log)
    segment = tmp_path / f"{TOPIC}-0" / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)

    with open_log(tmp_path) as log:
        cleaned = log.clean(NOW)

        assert cleaned.compacted is None
        assert cleaned.failure is not None
        assert "crc" in str(cleaned.failure)
    assert segment.read_bytes() == data
    assert not list(segment.parent.glob("*.cleaned"))


def test_cleanup_policy_compact_and_delete() -> None:
    topic_settings = {**COMPACTED, "cleanup.policy": "compact,delete", "retention.ms": "1000"}
    with open_log(MemoryDisk(), topic_settings) as log:
        fill(log)
        assert log.clean(NOW).compacted is not None

        assert log.clean(Millis(NOW + 1001)).segments_removed > 0
        assert values_of(log) == []


def test_cleaner_offset_checkpoint_is_written(tmp_path: Path) -> None:
    with open_log(tmp_path, COMPACTED) as log:
        fill(log)
        compacted = log.clean(NOW).compacted

    assert compacted is not None
    checkpoint = (tmp_path / "cleaner-offset-checkpoint").read_text()
    assert checkpoint.startswith(f"0\n2\n{TOPIC} 0 {compacted.cleaned_to}\n__kohort_checksum 0 ")


class ShortDisk(CrashingDisk):
    """Every change from number `first` on fails, as without descriptors or memory."""

    first: int | None = None

    def change(self) -> None:
        if self.first is not None and self.changes >= self.first:
            raise OutOfResources("orders-0", "open", "Cannot allocate memory")
        super().change()


def test_log_is_usable_after_a_shortage_at_any_step_of_a_compaction() -> None:
    at = 0
    while True:
        disk = ShortDisk(MemoryDisk())
        catalog = open_catalog(disk)
        log = get_log(catalog, COMPACTED)
        for number in range(60):
            log.append(new_batch(new_record(f"k{number % 3}", f"{number}".ljust(50))), NOW)
        expected = latest_of(log)
        disk.first = disk.changes + at
        result = catalog.clean(NOW)
        disk.first = None
        if any(each.cleaned.compacted for each in result.partitions):
            break

        log.append(new_batch(new_record("last", "x")), NOW)
        assert latest_of(log) == {**expected, b"last": b"x"}
        catalog.clean(NOW)
        assert latest_of(log) == {**expected, b"last": b"x"}
        catalog.close(NOW)
        at += 1
    assert at > 20
