"""Fetch: limits, waiting, and what is said where there is nothing to read."""

from typing import Any

import pytest

from kohort.coordinator.commands import CommitOffsets, OffsetToCommit
from kohort.types import GroupId, Millis, Offset, Partition, ProducerEpoch, ProducerId, Topic, Uuid
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from kohort.wire.batch import encode
from kohort.wire.control import EndTransactionMarker, MarkerType, new_marker_batch
from tests.node.asking import (
    START,
    Pending,
    Scene,
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


def only(pending: Pending) -> Any:
    return pending.answer.responses[0].partitions[0]


@pytest.mark.parametrize("version", range(4, 13))
def test_records_come_as_they_were_kept(scene: Scene, version: int) -> None:
    scene.create("t")
    scene.produce(new_batch("a", "b"))

    told = only(scene.ask(fetch_request(), version))

    assert values_in(told.records) == ["a", "b"]
    assert (told.error_code, told.high_watermark, told.last_stable_offset) == (0, 2, 2)
    assert told.log_start_offset == (0 if version >= 5 else -1)
    assert told.aborted_transactions is None


@pytest.mark.parametrize("version", range(13, 19))
def test_from_version_13_on_topics_go_by_id(scene: Scene, version: int) -> None:
    scene.create("t")
    scene.produce(new_batch("a"))
    asked = (FetchPartition(partition=Partition(0), partition_max_bytes=1 << 20),)
    known = FetchTopic(topic_id=scene.id_of("t"), partitions=asked)
    stranger = FetchTopic(topic_id=Uuid(b"\1" * 16), partitions=asked)

    answer = scene.answer(FetchRequest(min_bytes=1, topics=(stranger, known)), version)

    first, second = answer.responses
    assert name_of(first.partitions[0].error_code) == "UNKNOWN_TOPIC_ID"
    assert values_in(second.partitions[0].records) == ["a"]
    assert second.topic_id == scene.id_of("t")


# Errors


@pytest.mark.parametrize("offset", [-1, 2, 99])
def test_an_offset_outside_the_log_is_refused_at_once(scene: Scene, offset: int) -> None:
    scene.create("t")
    scene.produce(new_batch("a"))

    told = only(scene.ask(fetch_request(offset), 12))

    assert name_of(told.error_code) == "OFFSET_OUT_OF_RANGE"
    assert (told.high_watermark, told.log_start_offset) == (-1, -1)


@pytest.mark.parametrize(("name", "partition"), [("other", 0), ("t", 1)])
def test_a_partition_that_does_not_exist_is_refused(
    scene: Scene, name: str, partition: int
) -> None:
    scene.create("t")

    told = only(scene.ask(fetch_request(0, name, partition), 12))

    assert name_of(told.error_code) == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, "NONE"), (0, "NONE"), (1, "UNKNOWN_LEADER_EPOCH")]
)
def test_the_believed_leader_epoch_is_checked(scene: Scene, epoch: int, error: str) -> None:
    scene.create("t")
    asked = FetchPartition(partition=Partition(0), current_leader_epoch=epoch)
    topic = FetchTopic(topic=Topic("t"), partitions=(asked,))

    answer = scene.answer(FetchRequest(max_wait_ms=Millis(0), topics=(topic,)), 12)

    assert name_of(answer.responses[0].partitions[0].error_code) == error


def test_one_error_among_many_is_told_at_once_with_what_there_is(scene: Scene) -> None:
    scene.create("t", 2)
    scene.produce(new_batch("a"), partition=1)

    answer = scene.answer(fetch_many(0, 1, offset=1, min_bytes=99, max_wait_ms=Millis(500)), 12)

    errors = [name_of(each.error_code) for each in answer.responses[0].partitions]
    assert errors == ["OFFSET_OUT_OF_RANGE", "NONE"]


# Sessions


