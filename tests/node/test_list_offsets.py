"""ListOffsets: earliest, latest and by timestamp."""

import pytest

from kohort.types import BrokerId, Millis, Partition, ProducerEpoch, ProducerId, Topic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.node.broker_harness import START, BrokerHarness, name_of, new_batch


def look(
    harness: BrokerHarness,
    timestamp: int,
    *,
    version: int = 11,
    epoch: int = -1,
    isolation: int = 0,
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(
        partition_index=Partition(0), timestamp=Millis(timestamp), current_leader_epoch=epoch
    )
    request = ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=isolation,
        topics=(ListOffsetsTopic(name=Topic("t"), partitions=(asked,)),),
    )
    result = harness.answer(request, version).topics[0].partitions[0]
    assert isinstance(result, ListOffsetsPartitionResponse)
    return result


@pytest.fixture
def history(harness: BrokerHarness) -> BrokerHarness:
    """Offsets 0 and 1 at 10 ms, 2 at 30 ms, 3 at 20 ms."""
    harness.create("t")
    harness.produce(new_batch("a", "b", at=START + 10))
    harness.produce(new_batch("c", at=START + 30))
    harness.produce(new_batch("d", at=START + 20))
    return harness


@pytest.mark.parametrize("version", range(1, 12))
def test_earliest_and_latest_have_no_timestamp(history: BrokerHarness, version: int) -> None:
    start, end = look(history, -2, version=version), look(history, -1, version=version)

    assert (start.offset, start.timestamp) == (0, -1)
    assert (end.offset, end.timestamp) == (4, -1)
    assert end.leader_epoch == start.leader_epoch == (0 if version >= 4 else -1)


@pytest.mark.parametrize(
    ("since_start", "offset", "timestamp"),
    [(0, 0, 10), (10, 0, 10), (11, 2, 30), (30, 2, 30), (31, -1, None)],
)
def test_timestamp_finds_the_first_record_not_older(
    history: BrokerHarness, since_start: int, offset: int, timestamp: int | None
) -> None:
    found = look(history, START + since_start)

    assert found.error_code == 0
    assert found.offset == offset
    assert found.timestamp == (-1 if timestamp is None else START + timestamp)


def test_max_timestamp_is_found_with_its_offset(history: BrokerHarness) -> None:
    found = look(history, -3)

    assert (found.offset, found.timestamp, found.leader_epoch) == (2, START + 30, 0)


def test_empty_partition_has_no_max_timestamp(harness: BrokerHarness) -> None:
    harness.create("t")

    found = look(harness, -3)

    assert (found.error_code, found.offset, found.timestamp) == (0, -1, -1)


def test_all_records_are_local_and_none_tiered(history: BrokerHarness) -> None:
    assert look(history, -4).offset == 0
    assert look(history, -5).offset == -1
    assert look(history, -6).offset == -1


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)])
def test_special_timestamp_requires_its_version(
    history: BrokerHarness, timestamp: int, version: int
) -> None:
    found = look(history, timestamp, version=version)

    assert name_of(found.error_code) == "UNSUPPORTED_VERSION"
    assert found.offset == -1


def test_newer_leader_epoch_is_refused(history: BrokerHarness) -> None:
    assert name_of(look(history, -1, epoch=1).error_code) == "UNKNOWN_LEADER_EPOCH"
    assert look(history, -1, epoch=0).error_code == 0


def test_unknown_and_duplicate_partitions_are_refused(history: BrokerHarness) -> None:
    twice = ListOffsetsPartition(partition_index=Partition(0), timestamp=Millis(-1))
    missing = ListOffsetsPartition(partition_index=Partition(9), timestamp=Millis(-1))
    topic = ListOffsetsTopic(name=Topic("t"), partitions=(twice, missing, twice))

    answer = history.answer(ListOffsetsRequest(topics=(topic,)), 11)

    errors = [name_of(each.error_code) for each in answer.topics[0].partitions]
    assert errors == ["INVALID_REQUEST", "UNKNOWN_TOPIC_OR_PARTITION"]


def test_read_committed_latest_is_the_last_stable_offset(history: BrokerHarness) -> None:
    log = history.catalog.partition(Topic("t"), 0)
    assert log is not None
    batch = new_batch(
        "open",
        at=START + 90,
        is_transactional=True,
        producer_id=ProducerId(3),
        producer_epoch=ProducerEpoch(0),
        base_sequence=0,
    )
    log.append_trusted(batch, history.now)

    assert look(history, -1).offset == 5
    assert look(history, -1, isolation=1).offset == 4
    assert look(history, START + 80).offset == 4
    assert look(history, START + 80, isolation=1).offset == -1
