"""Produce: appends, errors and the time of the response."""

import struct
from pathlib import Path

import pytest

from kohort.types import ZERO_UUID, ProducerEpoch, ProducerId, Topic, Uuid
from kohort.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.batch import Codec
from tests.node.broker_harness import (
    START,
    BrokerHarness,
    fetch_request,
    name_of,
    new_batch,
    produce_request,
    values_in,
)


def idempotent(sequence: int, *values: str, epoch: int = 0) -> bytes:
    return new_batch(
        *values,
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(epoch),
        base_sequence=sequence,
    )


@pytest.mark.parametrize("version", range(3, 13))
def test_batch_gets_the_next_offsets_and_can_be_fetched(
    harness: BrokerHarness, version: int
) -> None:
    harness.create("t")
    harness.produce(new_batch("a", "b"), version=version)

    returned = harness.produce(new_batch("c"), version=version)

    assert (returned.error_code, returned.base_offset, returned.log_append_time_ms) == (0, 2, -1)
    assert returned.log_start_offset == (0 if version >= 5 else -1)
    assert values_in(harness.fetch().records) == ["a", "b", "c"]


def test_version_13_uses_topic_ids(harness: BrokerHarness) -> None:
    harness.create("t")
    data = (PartitionProduceData(index=0, records=new_batch("a")),)
    known = TopicProduceData(topic_id=harness.id_of("t"), partition_data=data)
    foreign = TopicProduceData(topic_id=Uuid(b"\1" * 16), partition_data=data)

    answer = harness.answer(ProduceRequest(acks=1, topic_data=(known, foreign)), 13)

    errors = [name_of(t.partition_responses[0].error_code) for t in answer.responses]
    assert errors == ["NONE", "UNKNOWN_TOPIC_ID"]
    assert [t.topic_id for t in answer.responses] == [harness.id_of("t"), Uuid(b"\1" * 16)]
    assert ZERO_UUID not in [t.topic_id for t in answer.responses]