@pytest.mark.parametrize(("session_id", "epoch"), [(0, -1), (0, 0), (5, 0), (5, -1)])
def test_whoever_wants_a_session_is_given_none(scene: Scene, session_id: int, epoch: int) -> None:
    scene.create("t")
    scene.produce(new_batch("a"))

    answer = scene.answer(fetch_request(session_id=session_id, session_epoch=epoch), 12)

    assert (answer.error_code, answer.session_id) == (0, 0)
    assert values_in(answer.responses[0].partitions[0].records) == ["a"]


def test_a_session_nobody_gave_does_not_exist(scene: Scene) -> None:
    answer = scene.answer(FetchRequest(session_id=5, session_epoch=1), 12)

    assert name_of(answer.error_code) == "FETCH_SESSION_ID_NOT_FOUND"
    assert answer.responses == ()


def test_a_fetch_of_nothing_is_answered_at_once(scene: Scene) -> None:
    request = FetchRequest(max_wait_ms=Millis(500), min_bytes=1, session_epoch=-1)

    assert scene.answer(request, 12).responses == ()


# Limits, as KIP-74 has them


def test_the_first_batch_comes_whole_however_small_the_limits(scene: Scene) -> None:
    scene.create("t", 2)
    for partition in (0, 1):
        scene.produce(new_batch("x" * 100), partition=partition)

    answer = scene.answer(fetch_many(0, 1, max_bytes=1, min_bytes=1), 12)

    values = [values_in(each.records) for each in answer.responses[0].partitions]
    assert values == [["x" * 100], []]


def test_an_empty_partition_does_not_use_up_the_exception(scene: Scene) -> None:
    scene.create("t", 2)
    scene.produce(new_batch("x" * 100), partition=1)

    answer = scene.answer(fetch_many(0, 1, max_bytes=1, min_bytes=1), 12)

    assert values_in(answer.responses[0].partitions[1].records) == ["x" * 100]


def test_partitions_share_the_limit_in_the_order_asked(scene: Scene) -> None:
    scene.create("t", 3)
    batch = new_batch("x" * 100)
    for partition in range(3):
        scene.produce(batch, partition=partition)

    answer = scene.answer(fetch_many(2, 0, 1, max_bytes=2 * len(batch), min_bytes=1), 12)

    sizes = [len(each.records) for each in answer.responses[0].partitions]
    assert sizes == [len(batch), len(batch), 0]


def test_a_partition_has_a_limit_of_its_own(scene: Scene) -> None:
    scene.create("t")
    batch = new_batch("x" * 100)
    for _ in range(3):
        scene.produce(batch)
    asked = FetchPartition(partition=Partition(0), partition_max_bytes=2 * len(batch))
    topic = FetchTopic(topic=Topic("t"), partitions=(asked,))

    answer = scene.answer(FetchRequest(min_bytes=1, topics=(topic,)), 12)

    assert len(values_in(answer.responses[0].partitions[0].records)) == 2


# Waiting


def test_a_fetch_waits_as_long_as_it_said_and_then_gets_nothing(scene: Scene) -> None:
    scene.create("t")
    pending = scene.ask(fetch_request(max_wait_ms=500), 12)

    scene.advance(499)
    assert not pending.is_answered
    scene.advance(1)

    assert only(pending).records == b""
    assert only(pending).error_code == 0
    assert scene.broker.next_deadline() is None or len(scene.broker.fetches) == 0


def test_a_fetch_waits_until_there_is_as_much_as_it_wants(scene: Scene) -> None:
    scene.create("t")
    batch = new_batch("x" * 100)
    pending = scene.ask(fetch_request(min_bytes=2 * len(batch) + 1), 12)

    scene.produce(batch)
    scene.produce(batch)
    assert not pending.is_answered
    scene.produce(batch)

    assert len(values_in(only(pending).records)) == 3


def test_what_is_there_already_counts(scene: Scene) -> None:
    scene.create("t")
    batch = new_batch("x" * 100)
    scene.produce(batch)
    pending = scene.ask(fetch_request(min_bytes=2 * len(batch)), 12)
    assert not pending.is_answered

    scene.produce(batch)

    assert pending.is_answered


