"""DeleteRecords."""

import pytest

from kohort.types import Offset, Partition, Topic
from kohort.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.node.broker_harness import BrokerHarness, name_of, new_batch, values_in


def delete(
    harness: BrokerHarness, offset: int, name: str = "t", version: int = 2
) -> DeleteRecordsPartitionResult:
    asked = DeleteRecordsPartition(partition_index=Partition(0), offset=Offset(offset))
    topic = DeleteRecordsTopic(name=Topic(name), partitions=(asked,))
    result = harness.answer(DeleteRecordsRequest(topics=(topic,)), version).topics[0].partitions[0]
    assert isinstance(result, DeleteRecordsPartitionResult)
    return result


@pytest.fixture
def history(harness: BrokerHarness) -> BrokerHarness:
    harness.create("t")
    for value in "abc":
        harness.produce(new_batch(value))
    return harness


@pytest.mark.parametrize("version", range(3))
def test_records_before_the_offset_are_deleted(history: BrokerHarness, version: int) -> None:
    returned = delete(history, 2, version=version)

    assert (returned.error_code, returned.low_watermark) == (0, 2)
    assert name_of(history.fetch(1).error_code) == "OFFSET_OUT_OF_RANGE"
    left = history.fetch(2)
    assert (values_in(left.records), left.log_start_offset) == (["c"], 2)


def test_deleted_records_stay_deleted_after_a_restart(history: BrokerHarness) -> None:
    delete(history, 2)

    history.restart()

    assert history.fetch(2).log_start_offset == 2


def test_minus_one_deletes_all_records(history: BrokerHarness) -> None:
    assert delete(history, -1).low_watermark == 3
    assert history.fetch(3).high_watermark == 3


def test_deleting_before_the_log_start_changes_nothing(history: BrokerHarness) -> None:
    delete(history, 2)

    assert delete(history, 1).low_watermark == 2


@pytest.mark.parametrize("offset", [4, -2])
def test_offset_beyond_the_end_is_refused(history: BrokerHarness, offset: int) -> None:
    returned = delete(history, offset)

    assert (name_of(returned.error_code), returned.low_watermark) == ("OFFSET_OUT_OF_RANGE", -1)


def test_internal_and_compacted_topics_are_refused(history: BrokerHarness) -> None:
    history.create("compacted", cleanup_policy="compact")
    history.create("both", cleanup_policy="compact,delete")

    assert name_of(delete(history, 0, "missing").error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert name_of(delete(history, 0, "__consumer_offsets").error_code) == "INVALID_TOPIC_EXCEPTION"
    assert name_of(delete(history, 0, "compacted").error_code) == "POLICY_VIOLATION"
    assert name_of(delete(history, 0, "both").error_code) == "NONE"
