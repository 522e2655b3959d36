"""ListOffsets: beginnings, ends and moments."""

import pytest

from kohort.types import BrokerId, Millis, Partition, ProducerEpoch, ProducerId, Topic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.node.asking import START, Scene, name_of, new_batch


def look(
    scene: Scene, timestamp: int, *, version: int = 11, epoch: int = -1, isolation: int = 0
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(
        partition_index=Partition(0), timestamp=Millis(timestamp), current_leader_epoch=epoch
    )
    request = ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=isolation,
        topics=(ListOffsetsTopic(name=Topic("t"), partitions=(asked,)),),
    )
    result = scene.answer(request, version).topics[0].partitions[0]
    assert isinstance(result, ListOffsetsPartitionResponse)
    return result


@pytest.fixture
def history(scene: Scene) -> Scene:
    """Offsets 0 and 1 at 10 ms, 2 at 30 ms, 3 at 20 ms."""
    scene.create("t")
    scene.produce(new_batch("a", "b", at=START + 10))
    scene.produce(new_batch("c", at=START + 30))
    scene.produce(new_batch("d", at=START + 20))
    return scene


@pytest.mark.parametrize("version", range(1, 12))
def test_the_beginning_and_the_end_are_positions_without_a_time(
    history: Scene, version: int
) -> None:
    start, end = look(history, -2, version=version), look(history, -1, version=version)

    assert (start.offset, start.timestamp) == (0, -1)
    assert (end.offset, end.timestamp) == (4, -1)
    assert end.leader_epoch == start.leader_epoch == (0 if version >= 4 else -1)


@pytest.mark.parametrize(
    ("since_start", "offset", "timestamp"),
    [(0, 0, 10), (10, 0, 10), (11, 2, 30), (30, 2, 30), (31, -1, None)],
)
def test_a_moment_finds_the_first_record_that_is_not_older(
    history: Scene, since_start: int, offset: int, timestamp: int | None
) -> None:
    found = look(history, START + since_start)

    assert found.error_code == 0
    assert found.offset == offset
    assert found.timestamp == (-1 if timestamp is None else START + timestamp)


def test_the_newest_timestamp_is_found_with_its_offset(history: Scene) -> None:
    found = look(history, -3)

    assert (found.offset, found.timestamp, found.leader_epoch) == (2, START + 30, 0)


def test_an_empty_partition_has_no_newest_timestamp(scene: Scene) -> None:
    scene.create("t")

    found = look(scene, -3)

    assert (found.error_code, found.offset, found.timestamp) == (0, -1, -1)


def test_everything_is_local_and_nothing_is_tiered(history: Scene) -> None:
    assert look(history, -4).offset == 0
    assert look(history, -5).offset == -1
    assert look(history, -6).offset == -1


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)])
def test_a_special_time_needs_a_version_that_knows_it(
    history: Scene, timestamp: int, version: int
) -> None:
    found = look(history, timestamp, version=version)

    assert name_of(found.error_code) == "UNSUPPORTED_VERSION"
    assert found.offset == -1


def test_a_leader_epoch_from_the_future_is_not_known(history: Scene) -> None:
    assert name_of(look(history, -1, epoch=1).error_code) == "UNKNOWN_LEADER_EPOCH"
    assert look(history, -1, epoch=0).error_code == 0


def test_a_missing_partition_and_one_named_twice_are_refused(history: Scene) -> None:
    twice = ListOffsetsPartition(partition_index=Partition(0), timestamp=Millis(-1))
    missing = ListOffsetsPartition(partition_index=Partition(9), timestamp=Millis(-1))
    topic = ListOffsetsTopic(name=Topic("t"), partitions=(twice, missing, twice))

    answer = history.answer(ListOffsetsRequest(topics=(topic,)), 11)

    errors = [name_of(each.error_code) for each in answer.topics[0].partitions]
    assert errors == ["INVALID_REQUEST", "UNKNOWN_TOPIC_OR_PARTITION"]


def test_readers_of_committed_records_end_where_a_transaction_is_open(history: Scene) -> None:
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
    log.append_own(batch, history.now)

    assert look(history, -1).offset == 5
    assert look(history, -1, isolation=1).offset == 4
    assert look(history, START + 80).offset == 4
    assert look(history, START + 80, isolation=1).offset == -1
