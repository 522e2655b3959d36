"""The consumer with Apache Kafka, including features that the node lacks."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kohort.assignors import BUILT_IN
from kohort.types import Topic
from kohort.wire.batch_header import TimestampType
from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip
from tests.client.consumer_crowd import crowd_of
from tests.client.node_cluster import Cluster, ProducedRecord, at, offsets, poll_until, read
from tests.wait import wait_until


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {"auto.create.topics.enable": "false"}
    try:
        started = Kafka(tmp_path_factory.mktemp("kafka"), settings)
    except Unavailable as reason:
        skip(reason)
    with started:
        yield Cluster(bootstrap_servers=started.bootstrap_servers)


def create(kafka: Cluster, **config: str) -> Topic:
    name = kafka.name_group()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    topic = NewTopic(name, num_partitions=1, replication_factor=1, config=config)
    for future in admin.create_topics([topic]).values():
        future.result(20)
    return Topic(name)


@pytest.mark.parametrize("assignor", BUILT_IN)
def test_members_share_partitions_as_they_join_and_leave(kafka: Cluster, assignor: str) -> None:
    with crowd_of(kafka, 4, partition_assignment_strategy=assignor) as crowd:
        first = crowd.join()
        crowd.settle()
        crowd.join()
        crowd.settle()
        crowd.produce(5)
        assert crowd.read(20) == [(p, offset) for p in range(4) for offset in range(5)]
        crowd.leave(first)

        crowd.settle()
        assert crowd.members[0].assignment() == crowd.partitions


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_are_read(kafka: Cluster, codec: str) -> None:
    topic = kafka.create_topic()
    written = [
        ProducedRecord(key=b"k", value=b"%d" % n * 50, headers=(("h", b"1"),)) for n in range(500)
    ]
    kafka.produce(topic, written, codec=codec)

    with kafka.consumer() as consumer:
        consumer.subscribe([topic])
        records = read(consumer, 500)

    assert [(each.key, each.value, each.headers) for each in records] == [
        (each.key, each.value, each.headers) for each in written
    ]


def test_the_next_consumer_starts_at_the_committed_offset(kafka: Cluster) -> None:
    topic, group = kafka.create_topic(), kafka.name_group()
    kafka.produce(topic, 4)
    with kafka.consumer(group_id=group) as first:
        first.subscribe([topic])
        read(first, 4)
    kafka.produce(topic, 1)

    with kafka.consumer(group_id=group) as second:
        second.subscribe([topic])

        assert offsets(read(second, 1)) == [4]


def test_read_committed_reads_only_committed_transactions(kafka: Cluster) -> None:
    topic = kafka.create_topic()
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": kafka.name_group()}
    )
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(topic, b"%d" % number)
        assert producer.flush(20) == 0
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    assert producer.flush(20) == 0

    with kafka.consumer(isolation_level="read_committed") as careful:
        careful.assign([at(topic)])
        committed = read(careful, 9)
        assert careful.poll(300) == {}
        assert careful.position(at(topic)) == careful.end_offsets([at(topic)])[at(topic)]
    with kafka.consumer() as careless:
        careless.assign([at(topic)])
        everything = read(careless, 19)
    producer.abort_transaction(30)

    assert [each.value for each in committed] == [b"0"] * 3 + [b"2"] * 3 + [b"4"] * 3
    assert [each.value for each in everything[-4:]] == [b"5"] * 3 + [b"open"]


def test_a_compacted_topic_keeps_its_offset_gaps(kafka: Cluster) -> None:
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }
    topic = create(kafka, **config)
    kafka.produce(topic, [ProducedRecord(key=b"%d" % (n % 4), value=b"%d" % n) for n in range(200)])

    def is_compacted() -> bool:
        kafka.produce(topic, [ProducedRecord(key=b"last", value=b"last")])
        with kafka.consumer(group_id=None) as consumer:
            consumer.assign([at(topic)])
            end = consumer.end_offsets([at(topic)])[at(topic)]
            records = []
            while consumer.position(at(topic)) < end:
                for found in consumer.poll(200).values():
                    records += found
        kept = [int(each.value) for each in records if each.key != b"last"]
        assert kept[-4:] == [196, 197, 198, 199]
        return kept == [196, 197, 198, 199]

    wait_until(is_compacted, 60, "compaction")


def test_log_append_time_is_reported(kafka: Cluster) -> None:
    topic = create(kafka, **{"message.timestamp.type": "LogAppendTime"})
    kafka.produce(topic, [ProducedRecord(value=b"", timestamp_ms=1_000)] * 3)

    with kafka.consumer(group_id=None) as consumer:
        consumer.assign([at(topic)])
        records = read(consumer, 3)

    assert {each.timestamp_type for each in records} == {TimestampType.LOG_APPEND_TIME}
    assert min(each.timestamp for each in records) > 1_000


def test_a_pattern_subscription_finds_new_topics(kafka: Cluster) -> None:
    group = kafka.name_group()
    kafka.create_topic(1, f"{group}-first")

    with kafka.consumer(group_id=group, metadata_max_age_ms=100) as consumer:
        consumer.subscribe(f"^{group}-")
        poll_until(consumer, lambda: len(consumer.assignment()) == 1, "the first")
        kafka.create_topic(2, f"{group}-second")

        poll_until(consumer, lambda: len(consumer.assignment()) == 3, "the second")
