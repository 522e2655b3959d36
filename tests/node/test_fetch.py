"""Fetch: limits, waiting and errors."""

from typing import Any

import pytest

from kohort.coordinator.commands import CommitOffsets, OffsetToCommit
from kohort.types import GroupId, Millis, Offset, Partition, ProducerEpoch, ProducerId, Topic, Uuid
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from kohort.wire.batch import encode
from kohort.wire.control_batch import EndTransactionMarker, MarkerType, new_marker_batch
from tests.node.broker_harness import (
    START,
    BrokerHarness,
    PendingResponse,
    fetch_request,
    name_of,
    new_batch,
    values_in,
)


def fetch_many(*partitions: int, offset: int = 0, **options: Any) -> FetchRequest:
    asked = tuple(
        FetchPartition(
            partition=Partition(each), fetch_offset=Offset(offset), partition_max_bytes=1 << 20
        )
        for each in partitions
    )
    return FetchRequest(topics=(FetchTopic(topic=Topic("t"), partitions=asked),), **options)


def only(pending: PendingResponse) -> Any:
    return pending.answer.responses[0].partitions[0]


@pytest.mark.parametrize("version", range(4, 13))
def test_fetch_returns_the_stored_bytes(harness: BrokerHarness, version: int) -> None:
    harness.create("t")
    harness.produce(new_batch("a", "b"))

    returned = only(harness.ask(fetch_request(), version))

    assert values_in(returned.records) == ["a", "b"]
    assert (returned.error_code, returned.high_watermark, returned.last_stable_offset) == (0, 2, 2)
    assert returned.log_start_offset == (0 if version >= 5 else -1)
    assert returned.aborted_transactions is None


@pytest.mark.parametrize("version", range(13, 19))
def test_version_13_uses_topic_ids(harness: BrokerHarness, version: int) -> None:
    harness.create("t")
    harness.produce(new_batch("a"))
    asked = (FetchPartition(partition=Partition(0), partition_max_bytes=1 << 20),)
    known = FetchTopic(topic_id=harness.id_of("t"), partitions=asked)
    foreign = FetchTopic(topic_id=Uuid(b"\1" * 16), partitions=asked)

    answer = harness.answer(FetchRequest(min_bytes=1, topics=(foreign, known)), version)

    first, second = answer.responses
    assert name_of(first.partitions[0].error_code) == "UNKNOWN_TOPIC_ID"
    assert values_in(second.partitions[0].records) == ["a"]
    assert second.topic_id == harness.id_of("t")


# Errors


@pytest.mark.parametrize("offset", [-1, 2, 99])
def test_offset_out_of_range_is_refused_at_once(harness: BrokerHarness, offset: int) -> None:
    harness.create("t")
    harness.produce(new_batch("a"))

    returned = only(harness.ask(fetch_request(offset), 12))

    assert name_of(returned.error_code) == "OFFSET_OUT_OF_RANGE"
    assert (returned.high_watermark, returned.log_start_offset) == (-1, -1)


@pytest.mark.parametrize(("name", "partition"), [("other", 0), ("t", 1)])
def test_unknown_partition_is_refused(harness: BrokerHarness, name: str, partition: int) -> None:
    harness.create("t")

    returned = only(harness.ask(fetch_request(0, name, partition), 12))

    assert name_of(returned.error_code) == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, "NONE"), (0, "NONE"), (1, "UNKNOWN_LEADER_EPOCH")]
)
def test_current_leader_epoch_is_checked(harness: BrokerHarness, epoch: int, error: str) -> None:
    harness.create("t")
    asked = FetchPartition(partition=Partition(0), current_leader_epoch=epoch)
    topic = FetchTopic(topic=Topic("t"), partitions=(asked,))

    answer = harness.answer(FetchRequest(max_wait_ms=Millis(0), topics=(topic,)), 12)

    assert name_of(answer.responses[0].partitions[0].error_code) == error


def test_one_error_completes_the_fetch_at_once(harness: BrokerHarness) -> None:
    harness.create("t", 2)
    harness.produce(new_batch("a"), partition=1)

    answer = harness.answer(fetch_many(0, 1, offset=1, min_bytes=99, max_wait_ms=Millis(500)), 12)

    errors = [name_of(each.error_code) for each in answer.responses[0].partitions]
    assert errors == ["OFFSET_OUT_OF_RANGE", "NONE"]


