"""Topics, records, offsets and groups of a cluster, as tests of users read and write them."""

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner import default as kafka_python

import kohort
from kohort.admin.errors import (
    BrokerError,
    GroupNotEmpty,
    InvalidRequest,
    NoSuchTopic,
    TopicExists,
)
from kohort.testing.partitioner import murmur2
from kohort.testing.values import ProducerRecord
from tests.wait import wait_until


@pytest.fixture(scope="module")
def shared() -> Iterator[kohort.Node]:
    with kohort.Node() as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: kohort.Node) -> Iterator[kohort.Node]:
    """An empty cluster."""
    yield shared
    for topic in shared.topics():
        shared.delete_topic(topic)


def values(cluster: kohort.Node, topic: str, **arguments: int) -> list[bytes | None]:
    return [record.value for record in cluster.records(topic, **arguments)]


# Topics


def test_a_created_topic_is_listed_with_its_partitions(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", partitions=3)
    cluster.create_topic("payments")

    assert [*cluster.topics()] == ["orders", "payments"]
    assert len(cluster.topics()["orders"].partitions) == 3


def test_a_deleted_topic_is_not_listed(cluster: kohort.Node) -> None:
    cluster.create_topic("orders")

    cluster.delete_topic("orders")

    assert cluster.topics() == {}


def test_settings_of_a_topic_may_be_numbers_and_booleans(cluster: kohort.Node) -> None:
    cluster.create_topic(
        "orders", settings={"retention.ms": 60_000, "message.timestamp.type": "LogAppendTime"}
    )
    cluster.produce("orders", ["1"], timestamp=5)

    (record,) = cluster.records("orders")

    assert record.timestamp > 5


def test_a_topic_that_exists_is_refused(cluster: kohort.Node) -> None:
    cluster.create_topic("orders")

    with pytest.raises(TopicExists, match="'orders'"):
        cluster.create_topic("orders")


def test_an_unknown_setting_is_refused(cluster: kohort.Node) -> None:
    with pytest.raises(InvalidRequest, match=r"retention\.mz"):
        cluster.create_topic("orders", settings={"retention.mz": 1})


# Records


def test_values_are_text_or_bytes_or_none(cluster: kohort.Node) -> None:
    cluster.create_topic("orders")

    offsets = cluster.produce("orders", ["é", b"\xff", None])

    assert offsets == [0, 1, 2]
    assert values(cluster, "orders") == ["é".encode(), b"\xff", None]


def test_one_text_is_one_record(cluster: kohort.Node) -> None:
    cluster.create_topic("orders")

    cluster.produce("orders", "first")
    cluster.produce("orders", b"second")

    assert values(cluster, "orders") == [b"first", b"second"]


def test_pairs_have_a_key(cluster: kohort.Node) -> None:
    cluster.create_topic("orders")

    cluster.produce("orders", [("a", "1"), (None, b"2"), (b"b", None)])

    found = [(record.key, record.value) for record in cluster.records("orders")]
    assert found == [(b"a", b"1"), (None, b"2"), (b"b", None)]


def test_a_whole_record_has_key_headers_timestamp_and_partition(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", partitions=2)
    given = ProducerRecord("1", "a", [("h", "x"), ("h", b"y")], timestamp=17, partition=1)

    cluster.produce("orders", [given])

    (record,) = cluster.records("orders")
    assert (record.key, record.value, record.timestamp) == (b"a", b"1", 17)
    assert record.headers == (("h", b"x"), ("h", b"y"))
    assert record.partition == 1


def test_arguments_are_for_records_that_do_not_have_them(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", partitions=2)
    own = ProducerRecord("2", "own", {"h": "own"}, timestamp=2, partition=0)

    cluster.produce("orders", ["1", own], key="all", headers={"h": "all"}, timestamp=1, partition=1)

    second, first = cluster.records("orders")
    assert (first.key, first.headers, first.timestamp, first.partition) == (
        b"all",
        (("h", b"all"),),
        1,
        1,
    )
    assert (second.key, second.headers, second.timestamp, second.partition) == (
        b"own",
        (("h", b"own"),),
        2,
        0,
    )


def test_records_without_a_key_go_to_the_partitions_in_turn(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", partitions=3)

    cluster.produce("orders", ["1", "2"])
    cluster.produce("orders", ["3", "4"])

    found = [(record.partition, record.value) for record in cluster.records("orders")]
    assert found == [(0, b"1"), (0, b"4"), (1, b"2"), (2, b"3")]


def test_offsets_are_in_the_order_of_the_records(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", partitions=2)
    cluster.produce("orders", ["old"], partition=1)

    offsets = cluster.produce("orders", ["1", "2", "3", "4"])

    assert offsets == [0, 1, 1, 2]


def test_keys_have_the_partitions_of_librdkafka(cluster: kohort.Node) -> None:
    keys = [f"key-{number}" for number in range(50)]
    cluster.create_topic("ours", partitions=7)
    cluster.create_topic("theirs", partitions=7)
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "partitioner": "murmur2_random"}
    )

    cluster.produce("ours", [(key, "") for key in keys])
    for key in keys:
        producer.produce("theirs", key=key)
    producer.flush(10)

    ours, theirs = ({r.key: r.partition for r in cluster.records(t)} for t in ("ours", "theirs"))
    assert ours == theirs
    assert len(ours) == 50


@given(st.binary(max_size=40))
def test_the_hash_is_that_of_another_client(key: bytes) -> None:
    assert murmur2(key) == kafka_python.murmur2(key) & 0xFFFFFFFF


def test_records_from_an_offset_on_in_one_partition(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", partitions=2)
    cluster.produce("orders", ["1", "2", "3"], partition=0)
    cluster.produce("orders", ["4", "5", "6"], partition=1)

    assert values(cluster, "orders", start=1) == [b"2", b"3", b"5", b"6"]
    assert values(cluster, "orders", partition=1, start=2) == [b"6"]
    assert values(cluster, "orders", partition=1, start=3) == []
    assert values(cluster, "orders", partition=1, start=99) == []


def test_records_begin_where_the_log_does(cluster: kohort.Node) -> None:
    cluster.create_topic("orders")
    cluster.produce("orders", ["1", "2", "3"])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition("orders", 0, 2)]).values()
    deleted.result(10)

    assert values(cluster, "orders") == [b"3"]
    assert values(cluster, "orders", start=1) == [b"3"]


def test_many_large_records_are_several_batches(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", partitions=2)
    given = [b"%06d" % number + b"x" * 10_000 for number in range(300)]

    offsets = cluster.produce("orders", given, partition=1)

    assert offsets == list(range(300))
    assert values(cluster, "orders") == given


def test_a_topic_without_records_has_none(cluster: kohort.Node) -> None:
    cluster.create_topic("orders")

    offsets = cluster.produce("orders", [])

    assert offsets == []
    assert cluster.records("orders") == []


@pytest.mark.parametrize("wrong", [5, ("a", "b", "c"), ["nested"]])
def test_other_types_are_refused(cluster: kohort.Node, wrong: object) -> None:
    cluster.create_topic("orders")

    with pytest.raises(TypeError, match="use text, bytes, a pair"):
        cluster.produce("orders", [wrong])  # type: ignore[list-item]  # refused


def test_a_key_that_is_a_number_is_refused(cluster: kohort.Node) -> None:
    cluster.create_topic("orders")

    with pytest.raises(TypeError, match="the key 5 is neither text nor bytes"):
        cluster.produce("orders", [(5, "v")])  # type: ignore[list-item]  # refused


def test_a_topic_that_does_not_exist_is_named(cluster: kohort.Node) -> None:
    for call in (cluster.records, cluster.end_offsets, cluster.delete_topic):
        with pytest.raises(NoSuchTopic, match="'orders'"):
            call("orders")
    with pytest.raises(NoSuchTopic, match="'orders'"):
        cluster.produce("orders", ["1"])


def test_a_partition_that_does_not_exist_is_named(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", partitions=2)

    with pytest.raises(NoSuchTopic, match="'orders' has no partition 2: it has 0 to 1"):
        cluster.produce("orders", ["1"], partition=2)
    with pytest.raises(NoSuchTopic, match="'orders' has no partition 2: it has 0 to 1"):
        cluster.records("orders", partition=2)


def test_a_record_that_is_too_large_is_refused(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", settings={"max.message.bytes": 100})

    with pytest.raises(BrokerError, match="orders:0"):
        cluster.produce("orders", ["x" * 200])


# Groups


def test_commits_of_a_group_without_members_are_read_back(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", partitions=2)
    cluster.produce("orders", ["1", "2", "3"], partition=0)

    cluster.commit("billing", {("orders", 0): 2, ("orders", 1): 0})

    assert cluster.committed("billing") == {("orders", 0): 2, ("orders", 1): 0}
    assert cluster.lag("billing").total == 1
    assert cluster.groups()["billing"].state == "Empty"
    assert cluster.end_offsets("orders") == {("orders", 0): 3, ("orders", 1): 0}


def test_a_group_that_does_not_exist_has_nothing(cluster: kohort.Node) -> None:
    assert cluster.committed("unknown") == {}
    assert cluster.members("unknown") == ()
    assert cluster.rebalances("unknown") == ()
    assert cluster.lag("unknown").total == 0
    assert "unknown" not in cluster.groups()


def test_members_have_their_assignments_and_rebalances_are_recorded(
    cluster: kohort.Node,
) -> None:
    cluster.create_topic("orders", partitions=2)
    cluster.produce("orders", ["1", "2"], partition=0)

    with kohort.Consumer(
        bootstrap_servers=cluster.bootstrap_servers,
        group_id="shipping",
        client_id="worker",
        group_instance_id="worker-1",
        auto_offset_reset="latest",
    ) as consumer:
        consumer.subscribe(["orders"])
        wait_until(lambda: consumer.poll(timeout_ms=10) or consumer.assignment())
        (member,) = cluster.members("shipping")
        (rebalance,) = cluster.rebalances("shipping")
        lag = cluster.lag("shipping")
        with pytest.raises(GroupNotEmpty):
            cluster.commit("shipping", {("orders", 0): 0})

    assert (member.client_id, member.instance_id) == ("worker", "worker-1")
    assert member.partitions == (("orders", 0), ("orders", 1))
    assert member.member_id.startswith("worker-1")
    assert (rebalance.trigger, rebalance.ending, rebalance.generation) == (
        "member-joined",
        "stable",
        1,
    )
    assert [each.partition for each in lag.partitions] == [("orders", 0), ("orders", 1)]


# The connection


def test_helpers_continue_after_a_restart() -> None:
    with kohort.Node() as cluster:
        cluster.create_topic("orders")
        cluster.produce("orders", ["1"])

        cluster.restart()

        assert cluster.produce("orders", ["2"]) == [1]
        assert values(cluster, "orders") == [b"1", b"2"]


def test_threads_may_share_a_cluster(cluster: kohort.Node) -> None:
    cluster.create_topic("orders", partitions=4)

    def work(number: int) -> None:
        for _ in range(20):
            cluster.produce("orders", [f"{number}"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    counts = [len(cluster.records("orders", partition=number)) for number in range(4)]
    assert counts == [20, 20, 20, 20]
