"""Migration of topics and groups from Kohort to Apache Kafka and back."""

import itertools

from kohort.admin.migration.migration_types import TopicStep
from kohort.client.member.member_events import OffsetAndMetadata
from kohort.types import GroupId, Offset, Topic
from kohort.wire.batch_header import split
from kohort.wire.compression import Codec
from tests.admin.migration.cluster_pair import (
    COMPACTED,
    ClusterPair,
    alter,
    assert_same,
    commit,
    committed,
    compact,
    contents,
    count_partitions,
    create,
    own_settings,
    produce_all_codecs,
    read_all,
    read_next,
)
from tests.client.node_cluster import Cluster, ProducedRecord, at
from tests.wait import wait_until


def codecs_in(cluster: Cluster, topic: Topic) -> list[Codec]:
    """The codecs of the batches of partition 0, without consecutive duplicates."""
    found: list[Codec] = []
    with cluster.consumer(group_id=None) as consumer:
        end = consumer.end_offsets([at(topic)])[at(topic)]
        consumer.assign([at(topic)])

        def is_read() -> bool:
            fetched = consumer.poll_batches(50)
            if fetched is not None:
                found.extend(header.codec for _, header in split(fetched.content))
            return consumer.position(at(topic)) >= end

        wait_until(is_read, 20, "all batches")
    return [codec for codec, _ in itertools.groupby(found)]


def test_records_are_copied_unchanged(mixed_pair: ClusterPair) -> None:
    topic = create(mixed_pair.source, partitions=3)
    produce_all_codecs(mixed_pair.source, topic, 3)

    summary = mixed_pair.migrate(topics=(topic,))

    assert summary.copied_now == 300
    assert_same(mixed_pair, topic, 3)
    assert codecs_in(mixed_pair.target, topic) == list(Codec)


def test_an_empty_topic_is_created(mixed_pair: ClusterPair) -> None:
    topic = create(mixed_pair.source, partitions=2)

    summary = mixed_pair.migrate(topics=(topic,))

    assert summary.copied_now == 0
    assert count_partitions(mixed_pair.target, topic) == 2


def test_a_truncated_log_is_copied_from_its_start_offset(mixed_pair: ClusterPair) -> None:
    topic = create(mixed_pair.source)
    # One batch, so that the log start offset lies within it.
    mixed_pair.source.produce(topic, 50)
    mixed_pair.source.delete_before(at(topic), 20)
    late, early = mixed_pair.source.name_group(), mixed_pair.source.name_group()
    commit(mixed_pair.source, late, {at(topic): 30})
    commit(mixed_pair.source, early, {at(topic): 5})

    summary = mixed_pair.migrate(topics=(topic,), groups=(GroupId(late), GroupId(early)))

    assert [each.copied for each in summary.partitions] == [30]
    assert_same(mixed_pair, topic)
    assert committed(mixed_pair.target, late) == {at(topic): 10}
    assert committed(mixed_pair.target, early) == {at(topic): 0}


def test_a_compacted_log_is_copied_without_gaps(mixed_pair: ClusterPair) -> None:
    topic = create(mixed_pair.source, settings=COMPACTED)
    compact(mixed_pair.source, topic)
    (records,) = read_all(mixed_pair.source, topic, 1)
    # One group per remaining record, and one whose offset lies in a gap.
    offsets = {f"{topic}-{number}": each.offset for number, each in enumerate(records[:20])}
    offsets[f"{topic}-gap"] = Offset(records[1].offset - 1)
    for group, offset in offsets.items():
        commit(mixed_pair.source, group, {at(topic): offset})

    summary = mixed_pair.migrate(topics=(topic,), groups=tuple(map(GroupId, offsets)))

    assert summary.failures == summary.warnings == ()
    (copied,) = read_all(mixed_pair.target, topic, 1)
    by_content = {content: offset for offset, content in enumerate(contents(copied))}
    for number, each in enumerate(records[:20]):
        # The source may have been compacted further; then the next record counts.
        target = committed(mixed_pair.target, f"{topic}-{number}")[at(topic)]
        (content,) = contents([each])
        assert target == by_content.get(content, target)
    assert own_settings(mixed_pair.target, topic).items() >= {"cleanup.policy": "compact"}.items()


def test_records_keep_their_partition(mixed_pair: ClusterPair) -> None:
    topic = create(mixed_pair.source, partitions=40)
    written = [ProducedRecord(partition=n % 40, value=b"%d" % n) for n in range(400)]
    mixed_pair.source.produce(topic, written)

    summary = mixed_pair.migrate(topics=(topic,))

    assert [each.copied for each in summary.partitions] == [10] * 40
    assert_same(mixed_pair, topic, 40)


