"""Use of a consumer: one thread at a time, valid arguments, close."""

import gc
import logging
import random
import re
import socket
import threading
from collections.abc import Callable, Collection
from typing import Any

import pytest

import kohort
from kohort.client.errors import IllegalArgumentError, IllegalStateError, KafkaTimeoutError
from kohort.client.rebalances import ConsumerRebalanceListener
from kohort.types import Offset, Topic, TopicPartition
from tests.client.node_cluster import Cluster, at, poll_until
from tests.wait import wait_until

SOMEWHERE = at(Topic("somewhere"))

Use = Callable[[Any], object]
"""Untyped, because many calls have wrong argument types."""

REJECTED = (IllegalStateError, IllegalArgumentError)

WRONG: dict[str, tuple[Use, str]] = {
    "poll for nothing": (lambda c: c.poll(), "no subscription"),
    "loop over nothing": (lambda c: next(iter(c)), "no subscription"),
    "subscribe to nothing": (lambda c: c.subscribe([]), "no topics to subscribe to"),
    "bad topic": (lambda c: c.subscribe(["a b"]), "'a b' is not a valid topic name"),
    "number for a topic": (lambda c: c.subscribe([7]), "7 is not a valid topic name"),
    "bad pattern": (lambda c: c.subscribe(pattern="("), "is not a regular expression"),
    "both": (lambda c: c.subscribe(["a"], pattern="b"), "not both"),
    "both at once": (lambda c: c.subscribe(re.compile("a"), pattern="b"), "not both"),
    "bad listener": (lambda c: c.subscribe(["a"], listener=print), "listener must be"),
    "bad partition": (lambda c: c.assign([("a", -1)]), "is not a TopicPartition"),
    "one for many": (lambda c: c.assign(SOMEWHERE), "is not a TopicPartition"),
    "seek elsewhere": (lambda c: c.seek(SOMEWHERE, 1), "somewhere-0 is not assigned"),
    "pause elsewhere": (lambda c: c.pause(SOMEWHERE), "is not assigned"),
    "position elsewhere": (lambda c: c.position(SOMEWHERE), "is not assigned"),
    "negative seek": (lambda c: c.seek(SOMEWHERE, -1), "offset -1 is negative"),
    "negative commit": (lambda c: c.commit({SOMEWHERE: -1}), "offset -1 is negative"),
    "endless metadata": (
        lambda c: c.commit(
            {SOMEWHERE: kohort.OffsetAndMetadata(offset=Offset(1), metadata="x" * 40_000)}
        ),
        "longer than 32767 bytes",
    ),
    "negative time": (lambda c: c.offsets_for_times({SOMEWHERE: -1}), "must not be negative"),
    "no records": (lambda c: c.poll(max_records=0), "at least 1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_raise_a_clear_error(cluster: Cluster, name: str) -> None:
    use, complaint = WRONG[name]

    with cluster.consumer() as consumer, pytest.raises(REJECTED, match=complaint):
        use(consumer)


def test_the_global_random_state_is_not_used() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        before = random.getstate()

        with kohort.Consumer(bootstrap_servers=address, reconnect_backoff_ms=10) as consumer:
            consumer.assign([SOMEWHERE])
            consumer.poll(200)

    assert random.getstate() == before


def test_subscribe_and_assign_cannot_be_combined(cluster: Cluster) -> None:
    topic = cluster.create_topic()

    with cluster.consumer() as consumer:
        consumer.subscribe([topic])
        with pytest.raises(IllegalStateError, match="already subscribed to topics"):
            consumer.assign([at(topic)])
        consumer.unsubscribe()
        consumer.assign([at(topic)])
        with pytest.raises(IllegalStateError, match="already subscribed to partitions"):
            consumer.subscribe("^topic")


def test_two_threads_cannot_use_one_consumer_at_once(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    with cluster.consumer() as consumer:
        consumer.assign([at(topic)])
        is_inside = threading.Event()
        is_tried = threading.Event()

        def poll() -> None:
            is_inside.set()
            while not is_tried.is_set():
                consumer.poll(100)

        other = threading.Thread(target=poll)
        other.start()
        is_inside.wait()
        try:
            with pytest.raises(IllegalStateError, match="another thread is using this consumer"):
                wait_until(lambda: consumer.assignment() and False, 20)
        finally:
            is_tried.set()
            other.join()

        assert consumer.assignment() == {at(topic)}


def test_threads_may_use_a_consumer_one_after_another(cluster: Cluster) -> None:
    topic = cluster.create_topic()

    with cluster.consumer() as consumer:
        other = threading.Thread(target=consumer.assign, args=([at(topic)],))
        other.start()
        other.join()

        assert consumer.assignment() == {at(topic)}


@pytest.mark.parametrize(
    "use",
    [
        lambda c: c.poll(),
        lambda c: c.subscribe(["a"]),
        lambda c: c.commit(),
        lambda c: c.position(SOMEWHERE),
        lambda c: c.unsubscribe(),
        lambda c: next(iter(c)),
    ],
)
def test_calls_on_a_closed_consumer_raise(cluster: Cluster, use: Use) -> None:
    consumer = cluster.open_consumer()
    consumer.close()

    with pytest.raises(IllegalStateError, match="closed"):
        use(consumer)


def test_close_is_idempotent_and_rebalances_stay_available(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    consumer = cluster.open_consumer()
    consumer.subscribe([topic])
    poll_until(consumer, consumer.assignment)

    consumer.close()
    consumer.close()

    assert len(consumer.rebalances()) == 1


def test_iterating_a_closed_consumer_raises(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)
    consumer = cluster.open_consumer()
    consumer.assign([at(topic)])
    records = iter(consumer)
    next(records)

    consumer.close()

    with pytest.raises(IllegalStateError, match="closed"):
        next(records)


class BlockingListener(ConsumerRebalanceListener):
    def __init__(self, use: Callable[[], object]) -> None:
        self._use = use

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        assert partitions
        self._use()


@pytest.mark.parametrize("what", ["poll", "unsubscribe", "close"])
def test_a_listener_cannot_call_blocking_group_methods(cluster: Cluster, what: str) -> None:
    topic = cluster.create_topic()

    with cluster.consumer() as consumer:
        consumer.subscribe([topic], listener=BlockingListener(getattr(consumer, what)))
        with pytest.raises(IllegalStateError, match=f"cannot call {what}"):
            poll_until(consumer, consumer.assignment)


def test_without_a_broker_poll_is_empty_and_calls_time_out() -> None:
    with kohort.Consumer(bootstrap_servers="127.0.0.1:1", group_id="g") as consumer:
        consumer.subscribe(["orders"])

        assert consumer.poll(timeout_ms=100) == {}
        with pytest.raises(KafkaTimeoutError):
            consumer.topics(timeout_ms=100)
        with pytest.raises(KafkaTimeoutError):
            consumer.committed(SOMEWHERE, timeout_ms=100)
        consumer.unsubscribe()
        consumer.close(timeout_ms=100)


def test_an_unresolvable_host_is_retried(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = cluster.create_topic()
    servers = f"no-such-host.invalid:9092,{cluster.bootstrap_servers}"

    with kohort.Consumer(bootstrap_servers="no-such-host.invalid:9092") as consumer:
        consumer.assign([SOMEWHERE])
        assert consumer.poll(timeout_ms=300) == {}
    with kohort.Consumer(bootstrap_servers=servers) as consumer:
        assert consumer.partitions_for_topic(topic) == {0}

    assert "cannot resolve the host name" in caplog.text


def test_all_addresses_of_a_host_are_tried(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    port = cluster.address.port

    # The node listens on 127.0.0.1 only; localhost may also resolve to ::1.
    with kohort.Consumer(bootstrap_servers=f"localhost:{port}") as consumer:
        assert consumer.partitions_for_topic(topic) == {0}


def test_an_unclosed_consumer_stops_its_thread_and_logs(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = cluster.open_consumer(group_id="forgotten")
    name = "kohort-consumer-forgotten"
    assert name in [thread.name for thread in threading.enumerate()]

    with caplog.at_level(logging.WARNING, "kohort.consumer"):
        del consumer
        gc.collect()

    assert name not in [thread.name for thread in threading.enumerate()]
    assert "not-closed group=forgotten" in caplog.text