def test_records_elsewhere_wake_nobody(scene: Scene) -> None:
    scene.create("t", 2)
    pending = scene.ask(fetch_request(), 12)

    scene.produce(new_batch("a"), partition=1)

    assert not pending.is_answered


def test_nobody_waits_for_more_than_an_answer_can_hold(scene: Scene) -> None:
    scene.create("t")
    scene.produce(new_batch("a"))

    pending = scene.ask(fetch_request(min_bytes=1000, max_bytes=10), 12)

    assert pending.is_answered


def test_a_fetch_on_one_of_many_partitions_is_answered_for_all(scene: Scene) -> None:
    scene.create("t", 3)
    pending = scene.ask(fetch_many(0, 1, 2, min_bytes=1, max_wait_ms=Millis(500)), 12)

    scene.produce(new_batch("a"), partition=1)

    values = [values_in(each.records) for each in pending.answer.responses[0].partitions]
    assert values == [[], ["a"], []]
    assert len(scene.broker.fetches) == 0


def test_a_partition_asked_for_twice_is_answered_twice(scene: Scene) -> None:
    scene.create("t")
    pending = scene.ask(fetch_many(0, 0, min_bytes=1, max_wait_ms=Millis(500)), 12)

    scene.produce(new_batch("a"))

    assert len(pending.answer.responses[0].partitions) == 2
    assert len(scene.broker.fetches) == 0


def test_deleting_the_topic_answers_who_waits_for_it(scene: Scene) -> None:
    scene.create("t")
    pending = scene.ask(fetch_request(), 12)

    scene.answer(DeleteTopicsRequest(topic_names=(Topic("t"),)), 5)

    assert name_of(only(pending).error_code) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_shutting_down_answers_everybody(scene: Scene) -> None:
    scene.create("t")
    pending = scene.ask(fetch_request(), 12)

    scene.broker.shut_down(scene.now)

    assert only(pending).error_code == 0


def test_the_node_itself_wakes_who_waits_for_its_own_topics(scene: Scene) -> None:
    pending = scene.ask(fetch_request(0, "__consumer_offsets"), 12)
    offset = OffsetToCommit(topic=Topic("t"), partition=Partition(0), offset=Offset(5))
    ticket = scene.broker.groups.issue(lambda _: None)

    scene.broker.groups.submit(
        CommitOffsets(ticket=ticket, group_id=GroupId("g"), offsets=(offset,)), scene.now
    )

    assert only(pending).high_watermark == 1


# Transactions that somebody else has written


def transactional(value: str) -> bytes:
    return new_batch(
        value,
        is_transactional=True,
        producer_id=ProducerId(3),
        producer_epoch=ProducerEpoch(0),
        base_sequence=0,
    )


def test_readers_of_committed_records_stop_at_an_open_transaction(scene: Scene) -> None:
    scene.create("t")
    scene.produce(new_batch("a"))
    log = scene.catalog.partition(Topic("t"), 0)
    assert log is not None
    log.append_own(transactional("b"), scene.now)

    everything = only(scene.ask(fetch_request(), 12))
    committed = only(scene.ask(fetch_request(isolation_level=1), 12))

    assert values_in(everything.records) == ["a", "b"]
    assert values_in(committed.records) == ["a"]
    assert (committed.high_watermark, committed.last_stable_offset) == (2, 1)
    assert committed.aborted_transactions == ()


def test_readers_of_committed_records_are_told_what_was_aborted(scene: Scene) -> None:
    scene.create("t")
    log = scene.catalog.partition(Topic("t"), 0)
    assert log is not None
    log.append_own(transactional("b"), scene.now)
    marker = new_marker_batch(
        EndTransactionMarker(type=MarkerType.ABORT, coordinator_epoch=0),
        producer_id=ProducerId(3),
        producer_epoch=ProducerEpoch(0),
        timestamp=START,
        base_offset=Offset(0),
    )
    log.append_own(encode(marker), scene.now)

    told = only(scene.ask(fetch_request(isolation_level=1), 12))

    assert told.last_stable_offset == 2
    (aborted,) = told.aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (3, 0)