# Sessions


@pytest.mark.parametrize(("session_id", "epoch"), [(0, -1), (0, 0), (5, 0), (5, -1)])
def test_fetch_session_is_declined(harness: BrokerHarness, session_id: int, epoch: int) -> None:
    harness.create("t")
    harness.produce(new_batch("a"))

    answer = harness.answer(fetch_request(session_id=session_id, session_epoch=epoch), 12)

    assert (answer.error_code, answer.session_id) == (0, 0)
    assert values_in(answer.responses[0].partitions[0].records) == ["a"]


def test_unknown_fetch_session_is_refused(harness: BrokerHarness) -> None:
    answer = harness.answer(FetchRequest(session_id=5, session_epoch=1), 12)

    assert name_of(answer.error_code) == "FETCH_SESSION_ID_NOT_FOUND"
    assert answer.responses == ()


def test_a_fetch_of_nothing_is_answered_at_once(harness: BrokerHarness) -> None:
    request = FetchRequest(max_wait_ms=Millis(500), min_bytes=1, session_epoch=-1)

    assert harness.answer(request, 12).responses == ()


# Limits, as KIP-74 has them


def test_first_batch_is_complete_even_above_the_limits(harness: BrokerHarness) -> None:
    harness.create("t", 2)
    for partition in (0, 1):
        harness.produce(new_batch("x" * 100), partition=partition)

    answer = harness.answer(fetch_many(0, 1, max_bytes=1, min_bytes=1), 12)

    values = [values_in(each.records) for each in answer.responses[0].partitions]
    assert values == [["x" * 100], []]


def test_empty_partition_does_not_count_as_the_first_batch(harness: BrokerHarness) -> None:
    harness.create("t", 2)
    harness.produce(new_batch("x" * 100), partition=1)

    answer = harness.answer(fetch_many(0, 1, max_bytes=1, min_bytes=1), 12)

    assert values_in(answer.responses[0].partitions[1].records) == ["x" * 100]


def test_partitions_share_the_limit_in_request_order(harness: BrokerHarness) -> None:
    harness.create("t", 3)
    batch = new_batch("x" * 100)
    for partition in range(3):
        harness.produce(batch, partition=partition)

    answer = harness.answer(fetch_many(2, 0, 1, max_bytes=2 * len(batch), min_bytes=1), 12)

    sizes = [len(each.records) for each in answer.responses[0].partitions]
    assert sizes == [len(batch), len(batch), 0]


def test_partition_limit_applies(harness: BrokerHarness) -> None:
    harness.create("t")
    batch = new_batch("x" * 100)
    for _ in range(3):
        harness.produce(batch)
    asked = FetchPartition(partition=Partition(0), partition_max_bytes=2 * len(batch))
    topic = FetchTopic(topic=Topic("t"), partitions=(asked,))

    answer = harness.answer(FetchRequest(min_bytes=1, topics=(topic,)), 12)

    assert len(values_in(answer.responses[0].partitions[0].records)) == 2


# Waiting


def test_fetch_waits_max_wait_ms_and_returns_no_records(harness: BrokerHarness) -> None:
    harness.create("t")
    pending = harness.ask(fetch_request(max_wait_ms=500), 12)

    harness.advance(499)
    assert not pending.is_answered
    harness.advance(1)

    assert only(pending).records == b""
    assert only(pending).error_code == 0
    assert harness.broker.next_deadline() is None or len(harness.broker.purgatory) == 0


def test_fetch_waits_until_min_bytes_are_available(harness: BrokerHarness) -> None:
    harness.create("t")
    batch = new_batch("x" * 100)
    pending = harness.ask(fetch_request(min_bytes=2 * len(batch) + 1), 12)

    harness.produce(batch)
    harness.produce(batch)
    assert not pending.is_answered
    harness.produce(batch)

    assert len(values_in(only(pending).records)) == 3


def test_available_bytes_count_towards_min_bytes(harness: BrokerHarness) -> None:
    harness.create("t")
    batch = new_batch("x" * 100)
    harness.produce(batch)
    pending = harness.ask(fetch_request(min_bytes=2 * len(batch)), 12)
    assert not pending.is_answered

    harness.produce(batch)

    assert pending.is_answered


def test_append_to_another_partition_does_not_complete_a_fetch(harness: BrokerHarness) -> None:
    harness.create("t", 2)
    pending = harness.ask(fetch_request(), 12)

    harness.produce(new_batch("a"), partition=1)

    assert not pending.is_answered


