"""DeleteRecords: what is given up, and what cannot be."""

import pytest

from kohort.types import Offset, Partition, Topic
from kohort.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.node.asking import Scene, name_of, new_batch, values_in


def delete(
    scene: Scene, offset: int, name: str = "t", version: int = 2
) -> DeleteRecordsPartitionResult:
    asked = DeleteRecordsPartition(partition_index=Partition(0), offset=Offset(offset))
    topic = DeleteRecordsTopic(name=Topic(name), partitions=(asked,))
    result = scene.answer(DeleteRecordsRequest(topics=(topic,)), version).topics[0].partitions[0]
    assert isinstance(result, DeleteRecordsPartitionResult)
    return result


@pytest.fixture
def history(scene: Scene) -> Scene:
    scene.create("t")
    for value in "abc":
        scene.produce(new_batch(value))
    return scene


@pytest.mark.parametrize("version", range(3))
def test_records_before_an_offset_are_gone_for_all_readers(history: Scene, version: int) -> None:
    told = delete(history, 2, version=version)

    assert (told.error_code, told.low_watermark) == (0, 2)
    assert name_of(history.fetch(1).error_code) == "OFFSET_OUT_OF_RANGE"
    left = history.fetch(2)
    assert (values_in(left.records), left.log_start_offset) == (["c"], 2)


def test_they_are_gone_after_a_restart_as_well(history: Scene) -> None:
    delete(history, 2)

    history.restart()

    assert history.fetch(2).log_start_offset == 2


def test_minus_one_gives_up_everything(history: Scene) -> None:
    assert delete(history, -1).low_watermark == 3
    assert history.fetch(3).high_watermark == 3


def test_what_is_gone_already_stays_gone(history: Scene) -> None:
    delete(history, 2)

    assert delete(history, 1).low_watermark == 2


@pytest.mark.parametrize("offset", [4, -2])
def test_an_offset_that_never_was_is_refused(history: Scene, offset: int) -> None:
    told = delete(history, offset)

    assert (name_of(told.error_code), told.low_watermark) == ("OFFSET_OUT_OF_RANGE", -1)


def test_what_must_stay_stays(history: Scene) -> None:
    history.create("compacted", cleanup_policy="compact")
    history.create("both", cleanup_policy="compact,delete")

    assert name_of(delete(history, 0, "missing").error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert name_of(delete(history, 0, "__consumer_offsets").error_code) == "INVALID_TOPIC_EXCEPTION"
    assert name_of(delete(history, 0, "compacted").error_code) == "POLICY_VIOLATION"
    assert name_of(delete(history, 0, "both").error_code) == "NONE"