@pytest.mark.parametrize(("name", "partition"), [("other", 0), ("t", 1), ("t", -1)])
def test_unknown_partition_is_refused(harness: BrokerHarness, name: str, partition: int) -> None:
    harness.create("t")

    returned = harness.produce(new_batch("a"), name, partition)

    assert name_of(returned.error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert returned.base_offset == -1


def test_corrupt_batch_is_refused_and_not_appended(harness: BrokerHarness) -> None:
    harness.create("t")
    damaged = bytearray(new_batch("abc"))
    damaged[-2] ^= 1

    returned = harness.produce(bytes(damaged))

    assert name_of(returned.error_code) == "CORRUPT_MESSAGE"
    assert "crc" in (returned.error_message or "")
    assert harness.fetch().high_watermark == 0


def test_a_batch_above_the_limit_is_refused(harness: BrokerHarness) -> None:
    harness.create("t", max_message_bytes="100")

    returned = harness.produce(new_batch("x" * 200))

    assert name_of(returned.error_code) == "MESSAGE_TOO_LARGE"


@pytest.mark.parametrize("batch", [None, b"", new_batch("a") + new_batch("b")])
def test_records_must_be_exactly_one_batch(harness: BrokerHarness, batch: bytes | None) -> None:
    harness.create("t")

    answer = harness.answer(produce_request(batch), 12)

    returned = answer.responses[0].partition_responses[0]
    assert name_of(returned.error_code) == "INVALID_RECORD"
    assert returned.error_message


def test_older_message_formats_are_refused(harness: BrokerHarness) -> None:
    harness.create("t")
    old = bytearray(new_batch("a"))
    old[16] = 1

    assert name_of(harness.produce(bytes(old)).error_code) == "INVALID_RECORD"


def test_zstd_requires_a_newer_version(harness: BrokerHarness) -> None:
    harness.create("t")
    batch = new_batch("a" * 100, codec=Codec.ZSTD)

    before = harness.produce(batch, version=6)
    since = harness.produce(batch, version=7)

    assert name_of(before.error_code) == "UNSUPPORTED_COMPRESSION_TYPE"
    assert name_of(since.error_code) == "NONE"


def test_compacted_topic_requires_keys(harness: BrokerHarness) -> None:
    harness.create("t", cleanup_policy="compact")

    returned = harness.produce(new_batch("a", key=None))

    assert name_of(returned.error_code) == "INVALID_RECORD"
    assert "key" in (returned.error_message or "")


def test_log_append_time_is_returned(harness: BrokerHarness) -> None:
    harness.create("t", message_timestamp_type="LogAppendTime")
    harness.advance(50)

    returned = harness.produce(new_batch("a", at=START))

    assert returned.log_append_time_ms == START + 50


def test_invalid_acks_are_refused(harness: BrokerHarness) -> None:
    harness.create("t")

    returned = harness.produce(new_batch("a"), acks=2)

    assert name_of(returned.error_code) == "INVALID_REQUIRED_ACKS"
    assert harness.fetch().high_watermark == 0


@pytest.mark.parametrize("name", ["__consumer_offsets", "__kohort_events"])
def test_internal_topics_are_refused(harness: BrokerHarness, name: str) -> None:
    harness.broker.topics.events_partition()

    returned = harness.produce(new_batch("a"), name)

    assert name_of(returned.error_code) == "INVALID_TOPIC_EXCEPTION"


def test_transactional_batches_are_refused(harness: BrokerHarness) -> None:
    harness.create("t")

    returned = harness.produce(
        new_batch(
            "a",
            is_transactional=True,
            producer_id=ProducerId(1),
            producer_epoch=ProducerEpoch(0),
            base_sequence=0,
        )
    )

    assert name_of(returned.error_code) == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


# Idempotent producers


def test_duplicate_batch_is_stored_once_and_returns_its_offset(harness: BrokerHarness) -> None:
    harness.create("t")
    first = harness.produce(idempotent(0, "a", "b"))
    harness.produce(idempotent(2, "c"))

    again = harness.produce(idempotent(0, "a", "b"))

    assert (again.error_code, again.base_offset) == (0, first.base_offset)
    assert harness.fetch().high_watermark == 3


def test_a_gap_in_the_sequence_is_refused(harness: BrokerHarness) -> None:
    harness.create("t")
    harness.produce(idempotent(0, "a"))

    returned = harness.produce(idempotent(2, "c"))

    assert name_of(returned.error_code) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_an_older_epoch_of_a_producer_is_refused(harness: BrokerHarness) -> None:
    harness.create("t")
    harness.produce(idempotent(0, "a", epoch=3))

    returned = harness.produce(idempotent(1, "b", epoch=2))

    assert name_of(returned.error_code) == "INVALID_PRODUCER_EPOCH"


def test_a_duplicate_is_still_known_after_a_restart(harness: BrokerHarness) -> None:
    harness.create("t")
    first = harness.produce(idempotent(0, "a"))

    harness.restart()
    again = harness.produce(idempotent(0, "a"))

    assert again.base_offset == first.base_offset
    assert harness.fetch().high_watermark == 1


# When the response is sent


def test_acks_all_waits_for_the_sync_and_acks_1_does_not(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, syncs=True)
    harness.create("t")

    all_ = harness.ask(produce_request(new_batch("a"), acks=-1), 12)
    one = harness.ask(produce_request(new_batch("b"), acks=1), 12)
    assert (all_.is_answered, one.is_answered) == (False, True)
    harness.sync()

    assert all_.answer.responses[0].partition_responses[0].base_offset == 0
    harness.close()


def test_error_does_not_wait_for_the_sync(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, syncs=True)

    assert harness.ask(produce_request(new_batch("a"), acks=-1), 12).is_answered
    harness.close()


def test_duplicate_waits_for_the_sync_of_the_original(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, syncs=True)
    harness.create("t")
    harness.ask(produce_request(idempotent(0, "a"), acks=-1), 12)

    again = harness.ask(produce_request(idempotent(0, "a"), acks=-1), 12)
    assert not again.is_answered
    harness.sync()

    assert again.answer.responses[0].partition_responses[0].base_offset == 0
    harness.close()


def test_acks_0_gets_no_response(harness: BrokerHarness) -> None:
    harness.create("t")

    pending = harness.ask(produce_request(new_batch("a"), acks=0), 12)

    assert pending.is_answered
    assert pending.request.payload == b""
    assert pending.request.disconnect_reason is None
    assert harness.fetch().high_watermark == 1


def test_error_with_acks_0_closes_the_connection(harness: BrokerHarness) -> None:
    pending = harness.ask(produce_request(new_batch("a"), "nowhere", acks=0), 12)

    assert pending.request.payload == b""
    assert "nowhere-0 UNKNOWN_TOPIC_OR_PARTITION" in (pending.request.disconnect_reason or "")


def test_one_invalid_partition_does_not_affect_others(harness: BrokerHarness) -> None:
    harness.create("t", 2)
    topic = TopicProduceData(
        name=Topic("t"),
        partition_data=(
            PartitionProduceData(index=0, records=b"garbage"),
            PartitionProduceData(index=1, records=new_batch("a")),
        ),
    )

    answer = harness.answer(ProduceRequest(acks=-1, topic_data=(topic,)), 12)

    errors = [each.error_code for each in answer.responses[0].partition_responses]
    assert errors[0] != 0
    assert errors[1] == 0
    assert values_in(harness.fetch(partition=1).records) == ["a"]


def test_stored_bytes_differ_only_in_offset_and_epoch(harness: BrokerHarness) -> None:
    harness.create("t")
    harness.produce(new_batch("zero"))
    batch = new_batch("a" * 500, codec=Codec.GZIP)

    harness.produce(batch)

    kept = harness.fetch(1).records or b""
    assert kept[16:] == batch[16:]
    assert struct.unpack_from(">qii", kept) == (1, len(batch) - 12, 0)


def test_produce_completes_waiting_fetches(harness: BrokerHarness) -> None:
    harness.create("t")
    waiting = harness.ask(fetch_request(), 12)
    assert not waiting.is_answered

    harness.produce(new_batch("a"))

    assert values_in(waiting.answer.responses[0].partitions[0].records) == ["a"]
