"""Commits: explicit, automatic and on close."""

import threading
from collections.abc import Mapping

import pytest

from kohort.client.errors import CommitFailedError, ConsumerError, IllegalStateError
from kohort.client.member.member_events import OffsetAndMetadata
from kohort.types import Offset, TopicPartition
from tests.client.node_cluster import Cluster, at, offsets, poll_until, read
from tests.wait import wait_until

NEVER_MS = 3_600_000


def committed(cluster: Cluster, group: str, partition: TopicPartition) -> int | None:
    with cluster.consumer(group_id=group) as consumer:
        found = consumer.committed(partition)
    return None if found is None else found.offset


def test_the_next_member_continues_at_the_committed_offset(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, 5)
    with cluster.consumer(group_id=group, enable_auto_commit=False) as first:
        first.subscribe([topic])
        read(first, 5)
        assert first.committed(at(topic)) is None
        first.commit()
        kept = OffsetAndMetadata(offset=Offset(5), leader_epoch=0)
        assert first.committed([at(topic)]) == {at(topic): kept}

    cluster.produce(topic, 3)
    with cluster.consumer(group_id=group, enable_auto_commit=False) as second:
        second.subscribe([topic])

        assert offsets(read(second, 3)) == [5, 6, 7]


def test_offsets_and_metadata_can_be_committed(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(2), cluster.name_group()

    with cluster.consumer(group_id=group, enable_auto_commit=False) as consumer:
        noted = OffsetAndMetadata(offset=Offset(7), metadata="half way")
        consumer.commit({at(topic, 0): 3, at(topic, 1): noted})
        found = consumer.committed([at(topic, 0), at(topic, 1)])

    assert [(each.offset, each.metadata) for each in found.values() if each] == [
        (3, ""),
        (7, "half way"),
    ]


def test_the_callback_of_commit_async_runs_on_the_application_thread(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 4)
    heard: list[tuple[int, ConsumerError | None, int]] = []

    def note(
        positions: Mapping[TopicPartition, OffsetAndMetadata], error: ConsumerError | None
    ) -> None:
        heard.append((positions[at(topic)].offset, error, threading.get_ident()))

    with cluster.consumer(enable_auto_commit=False) as consumer:
        consumer.assign([at(topic)])
        read(consumer, 4)
        consumer.commit_async(callback=note)
        consumer.commit_async({at(topic): 2}, note)
        poll_until(consumer, lambda: len(heard) == 2)

    assert heard == [(4, None, threading.get_ident()), (2, None, threading.get_ident())]


def test_a_commit_of_a_non_member_fails_while_the_group_has_members(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, 2)

    with cluster.consumer(group_id=group, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        read(consumer, 2)
        with (
            cluster.consumer(group_id=group, enable_auto_commit=False) as stranger,
            pytest.raises(CommitFailedError),
        ):
            stranger.commit({at(topic): 1})
        consumer.commit()


def test_processed_records_are_auto_committed(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, 4)

    with cluster.consumer(group_id=group, auto_commit_interval_ms=50) as consumer:
        consumer.subscribe([topic])
        read(consumer, 4)

        def is_kept() -> bool:
            consumer.poll(20)
            found = consumer.committed(at(topic))
            return found is not None and found.offset == 4

        wait_until(is_kept, 20, "a commit by itself")


def test_records_in_processing_are_not_auto_committed(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, 4)

    with cluster.consumer(
        group_id=group, auto_commit_interval_ms=20, max_poll_records=2
    ) as consumer:
        consumer.subscribe([topic])
        read(consumer, 2)
        first = read(consumer, 2)

        def is_kept() -> bool:
            found = consumer.committed(at(topic))
            return found is not None and found.offset == 2

        assert offsets(first) == [2, 3]
        wait_until(is_kept, 20, "the first two")
        consumer.abandon()

    assert committed(cluster, group, at(topic)) == 2


def test_processed_records_are_committed_on_close(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, 4)

    with cluster.consumer(group_id=group, auto_commit_interval_ms=NEVER_MS) as consumer:
        consumer.subscribe([topic])
        read(consumer, 4)

    assert committed(cluster, group, at(topic)) == 4


def test_the_last_poll_is_not_committed_if_the_block_raises(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, 6)

    def work() -> None:
        with cluster.consumer(group_id=group, max_poll_records=2) as consumer:
            consumer.subscribe([topic])
            read(consumer, 2)
            read(consumer, 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert committed(cluster, group, at(topic)) == 2


def test_a_failing_loop_commits_all_but_the_current_record(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, 6)

    def work() -> None:
        with cluster.consumer(group_id=group) as consumer:
            consumer.subscribe([topic])
            for record in consumer:
                if record.offset == 3:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert committed(cluster, group, at(topic)) == 3


def test_a_loop_that_breaks_commits_the_current_record(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, 6)

    with cluster.consumer(group_id=group) as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            if record.offset == 3:
                break

    assert committed(cluster, group, at(topic)) == 4


def test_commit_within_a_loop_covers_the_current_record(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 3)

    with cluster.consumer(enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        kept = []
        for record in consumer:
            consumer.commit()
            found = consumer.committed(at(topic))
            kept.append(None if found is None else found.offset)
            if record.offset == 2:
                break

    assert kept == [1, 2, 3]


def test_a_group_that_starts_at_latest_commits_its_start(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.produce(topic, 5)
    with cluster.consumer(group_id=group, auto_offset_reset="latest") as consumer:
        consumer.subscribe([topic])
        poll_until(consumer, consumer.assignment)
        assert consumer.position(at(topic)) == 5
    cluster.produce(topic, 1)

    with cluster.consumer(group_id=group, auto_offset_reset="latest") as consumer:
        consumer.subscribe([topic])

        assert offsets(read(consumer, 1)) == [5]


def test_a_consumer_with_manual_assignment_auto_commits(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(2), cluster.name_group()
    cluster.produce(topic, 4)

    with cluster.consumer(group_id=group, auto_commit_interval_ms=NEVER_MS) as consumer:
        consumer.assign([at(topic, 0)])
        read(consumer, 4)
        consumer.assign([at(topic, 1)])

        def is_kept() -> bool:
            found = consumer.committed(at(topic, 0))
            return found is not None and found.offset == 4

        wait_until(is_kept, 20)


@pytest.mark.parametrize(
    "use",
    [
        lambda consumer, _: consumer.commit(),
        lambda consumer, _: consumer.commit_async(),
        lambda consumer, topic: consumer.committed(at(topic)),
        lambda consumer, topic: consumer.subscribe([topic]),
        lambda consumer, _: consumer.enforce_rebalance(),
    ],
    ids=["commit", "commit_async", "committed", "subscribe", "enforce_rebalance"],
)
def test_calls_that_need_a_group_fail_without_group_id(cluster: Cluster, use: object) -> None:
    topic = cluster.create_topic()

    with cluster.consumer(group_id=None) as consumer:
        consumer.assign([at(topic)])
        with pytest.raises(IllegalStateError, match=r"group\.id"):
            use(consumer, topic)  # type: ignore[operator]  # all of them are functions


def test_auto_commit_does_not_overwrite_a_later_explicit_commit(
    cluster: Cluster,
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 4)
    beats: list[int] = []

    with cluster.consumer(auto_commit_interval_ms=5, max_poll_records=2) as consumer:
        consumer.subscribe([topic])
        read(consumer, 2)
        read(consumer, 2)
        consumer.commit()

        def is_still_kept() -> bool:
            found = consumer.committed(at(topic))
            beats.append(0 if found is None else found.offset)
            return len(beats) == 20

        wait_until(is_still_kept, 20)
    assert set(beats) == {4}
