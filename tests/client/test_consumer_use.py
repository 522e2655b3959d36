"""How a consumer may be used: by one thread at a time, until it is closed, with sense."""

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
from kohort.client.errors import Unreachable, WrongUse
from kohort.client.listener import ConsumerRebalanceListener
from kohort.client.topic_partition import TopicPartition
from kohort.types import Offset, Topic
from tests.client.clusters import Cluster, at, poll_until
from tests.waiting import wait_until

SOMEWHERE = at(Topic("somewhere"))

Use = Callable[[Any], object]
"""Untyped: what is wrong is often the type."""

WRONG: dict[str, tuple[Use, str]] = {
    "poll for nothing": (lambda c: c.poll(), "nothing to read"),
    "loop over nothing": (lambda c: next(iter(c)), "nothing to read"),
    "subscribe to nothing": (lambda c: c.subscribe([]), "no topic to subscribe to"),
    "bad topic": (lambda c: c.subscribe(["a b"]), "'a b' cannot be a topic"),
    "number for a topic": (lambda c: c.subscribe([7]), "7 cannot be a topic"),
    "bad pattern": (lambda c: c.subscribe(pattern="("), "is not a pattern"),
    "both": (lambda c: c.subscribe(["a"], pattern="b"), "not to both"),
    "both at once": (lambda c: c.subscribe(re.compile("a"), pattern="b"), "not to both"),
    "bad listener": (lambda c: c.subscribe(["a"], listener=print), "a listener must be"),
    "bad partition": (lambda c: c.assign([("a", -1)]), "is not a TopicPartition"),
    "one for many": (lambda c: c.assign(SOMEWHERE), "is not a TopicPartition"),
    "seek elsewhere": (lambda c: c.seek(SOMEWHERE, 1), "somewhere-0 is not assigned"),
    "pause elsewhere": (lambda c: c.pause(SOMEWHERE), "is not assigned"),
    "position elsewhere": (lambda c: c.position(SOMEWHERE), "is not assigned"),
    "negative seek": (lambda c: c.seek(SOMEWHERE, -1), "an offset cannot be -1"),
    "negative commit": (lambda c: c.commit({SOMEWHERE: -1}), "an offset cannot be -1"),
    "endless metadata": (
        lambda c: c.commit({SOMEWHERE: kohort.Position(offset=Offset(1), metadata="x" * 40_000)}),
        "longer than 32767 bytes",
    ),
    "negative time": (lambda c: c.offsets_for_times({SOMEWHERE: -1}), "cannot be negative"),
    "no records": (lambda c: c.poll(max_records=0), "at least 1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_refused_with_a_sentence(cluster: Cluster, name: str) -> None:
    use, complaint = WRONG[name]

    with cluster.consumer() as consumer, pytest.raises(WrongUse, match=complaint):
        use(consumer)


def test_pythons_own_dice_are_not_rolled_while_nobody_answers() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        before = random.getstate()

        with kohort.Consumer(bootstrap_servers=address, reconnect_backoff_ms=10) as consumer:
            consumer.assign([SOMEWHERE])
            consumer.poll(200)

    assert random.getstate() == before


def test_topics_and_partitions_are_not_mixed(cluster: Cluster) -> None:
    topic = cluster.create_topic()

    with cluster.consumer() as consumer:
        consumer.subscribe([topic])
        with pytest.raises(WrongUse, match="already wants topics"):
            consumer.assign([at(topic)])
        consumer.unsubscribe()
        consumer.assign([at(topic)])
        with pytest.raises(WrongUse, match="already wants partitions"):
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
            with pytest.raises(WrongUse, match="another thread is using this consumer"):
                wait_until(lambda: consumer.assignment() and False, 20)
        finally:
            is_tried.set()
            other.join()

        assert consumer.assignment() == {at(topic)}


def test_one_thread_after_the_other_may_use_it(cluster: Cluster) -> None:
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
def test_a_closed_consumer_can_do_nothing_any_more(cluster: Cluster, use: Use) -> None:
    consumer = cluster.open_consumer()
    consumer.close()

    with pytest.raises(WrongUse, match="closed"):
        use(consumer)


def test_closing_twice_does_no_harm_and_rebalances_are_still_told(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    consumer = cluster.open_consumer()
    consumer.subscribe([topic])
    poll_until(consumer, consumer.assignment)

    consumer.close()
    consumer.close()

    assert len(consumer.rebalances()) == 1


def test_a_loop_over_a_closed_consumer_ends_with_an_error(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)
    consumer = cluster.open_consumer()
    consumer.assign([at(topic)])
    records = iter(consumer)
    next(records)

    consumer.close()

    with pytest.raises(WrongUse, match="closed"):
        next(records)


class Meddling(ConsumerRebalanceListener):
    def __init__(self, use: Callable[[], object]) -> None:
        self._use = use

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        assert partitions
        self._use()


@pytest.mark.parametrize("what", ["poll", "unsubscribe", "close"])
def test_a_listener_cannot_do_what_would_wait_for_it(cluster: Cluster, what: str) -> None:
    topic = cluster.create_topic()

    with cluster.consumer() as consumer:
        consumer.subscribe([topic], listener=Meddling(getattr(consumer, what)))
        with pytest.raises(WrongUse, match=f"cannot {what}"):
            poll_until(consumer, consumer.assignment)


def test_where_no_broker_is_a_poll_gives_nothing_and_calls_end_in_time() -> None:
    with kohort.Consumer(bootstrap_servers="127.0.0.1:1", group_id="g") as consumer:
        consumer.subscribe(["orders"])

        assert consumer.poll(timeout_ms=100) == {}
        with pytest.raises(Unreachable):
            consumer.topics(timeout_ms=100)
        with pytest.raises(Unreachable):
            consumer.committed(SOMEWHERE, timeout_ms=100)
        consumer.unsubscribe()
        consumer.close(timeout_ms=100)


def test_a_name_that_leads_nowhere_is_tried_again_and_again(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = cluster.create_topic()
    servers = f"no-such-host.invalid:9092,{cluster.bootstrap_servers}"

    with kohort.Consumer(bootstrap_servers="no-such-host.invalid:9092") as consumer:
        consumer.assign([SOMEWHERE])
        assert consumer.poll(timeout_ms=300) == {}
    with kohort.Consumer(bootstrap_servers=servers) as consumer:
        assert consumer.partitions_for(topic) == {0}

    assert "its name cannot be resolved" in caplog.text


def test_a_name_with_several_addresses_is_tried_at_all_of_them(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    port = cluster.address.port

    # It listens at 127.0.0.1 alone; where localhost is ::1 as well, that is tried in vain.
    with kohort.Consumer(bootstrap_servers=f"localhost:{port}") as consumer:
        assert consumer.partitions_for(topic) == {0}


def test_a_forgotten_consumer_ends_its_thread_and_says_so(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = cluster.open_consumer(group_id="forgotten")
    name = "kohort-consumer-forgotten"
    assert name in [thread.name for thread in threading.enumerate()]

    with caplog.at_level(logging.WARNING, "kohort.consumer"):
        del consumer
        gc.collect()

    assert name not in [thread.name for thread in threading.enumerate()]
    assert "left-unclosed group=forgotten" in caplog.text