def test_a_group_continues_with_the_next_record(mixed_pair: ClusterPair) -> None:
    topic = create(mixed_pair.source, partitions=2)
    written = [ProducedRecord(partition=n % 2, value=b"%d" % n) for n in range(200)]
    mixed_pair.source.produce(topic, written)
    mixed_pair.source.delete_before(at(topic, 1), 10)
    group = mixed_pair.source.name_group()
    with mixed_pair.source.consumer(group_id=group, max_poll_records=30) as consumer:
        consumer.subscribe([topic])
        seen = list(itertools.islice(consumer, 70))

    mixed_pair.migrate(topics=(topic,), groups=(GroupId(group),))

    rest = read_next(mixed_pair.target, topic, group)
    gone = {b"%d" % n for n in range(1, 20, 2)}
    values = [each.value for each in (*seen, *rest)]
    assert sorted(values) == sorted({b"%d" % n for n in range(200)} - gone)


def test_topic_configs_are_copied(mixed_pair: ClusterPair) -> None:
    wanted = {
        "retention.ms": "1234567890123",
        "max.message.bytes": "2000000",
        "message.timestamp.type": "LogAppendTime",
        "segment.bytes": "20000000",
    }
    topic = create(mixed_pair.source, settings=wanted)
    mixed_pair.source.produce(topic, 10)

    plan = mixed_pair.plan(topics=(topic,))
    mixed_pair.migrate(topics=(topic,))

    assert dict(plan.topics[0].settings).items() >= wanted.items()
    assert own_settings(mixed_pair.target, topic).items() >= wanted.items()
    assert_same(mixed_pair, topic)


def test_another_run_copies_only_new_records(mixed_pair: ClusterPair) -> None:
    topic = create(mixed_pair.source, partitions=2)
    group = mixed_pair.source.name_group()
    mixed_pair.source.produce(topic, 100)
    commit(mixed_pair.source, group, {at(topic): 40})
    mixed_pair.migrate(topics=(topic,), groups=(GroupId(group),))
    mixed_pair.source.produce(
        topic, [ProducedRecord(partition=n % 2, value=b"new") for n in range(50)]
    )
    commit(mixed_pair.source, group, {at(topic): 110, at(topic, 1): 3})

    summary = mixed_pair.migrate(topics=(topic,), groups=(GroupId(group),))
    idle = mixed_pair.migrate(topics=(topic,), groups=(GroupId(group),))

    assert summary.plan.topics[0].step is TopicStep.CONTINUE
    assert (summary.copied_now, idle.copied_now) == (50, 0)
    assert committed(mixed_pair.target, group) == {at(topic): 110, at(topic, 1): 3}
    assert_same(mixed_pair, topic, 2)


def test_offset_metadata_is_copied(mixed_pair: ClusterPair) -> None:
    topic = create(mixed_pair.source)
    mixed_pair.source.produce(topic, 5)
    group = mixed_pair.source.name_group()
    with mixed_pair.source.consumer(group_id=group) as consumer:
        consumer.commit({at(topic): OffsetAndMetadata(offset=Offset(3), metadata="half way")})

    mixed_pair.migrate(topics=(topic,), groups=(GroupId(group),))

    with mixed_pair.target.consumer(group_id=group) as consumer:
        found = consumer.committed(at(topic))
    assert found is not None
    assert (found.offset, found.metadata) == (3, "half way")


def test_new_partitions_are_added(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source, partitions=1)
    node_pair.source.produce(topic, 5)
    node_pair.migrate()
    node_pair.source.add_partitions(topic, 3)
    node_pair.source.produce(topic, [ProducedRecord(partition=2, value=b"new")])

    node_pair.migrate()

    assert_same(node_pair, topic, 3)


def test_offsets_are_translated_if_the_target_topic_has_records(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.target.create_topic(1, topic)
    node_pair.source.produce(topic, 20)
    node_pair.target.produce(topic, [ProducedRecord(value=b"existing")] * 7)
    commit(node_pair.source, "billing", {at(topic): 15})

    node_pair.migrate(is_into_existing=True)

    (copied,) = read_all(node_pair.target, topic, 1)
    assert [each.value for each in copied] == [b"existing"] * 7 + [b"%d" % n for n in range(20)]
    assert committed(node_pair.target, "billing") == {at(topic): 22}


def test_an_existing_topic_gets_its_config_back(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.source.produce(topic, 5)
    node_pair.target.create_topic(1, topic)
    with_own = {"retention.ms": "777777777", "cleanup.policy": "delete"}
    alter(node_pair.target, topic, with_own)

    node_pair.migrate(is_into_existing=True)

    assert own_settings(node_pair.target, topic) == with_own


def test_large_records_are_copied(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source)
    node_pair.source.produce(topic, [ProducedRecord(value=bytes([n]) * 900_000) for n in range(5)])

    node_pair.migrate()

    assert_same(node_pair, topic)


def test_internal_topics_are_not_copied(node_pair: ClusterPair) -> None:
    topic = create(node_pair.source, partitions=2)
    commit(node_pair.source, "billing", {at(topic): 0})

    plan = node_pair.plan()

    assert [each.topic for each in plan.topics] == [topic]
    assert "__consumer_offsets" in plan.internal