def test_min_bytes_is_capped_by_the_maximum_response(harness: BrokerHarness) -> None:
    harness.create("t")
    harness.produce(new_batch("a"))

    pending = harness.ask(fetch_request(min_bytes=1000, max_bytes=10), 12)

    assert pending.is_answered


def test_completed_fetch_has_all_partitions(harness: BrokerHarness) -> None:
    harness.create("t", 3)
    pending = harness.ask(fetch_many(0, 1, 2, min_bytes=1, max_wait_ms=Millis(500)), 12)

    harness.produce(new_batch("a"), partition=1)

    values = [values_in(each.records) for each in pending.answer.responses[0].partitions]
    assert values == [[], ["a"], []]
    assert len(harness.broker.purgatory) == 0


def test_last_entry_for_a_partition_counts(harness: BrokerHarness) -> None:
    harness.create("t")
    harness.produce(new_batch("a"))
    harness.produce(new_batch("b"))
    first, last = fetch_many(0, offset=0).topics[0], fetch_many(0, offset=1).topics[0]

    answer = harness.answer(FetchRequest(topics=(first, last, first, last)), 12)

    (topic,) = answer.responses
    (partition,) = topic.partitions
    assert values_in(partition.records) == ["b"]


def test_waiting_fetch_that_names_a_partition_often_is_parked_once(harness: BrokerHarness) -> None:
    harness.create("t")
    pending = harness.ask(fetch_many(0, 0, min_bytes=1, max_wait_ms=Millis(500)), 12)

    harness.produce(new_batch("a"))

    assert len(pending.answer.responses[0].partitions) == 1
    assert len(harness.broker.purgatory) == 0


def test_deleting_the_topic_completes_its_fetches(harness: BrokerHarness) -> None:
    harness.create("t")
    pending = harness.ask(fetch_request(), 12)

    harness.answer(DeleteTopicsRequest(topic_names=(Topic("t"),)), 5)

    assert name_of(only(pending).error_code) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_shutdown_completes_all_fetches(harness: BrokerHarness) -> None:
    harness.create("t")
    pending = harness.ask(fetch_request(), 12)

    harness.shut_down()

    assert only(pending).error_code == 0


def test_appends_to_internal_topics_complete_fetches(harness: BrokerHarness) -> None:
    pending = harness.ask(fetch_request(0, "__consumer_offsets"), 12)
    offset = OffsetToCommit(topic=Topic("t"), partition=Partition(0), offset=Offset(5))

    harness.submit(
        lambda ticket: CommitOffsets(ticket=ticket, group_id=GroupId("g"), offsets=(offset,))
    )

    assert only(pending).high_watermark == 1


# Imported transactions


def transactional(value: str) -> bytes:
    return new_batch(
        value,
        is_transactional=True,
        producer_id=ProducerId(3),
        producer_epoch=ProducerEpoch(0),
        base_sequence=0,
    )


def test_read_committed_stops_at_an_open_transaction(harness: BrokerHarness) -> None:
    harness.create("t")
    harness.produce(new_batch("a"))
    log = harness.catalog.partition(Topic("t"), 0)
    assert log is not None
    log.append_trusted(transactional("b"), harness.now)

    everything = only(harness.ask(fetch_request(), 12))
    committed = only(harness.ask(fetch_request(isolation_level=1), 12))

    assert values_in(everything.records) == ["a", "b"]
    assert values_in(committed.records) == ["a"]
    assert (committed.high_watermark, committed.last_stable_offset) == (2, 1)
    assert committed.aborted_transactions == ()


def test_read_committed_returns_aborted_transactions(harness: BrokerHarness) -> None:
    harness.create("t")
    log = harness.catalog.partition(Topic("t"), 0)
    assert log is not None
    log.append_trusted(transactional("b"), harness.now)
    marker = new_marker_batch(
        EndTransactionMarker(type=MarkerType.ABORT, coordinator_epoch=0),
        producer_id=ProducerId(3),
        producer_epoch=ProducerEpoch(0),
        timestamp=START,
        base_offset=Offset(0),
    )
    log.append_trusted(encode(marker), harness.now)

    returned = only(harness.ask(fetch_request(isolation_level=1), 12))

    assert returned.last_stable_offset == 2
    (aborted,) = returned.aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (3, 0)
