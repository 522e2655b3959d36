"""Produce, with valid and invalid batches."""

from kohort.types import ZERO_UUID, Millis, Topic, TransactionalId, Uuid
from kohort.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.batch import Codec
from kohort.wire.batch_header import CONTROL_FLAG, TRANSACTIONAL_FLAG
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import (
    AT,
    batch,
    create_filled_topic,
    create_topic,
    fetch_request,
    list_offsets_request,
    produce_request,
    with_header,
)
from tests.contract.conversations.session import Session

NOT_A_TOPIC = Uuid(b"not any topic id")
OFFSETS = Topic("__consumer_offsets")
MAX_TIMESTAMP = "Kafka replaces the max timestamp in the header of a batch"
UNDECOMPRESSED = "for records that cannot be decompressed Kafka returns UNKNOWN_SERVER_ERROR"


# Where records go


@conversation(vary=ProduceRequest)
def records_get_consecutive_offsets(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(produce_request(t, batch("x", "y"), topic_id=topic_id))
    a.ask(produce_request(t, batch("z"), topic_id=topic_id, acks=1))
    a.ask(fetch_request(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def acks_0_has_no_response(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.send_without_response(produce_request(t, batch("x"), topic_id=topic_id, acks=0))
    a.ask(list_offsets_request(t, -1))


@conversation(vary=ProduceRequest)
def an_error_with_acks_0_closes_the_connection(session: Session) -> None:
    a = session.client("a")

    a.ask_or_disconnect(
        produce_request(Topic(session.name("unknown")), batch("x"), topic_id=NOT_A_TOPIC, acks=0)
    )


@conversation(vary=ProduceRequest)
def each_partition_has_its_own_error_code(session: Session) -> None:
    t, t_id = create_topic(session, "t", 2)
    u, u_id = create_topic(session, "u")
    data = (PartitionProduceData(index=each, records=batch("x")) for each in (1, 0, 9))
    topics = (
        TopicProduceData(name=t, topic_id=t_id, partition_data=tuple(data)),
        TopicProduceData(
            name=u,
            topic_id=u_id,
            partition_data=(PartitionProduceData(index=0, records=batch("y")),),
        ),
    )

    session.client("a").ask(produce_request(t, b"", topic_id=t_id, topic_data=topics))


@conversation(vary=ProduceRequest)
def an_empty_produce_is_allowed(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(produce_request(t, b"", topic_id=topic_id, topic_data=()))
    none = TopicProduceData(name=t, topic_id=topic_id)
    a.ask(produce_request(t, b"", topic_id=topic_id, topic_data=(none,)))


@conversation(vary=ProduceRequest)
def producing_to_an_unknown_topic_is_refused(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(produce_request(Topic(session.name("unknown")), batch("x"), topic_id=NOT_A_TOPIC))
    a.ask(produce_request(t, batch("x"), 1, topic_id=topic_id))
    a.ask(produce_request(t, batch("x"), -1, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def producing_to_the_unnamed_topic_is_refused(session: Session) -> None:
    session.client("a").ask(produce_request(Topic(""), batch("x"), topic_id=ZERO_UUID))


@conversation(vary=ProduceRequest)
def producing_to_the_offsets_topic_is_refused(session: Session) -> None:
    topic_id = session.find_topic_id(OFFSETS)

    session.client("a").ask(produce_request(OFFSETS, batch("x"), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def acks_must_be_0_or_1_or_all(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(produce_request(t, batch("x"), topic_id=topic_id, acks=2))
    a.ask(produce_request(t, batch("x"), topic_id=topic_id, acks=-2))
    a.ask(produce_request(t, batch("x"), 9, topic_id=topic_id, acks=2))
    a.ask(produce_request(t, b"garbage", topic_id=topic_id, acks=2))


# Time


@conversation(vary=ProduceRequest)
def a_topic_can_use_log_append_time(session: Session) -> None:
    t, topic_id = create_topic(session, message_timestamp_type="LogAppendTime")
    a = session.client("a")

    a.ask(produce_request(t, batch("x", "y"), topic_id=topic_id))
    a.ask(produce_request(t, batch("z", at=-1), topic_id=topic_id))
    a.ask(fetch_request(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_timestamp_too_far_in_the_future_is_refused(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(produce_request(t, batch("x", "y", at=2**62), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_timestamp_too_far_in_the_past_is_refused_if_configured(session: Session) -> None:
    t, topic_id = create_topic(session, message_timestamp_before_max_ms="1000")
    a = session.client("a")

    a.ask(produce_request(t, batch("x", "y"), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_record_without_a_timestamp_is_accepted(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(produce_request(t, batch("x", at=-1), topic_id=topic_id))
    a.ask(fetch_request(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def the_max_timestamp_of_a_batch_is_not_checked(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(produce_request(t, with_header(batch("x"), max_timestamp=AT + 5), topic_id=topic_id))
    with session.deviates(MAX_TIMESTAMP, "*max_timestamp"):
        a.ask(fetch_request(t, 0, topic_id=topic_id))
    with session.deviates(MAX_TIMESTAMP, "answer.responses*"):
        a.ask(produce_request(t, with_header(batch("x"), max_timestamp=2**62), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def log_append_time_from_a_producer_is_refused(session: Session) -> None:
    t, topic_id = create_topic(session)

    a = session.client("a")

    a.ask(produce_request(t, batch("x", log_append_time=AT), topic_id=topic_id))
    a.ask(produce_request(t, batch("x", log_append_time=Millis(-1)), topic_id=topic_id))
    a.ask(fetch_request(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def log_append_time_from_a_producer_is_refused_with_log_append_time(session: Session) -> None:
    t, topic_id = create_topic(session, message_timestamp_type="LogAppendTime")

    session.client("a").ask(
        produce_request(t, batch("x", "y", log_append_time=AT), topic_id=topic_id)
    )


# What is no batch


@conversation(vary=ProduceRequest)
def a_partition_needs_exactly_one_batch(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(produce_request(t, batch("x") + batch("y"), topic_id=topic_id))
    a.ask(produce_request(t, b"", topic_id=topic_id))


@conversation()
def a_partition_without_any_bytes_is_refused(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.send(produce_request(t, None, topic_id=topic_id))
    with session.deviates("Kafka sends no response at all if the records are null", "answer"):
        a.receive_if_any()


@conversation(vary=ProduceRequest)
def a_damaged_batch_is_refused(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")
    data = bytearray(batch("x"))
    data[-1] ^= 1

    a.ask(produce_request(t, bytes(data), topic_id=topic_id))
    a.ask(produce_request(t, batch("x")[:-1], topic_id=topic_id))
    with session.deviates(
        "Kafka drops trailing bytes that are not another whole batch", "answer.responses*"
    ):
        a.ask(produce_request(t, batch("x") + b"?", topic_id=topic_id))
    a.ask(
        produce_request(t, b"garbage that is no batch at all, nor anything else", topic_id=topic_id)
    )


@conversation(vary=ProduceRequest)
def a_batch_with_an_older_magic_is_refused(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    for magic in (0, 1, 3):
        data = bytearray(batch("x"))
        data[16] = magic
        a.ask(produce_request(t, bytes(data), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_batch_with_a_wrong_record_count_is_refused(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")
    two = batch("x", "y")

    a.ask(produce_request(t, with_header(two, record_count=1), topic_id=topic_id))
    a.ask(produce_request(t, with_header(two, record_count=3), topic_id=topic_id))
    a.ask(produce_request(t, with_header(two, last_offset_delta=5), topic_id=topic_id))
    fewer = with_header(two, last_offset_delta=0, record_count=1)
    a.ask(produce_request(t, fewer, topic_id=topic_id))
    a.ask(produce_request(t, with_header(two, record_count=0), topic_id=topic_id))
    a.ask(produce_request(t, with_header(two, record_count=-1), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def base_offset_and_leader_epoch_are_overwritten(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    elsewhere = with_header(batch("x", "y"), base_offset=5, partition_leader_epoch=3)
    a.ask(produce_request(t, elsewhere, topic_id=topic_id))
    a.ask(fetch_request(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def control_batches_are_refused(session: Session) -> None:
    t, topic_id = create_topic(session)
    control = with_header(batch("x"), attributes=CONTROL_FLAG)

    session.client("a").ask(produce_request(t, control, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def transactional_batches_are_refused(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    data = with_header(batch("x"), attributes=TRANSACTIONAL_FLAG)
    name = TransactionalId(session.name("transaction"))
    session.wait_for_transactions(name)

    a.ask(produce_request(t, data, topic_id=topic_id))
    with session.deviates("transactions are not supported", "answer*"):
        a.ask(produce_request(t, data, topic_id=topic_id, transactional_id=name))


@conversation(vary=ProduceRequest)
def every_codec_is_stored_unchanged(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    for codec in Codec:
        a.ask(produce_request(t, batch("x", codec=codec), topic_id=topic_id))
    a.ask(fetch_request(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def an_unknown_codec_is_refused(session: Session) -> None:
    t, topic_id = create_topic(session)

    with session.deviates(
        "for an unknown compression codec Kafka returns UNKNOWN_SERVER_ERROR", "answer.responses*"
    ):
        session.client("a").ask(
            produce_request(t, with_header(batch("x"), attributes=7), topic_id=topic_id)
        )


@conversation(vary=ProduceRequest)
def a_batch_that_cannot_be_decompressed_is_refused(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        with session.deviates(UNDECOMPRESSED, "answer.responses*"):
            a.ask(produce_request(t, with_header(batch("x"), attributes=codec), topic_id=topic_id))


# Limits


@conversation(vary=ProduceRequest, profile="strict")
def a_batch_can_be_as_large_as_the_limit(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")
    spare = 2000 - len(batch("x" * 1000))

    a.ask(produce_request(t, batch("x" * (1000 + spare)), topic_id=topic_id))
    a.ask(produce_request(t, batch("x" * (1001 + spare)), topic_id=topic_id))
    a.ask(produce_request(t, batch("x" * 100_000, codec=Codec.GZIP), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_topic_can_have_its_own_size_limit(session: Session) -> None:
    t, topic_id = create_topic(session, max_message_bytes="100")

    session.client("a").ask(produce_request(t, batch("x" * 100), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_compacted_topic_needs_keys(session: Session) -> None:
    t, topic_id = create_topic(session, cleanup_policy="compact")
    a = session.client("a")

    a.ask(produce_request(t, batch("x"), topic_id=topic_id))
    a.ask(produce_request(t, batch("x", "y", key=None), topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_partition_that_is_named_twice_is_written_twice(session: Session) -> None:
    t, topic_id = create_filled_topic(session)
    twice = tuple(PartitionProduceData(index=0, records=batch(each)) for each in "xy")
    topics = (TopicProduceData(name=t, topic_id=topic_id, partition_data=twice),)
    a = session.client("a")

    with session.deviates("Kafka writes only the last", "answer.responses.*"):
        a.ask(produce_request(t, b"", topic_id=topic_id, topic_data=topics))
    with session.deviates("Kafka writes only the last", "answer.topics.0.partitions.0.offset"):
        a.ask(list_offsets_request(t, -1))
