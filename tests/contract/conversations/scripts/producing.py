"""Producing: where records go, and everything that may be wrong with a batch or its address."""

from kohort.types import ZERO_UUID, Millis, Topic, TransactionalId, Uuid
from kohort.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.batch import Codec
from kohort.wire.batch_header import CONTROL_FLAG, TRANSACTIONAL_FLAG
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import (
    AT,
    batch,
    changed,
    fetching,
    filled,
    listing,
    made,
    producing,
)
from tests.contract.conversations.talking import Talk

NOT_A_TOPIC = Uuid(b"not any topic id")
OFFSETS = Topic("__consumer_offsets")
GARBAGE = "a batch whose records are garbage under a valid checksum is kept"


# Where records go


@conversation(vary=ProduceRequest)
def records_are_given_offsets_one_after_the_other(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(producing(t, batch("x", "y"), topic_id=topic_id))
    a.ask(producing(t, batch("z"), topic_id=topic_id, acks=1))
    a.ask(fetching(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def who_wants_no_answer_gets_none(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.tell(producing(t, batch("x"), topic_id=topic_id, acks=0))
    a.ask(listing(t, -1))


@conversation(vary=ProduceRequest)
def who_wants_no_answer_learns_of_an_error_by_a_closed_connection(talk: Talk) -> None:
    a = talk.speaker("a")

    a.provoke(producing(Topic(talk.name("unknown")), batch("x"), topic_id=NOT_A_TOPIC, acks=0))


@conversation(vary=ProduceRequest)
def partitions_are_answered_each_for_itself(talk: Talk) -> None:
    t, t_id = made(talk, "t", 2)
    u, u_id = made(talk, "u")
    data = (PartitionProduceData(index=each, records=batch("x")) for each in (1, 0, 9))
    topics = (
        TopicProduceData(name=t, topic_id=t_id, partition_data=tuple(data)),
        TopicProduceData(
            name=u,
            topic_id=u_id,
            partition_data=(PartitionProduceData(index=0, records=batch("y")),),
        ),
    )

    talk.speaker("a").ask(producing(t, b"", topic_id=t_id, topic_data=topics))


@conversation(vary=ProduceRequest)
def nothing_may_be_produced(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(producing(t, b"", topic_id=topic_id, topic_data=()))
    none = TopicProduceData(name=t, topic_id=topic_id)
    a.ask(producing(t, b"", topic_id=topic_id, topic_data=(none,)))


@conversation(vary=ProduceRequest)
def a_topic_that_does_not_exist_takes_nothing(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(producing(Topic(talk.name("unknown")), batch("x"), topic_id=NOT_A_TOPIC))
    a.ask(producing(t, batch("x"), 1, topic_id=topic_id))
    a.ask(producing(t, batch("x"), -1, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_topic_without_a_name_takes_nothing(talk: Talk) -> None:
    talk.speaker("a").ask(producing(Topic(""), batch("x"), topic_id=ZERO_UUID))


@conversation(vary=ProduceRequest)
def the_groups_own_topic_is_not_written_by_others(talk: Talk) -> None:
    topic_id = talk.find_topic_id(OFFSETS)

    talk.speaker("a").ask(producing(OFFSETS, batch("x"), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def acks_are_none_or_one_or_all(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(producing(t, batch("x"), topic_id=topic_id, acks=2))
    a.ask(producing(t, batch("x"), topic_id=topic_id, acks=-2))
    a.ask(producing(t, batch("x"), 9, topic_id=topic_id, acks=2))
    a.ask(producing(t, b"garbage", topic_id=topic_id, acks=2))


# Time


@conversation(vary=ProduceRequest)
def a_topic_may_keep_its_own_time(talk: Talk) -> None:
    t, topic_id = made(talk, message_timestamp_type="LogAppendTime")
    a = talk.speaker("a")

    a.ask(producing(t, batch("x", "y"), topic_id=topic_id))
    a.ask(producing(t, batch("z", at=-1), topic_id=topic_id))
    a.ask(fetching(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_time_too_far_ahead_is_refused(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(producing(t, batch("x", "y", at=2**62), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_time_too_far_back_is_refused_where_the_topic_says_so(talk: Talk) -> None:
    t, topic_id = made(talk, message_timestamp_before_max_ms="1000")
    a = talk.speaker("a")

    a.ask(producing(t, batch("x", "y"), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_record_without_a_time_is_taken(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(producing(t, batch("x", at=-1), topic_id=topic_id))
    a.ask(fetching(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def the_time_of_a_batch_is_believed(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(producing(t, changed(batch("x"), max_timestamp=AT + 5), topic_id=topic_id))
    with talk.deviates(GARBAGE, "*max_timestamp"):
        a.ask(fetching(t, 0, topic_id=topic_id))
    with talk.deviates(GARBAGE, "answer.responses*"):
        a.ask(producing(t, changed(batch("x"), max_timestamp=2**62), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_producer_may_not_claim_the_time_of_appending(talk: Talk) -> None:
    t, topic_id = made(talk)

    a = talk.speaker("a")

    a.ask(producing(t, batch("x", log_append_time=AT), topic_id=topic_id))
    a.ask(producing(t, batch("x", log_append_time=Millis(-1)), topic_id=topic_id))
    a.ask(fetching(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_producer_may_not_claim_the_time_of_appending_where_the_topic_keeps_it(talk: Talk) -> None:
    t, topic_id = made(talk, message_timestamp_type="LogAppendTime")

    talk.speaker("a").ask(producing(t, batch("x", "y", log_append_time=AT), topic_id=topic_id))


# What is no batch


@conversation(vary=ProduceRequest)
def a_partition_needs_exactly_one_batch(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(producing(t, batch("x") + batch("y"), topic_id=topic_id))
    a.ask(producing(t, b"", topic_id=topic_id))


@conversation()
def a_partition_without_any_bytes_is_refused(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.send(producing(t, None, topic_id=topic_id))
    with talk.deviates("Kafka never answers where there are no bytes at all", "answer"):
        a.hear_if_any()


@conversation(vary=ProduceRequest)
def a_damaged_batch_is_refused(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")
    data = bytearray(batch("x"))
    data[-1] ^= 1

    a.ask(producing(t, bytes(data), topic_id=topic_id))
    a.ask(producing(t, batch("x")[:-1], topic_id=topic_id))
    with talk.deviates("Kafka drops what follows a batch", "answer.responses*"):
        a.ask(producing(t, batch("x") + b"?", topic_id=topic_id))
    a.ask(producing(t, b"garbage that is no batch at all, nor anything else", topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_batch_of_an_older_format_is_refused(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    for magic in (0, 1, 3):
        data = bytearray(batch("x"))
        data[16] = magic
        a.ask(producing(t, bytes(data), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_batch_counts_its_records_right(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")
    two = batch("x", "y")

    a.ask(producing(t, changed(two, record_count=1), topic_id=topic_id))
    a.ask(producing(t, changed(two, record_count=3), topic_id=topic_id))
    a.ask(producing(t, changed(two, last_offset_delta=5), topic_id=topic_id))
    with talk.deviates(GARBAGE, "answer.responses*"):
        fewer = changed(two, last_offset_delta=0, record_count=1)
        a.ask(producing(t, fewer, topic_id=topic_id))
    a.ask(producing(t, changed(two, record_count=0), topic_id=topic_id))
    a.ask(producing(t, changed(two, record_count=-1), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def what_a_batch_says_of_its_place_is_overwritten(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    elsewhere = changed(batch("x", "y"), base_offset=5, partition_leader_epoch=3)
    a.ask(producing(t, elsewhere, topic_id=topic_id))
    a.ask(fetching(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def control_batches_are_not_for_producers(talk: Talk) -> None:
    t, topic_id = made(talk)
    control = changed(batch("x"), attributes=CONTROL_FLAG)

    talk.speaker("a").ask(producing(t, control, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def transactions_cannot_be_produced(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    data = changed(batch("x"), attributes=TRANSACTIONAL_FLAG)
    name = TransactionalId(talk.name("transaction"))
    talk.wait_for_transactions(name)

    a.ask(producing(t, data, topic_id=topic_id))
    with talk.deviates("there are no transactions yet", "answer*"):
        a.ask(producing(t, data, topic_id=topic_id, transactional_id=name))


@conversation(vary=ProduceRequest)
def every_codec_is_kept_as_it_came(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    for codec in Codec:
        a.ask(producing(t, batch("x", codec=codec), topic_id=topic_id))
    a.ask(fetching(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_codec_that_does_not_exist_is_refused(talk: Talk) -> None:
    t, topic_id = made(talk)

    with talk.deviates("over a codec that does not exist Kafka fails", "answer.responses*"):
        talk.speaker("a").ask(producing(t, changed(batch("x"), attributes=7), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def what_cannot_be_decompressed_is_kept(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        with talk.deviates(GARBAGE, "answer.responses*"):
            a.ask(producing(t, changed(batch("x"), attributes=codec), topic_id=topic_id))


# Limits


@conversation(vary=ProduceRequest, house="strict")
def a_batch_may_be_as_large_as_the_limit(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")
    spare = 2000 - len(batch("x" * 1000))

    a.ask(producing(t, batch("x" * (1000 + spare)), topic_id=topic_id))
    a.ask(producing(t, batch("x" * (1001 + spare)), topic_id=topic_id))
    a.ask(producing(t, batch("x" * 100_000, codec=Codec.GZIP), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_topic_may_have_a_limit_of_its_own(talk: Talk) -> None:
    t, topic_id = made(talk, max_message_bytes="100")

    talk.speaker("a").ask(producing(t, batch("x" * 100), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_compacted_topic_needs_keys(talk: Talk) -> None:
    t, topic_id = made(talk, cleanup_policy="compact")
    a = talk.speaker("a")

    a.ask(producing(t, batch("x"), topic_id=topic_id))
    a.ask(producing(t, batch("x", "y", key=None), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_partition_that_is_named_twice_is_written_twice(talk: Talk) -> None:
    t, topic_id = filled(talk)
    twice = tuple(PartitionProduceData(index=0, records=batch(each)) for each in "xy")
    topics = (TopicProduceData(name=t, topic_id=topic_id, partition_data=twice),)
    a = talk.speaker("a")

    with talk.deviates("Kafka writes only the last", "answer.responses.*"):
        a.ask(producing(t, b"", topic_id=topic_id, topic_data=topics))
    with talk.deviates("Kafka writes only the last", "answer.topics.0.partitions.0.offset"):
        a.ask(listing(t, -1))
