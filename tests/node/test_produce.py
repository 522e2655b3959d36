"""Produce: what is kept, what is refused and why, and when the producer is told."""

import struct
from pathlib import Path

import pytest

from kohort.types import ZERO_UUID, ProducerEpoch, ProducerId, Topic, Uuid
from kohort.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.batch import Codec
from tests.node.asking import (
    START,
    Scene,
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
def test_a_batch_gets_the_next_offsets_and_is_read_back(scene: Scene, version: int) -> None:
    scene.create("t")
    scene.produce(new_batch("a", "b"), version=version)

    told = scene.produce(new_batch("c"), version=version)

    assert (told.error_code, told.base_offset, told.log_append_time_ms) == (0, 2, -1)
    assert told.log_start_offset == (0 if version >= 5 else -1)
    assert values_in(scene.fetch().records) == ["a", "b", "c"]


def test_from_version_13_on_topics_go_by_id(scene: Scene) -> None:
    scene.create("t")
    data = (PartitionProduceData(index=0, records=new_batch("a")),)
    known = TopicProduceData(topic_id=scene.id_of("t"), partition_data=data)
    stranger = TopicProduceData(topic_id=Uuid(b"\1" * 16), partition_data=data)

    answer = scene.answer(ProduceRequest(acks=1, topic_data=(known, stranger)), 13)

    errors = [name_of(t.partition_responses[0].error_code) for t in answer.responses]
    assert errors == ["NONE", "UNKNOWN_TOPIC_ID"]
    assert [t.topic_id for t in answer.responses] == [scene.id_of("t"), Uuid(b"\1" * 16)]
    assert ZERO_UUID not in [t.topic_id for t in answer.responses]


@pytest.mark.parametrize(("name", "partition"), [("other", 0), ("t", 1), ("t", -1)])
def test_a_partition_that_does_not_exist_is_refused(
    scene: Scene, name: str, partition: int
) -> None:
    scene.create("t")

    told = scene.produce(new_batch("a"), name, partition)

    assert name_of(told.error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert told.base_offset == -1


def test_a_damaged_batch_is_refused_and_leaves_nothing(scene: Scene) -> None:
    scene.create("t")
    damaged = bytearray(new_batch("abc"))
    damaged[-2] ^= 1

    told = scene.produce(bytes(damaged))

    assert name_of(told.error_code) == "CORRUPT_MESSAGE"
    assert "crc" in (told.error_message or "")
    assert scene.fetch().high_watermark == 0


def test_a_batch_above_the_limit_is_refused(scene: Scene) -> None:
    scene.create("t", max_message_bytes="100")

    told = scene.produce(new_batch("x" * 200))

    assert name_of(told.error_code) == "MESSAGE_TOO_LARGE"


@pytest.mark.parametrize("batch", [None, b"", new_batch("a") + new_batch("b")])
def test_anything_but_one_batch_is_no_record(scene: Scene, batch: bytes | None) -> None:
    scene.create("t")

    answer = scene.answer(produce_request(batch), 12)

    told = answer.responses[0].partition_responses[0]
    assert name_of(told.error_code) == "INVALID_RECORD"
    assert told.error_message


def test_an_older_format_is_no_record(scene: Scene) -> None:
    scene.create("t")
    old = bytearray(new_batch("a"))
    old[16] = 1

    assert name_of(scene.produce(bytes(old)).error_code) == "INVALID_RECORD"


def test_zstd_needs_a_version_that_knows_it(scene: Scene) -> None:
    scene.create("t")
    batch = new_batch("a" * 100, codec=Codec.ZSTD)

    before = scene.produce(batch, version=6)
    since = scene.produce(batch, version=7)

    assert name_of(before.error_code) == "UNSUPPORTED_COMPRESSION_TYPE"
    assert name_of(since.error_code) == "NONE"


def test_a_compacted_topic_wants_keys(scene: Scene) -> None:
    scene.create("t", cleanup_policy="compact")

    told = scene.produce(new_batch("a", key=None))

    assert name_of(told.error_code) == "INVALID_RECORD"
    assert "key" in (told.error_message or "")


def test_the_log_may_give_its_own_time(scene: Scene) -> None:
    scene.create("t", message_timestamp_type="LogAppendTime")
    scene.advance(50)

    told = scene.produce(new_batch("a", at=START))

    assert told.log_append_time_ms == START + 50


def test_only_three_kinds_of_acks_are_known(scene: Scene) -> None:
    scene.create("t")

    told = scene.produce(new_batch("a"), acks=2)

    assert name_of(told.error_code) == "INVALID_REQUIRED_ACKS"
    assert scene.fetch().high_watermark == 0


@pytest.mark.parametrize("name", ["__consumer_offsets", "__kohort_events"])
def test_the_node_alone_writes_to_its_own_topics(scene: Scene, name: str) -> None:
    scene.broker.topics.events_partition(scene.now)

    told = scene.produce(new_batch("a"), name)

    assert name_of(told.error_code) == "INVALID_TOPIC_EXCEPTION"


def test_there_are_no_transactions(scene: Scene) -> None:
    scene.create("t")

    told = scene.produce(
        new_batch(
            "a",
            is_transactional=True,
            producer_id=ProducerId(1),
            producer_epoch=ProducerEpoch(0),
            base_sequence=0,
        )
    )

    assert name_of(told.error_code) == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


# Idempotent producers


def test_a_batch_sent_twice_is_kept_once_and_told_where(scene: Scene) -> None:
    scene.create("t")
    first = scene.produce(idempotent(0, "a", "b"))
    scene.produce(idempotent(2, "c"))

    again = scene.produce(idempotent(0, "a", "b"))

    assert (again.error_code, again.base_offset) == (0, first.base_offset)
    assert scene.fetch().high_watermark == 3


def test_a_gap_in_the_sequence_is_refused(scene: Scene) -> None:
    scene.create("t")
    scene.produce(idempotent(0, "a"))

    told = scene.produce(idempotent(2, "c"))

    assert name_of(told.error_code) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_an_older_epoch_of_a_producer_is_refused(scene: Scene) -> None:
    scene.create("t")
    scene.produce(idempotent(0, "a", epoch=3))

    told = scene.produce(idempotent(1, "b", epoch=2))

    assert name_of(told.error_code) == "INVALID_PRODUCER_EPOCH"


def test_a_duplicate_is_still_known_after_a_restart(scene: Scene) -> None:
    scene.create("t")
    first = scene.produce(idempotent(0, "a"))

    scene.restart()
    again = scene.produce(idempotent(0, "a"))

    assert again.base_offset == first.base_offset
    assert scene.fetch().high_watermark == 1


# When the producer is told


def test_acks_all_waits_for_the_disk_and_acks_one_does_not(tmp_path: Path) -> None:
    scene = Scene(tmp_path, syncs=True)
    assert scene.promises is not None
    scene.create("t")

    all_ = scene.ask(produce_request(new_batch("a"), acks=-1), 12)
    one = scene.ask(produce_request(new_batch("b"), acks=1), 12)
    assert (all_.is_answered, one.is_answered) == (False, True)
    scene.promises.keep()

    assert all_.answer.responses[0].partition_responses[0].base_offset == 0
    scene.close()


def test_a_refusal_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    scene = Scene(tmp_path, syncs=True)

    assert scene.ask(produce_request(new_batch("a"), acks=-1), 12).is_answered
    scene.close()


def test_a_duplicate_waits_for_the_disk_as_the_first_one_does(tmp_path: Path) -> None:
    scene = Scene(tmp_path, syncs=True)
    assert scene.promises is not None
    scene.create("t")
    scene.ask(produce_request(idempotent(0, "a"), acks=-1), 12)

    again = scene.ask(produce_request(idempotent(0, "a"), acks=-1), 12)
    assert not again.is_answered
    scene.promises.keep()

    assert again.answer.responses[0].partition_responses[0].base_offset == 0
    scene.close()


def test_without_acks_there_is_no_answer_at_all(scene: Scene) -> None:
    scene.create("t")

    pending = scene.ask(produce_request(new_batch("a"), acks=0), 12)

    assert pending.is_answered
    assert pending.request.payload == b""
    assert pending.request.hang_up_reason is None
    assert scene.fetch().high_watermark == 1


def test_without_acks_an_error_ends_the_connection(scene: Scene) -> None:
    pending = scene.ask(produce_request(new_batch("a"), "nowhere", acks=0), 12)

    assert pending.request.payload == b""
    assert "nowhere-0 UNKNOWN_TOPIC_OR_PARTITION" in (pending.request.hang_up_reason or "")


def test_one_bad_partition_does_not_spoil_the_others(scene: Scene) -> None:
    scene.create("t", 2)
    topic = TopicProduceData(
        name=Topic("t"),
        partition_data=(
            PartitionProduceData(index=0, records=b"garbage"),
            PartitionProduceData(index=1, records=new_batch("a")),
        ),
    )

    answer = scene.answer(ProduceRequest(acks=-1, topic_data=(topic,)), 12)

    errors = [each.error_code for each in answer.responses[0].partition_responses]
    assert errors[0] != 0
    assert errors[1] == 0
    assert values_in(scene.fetch(partition=1).records) == ["a"]


def test_the_bytes_kept_are_those_sent_but_for_offset_and_epoch(scene: Scene) -> None:
    scene.create("t")
    scene.produce(new_batch("zero"))
    batch = new_batch("a" * 500, codec=Codec.GZIP)

    scene.produce(batch)

    kept = scene.fetch(1).records or b""
    assert kept[16:] == batch[16:]
    assert struct.unpack_from(">qii", kept) == (1, len(batch) - 12, 0)


def test_producing_wakes_who_waits(scene: Scene) -> None:
    scene.create("t")
    waiting = scene.ask(fetch_request(), 12)
    assert not waiting.is_answered

    scene.produce(new_batch("a"))

    assert values_in(waiting.answer.responses[0].partitions[0].records) == ["a"]
