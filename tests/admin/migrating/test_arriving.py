"""Topics and groups move from Kohort to Apache Kafka and back, and arrive as they were."""

import itertools

from kohort.admin.migrating.wish import TopicStep
from kohort.client.member.events import Position
from kohort.types import GroupId, Offset, Topic
from kohort.wire.batch_header import split
from kohort.wire.compression import Codec
from tests.admin.migrating.migrations import (
    COMPACTED,
    Pair,
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
from tests.client.clusters import Cluster, Written, at
from tests.waiting import wait_until


def codecs_in(cluster: Cluster, topic: Topic) -> list[Codec]:
    """Of partition 0, in the order of batches, each once in a row."""
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


def test_records_arrive_as_they_were(mixed_pair: Pair) -> None:
    topic = create(mixed_pair.a, partitions=3)
    produce_all_codecs(mixed_pair.a, topic, 3)

    summary = mixed_pair.migrate(topics=(topic,))

    assert summary.copied_now == 300
    assert_same(mixed_pair, topic, 3)
    assert codecs_in(mixed_pair.b, topic) == list(Codec)


def test_a_topic_without_records_arrives(mixed_pair: Pair) -> None:
    topic = create(mixed_pair.a, partitions=2)

    summary = mixed_pair.migrate(topics=(topic,))

    assert summary.copied_now == 0
    assert count_partitions(mixed_pair.b, topic) == 2


def test_a_log_whose_beginning_is_gone_arrives_from_there_on(mixed_pair: Pair) -> None:
    topic = create(mixed_pair.a)
    # One batch, so that its beginning is cut off in its middle.
    mixed_pair.a.produce(topic, 50)
    mixed_pair.a.delete_before(at(topic), 20)
    late, early = mixed_pair.a.name_group(), mixed_pair.a.name_group()
    commit(mixed_pair.a, late, {at(topic): 30})
    commit(mixed_pair.a, early, {at(topic): 5})

    summary = mixed_pair.migrate(topics=(topic,), groups=(GroupId(late), GroupId(early)))

    assert [each.copied for each in summary.partitions] == [30]
    assert_same(mixed_pair, topic)
    assert committed(mixed_pair.b, late) == {at(topic): 10}
    assert committed(mixed_pair.b, early) == {at(topic): 0}


def test_a_compacted_log_arrives_without_its_gaps(mixed_pair: Pair) -> None:
    topic = create(mixed_pair.a, settings=COMPACTED)
    compact(mixed_pair.a, topic)
    (records,) = read_all(mixed_pair.a, topic, 1)
    # One group stands before each record that is left, and one in the middle of a gap.
    stands = {f"{topic}-{number}": each.offset for number, each in enumerate(records[:20])}
    stands[f"{topic}-gap"] = Offset(records[1].offset - 1)
    for group, offset in stands.items():
        commit(mixed_pair.a, group, {at(topic): offset})

    summary = mixed_pair.migrate(topics=(topic,), groups=tuple(map(GroupId, stands)))

    assert summary.failures == summary.warnings == ()
    (arrived,) = read_all(mixed_pair.b, topic, 1)
    by_content = {content: offset for offset, content in enumerate(contents(arrived))}
    for number, each in enumerate(records[:20]):
        # A may have been compacted further when it was copied; the next one is next then.
        target = committed(mixed_pair.b, f"{topic}-{number}")[at(topic)]
        (content,) = contents([each])
        assert target == by_content.get(content, target)
    assert own_settings(mixed_pair.b, topic).items() >= {"cleanup.policy": "compact"}.items()


def test_many_partitions_keep_their_numbers(mixed_pair: Pair) -> None:
    topic = create(mixed_pair.a, partitions=40)
    written = [Written(partition=n % 40, value=b"%d" % n) for n in range(400)]
    mixed_pair.a.produce(topic, written)

    summary = mixed_pair.migrate(topics=(topic,))

    assert [each.copied for each in summary.partitions] == [10] * 40
    assert_same(mixed_pair, topic, 40)


def test_a_group_goes_on_at_the_next_record(mixed_pair: Pair) -> None:
    topic = create(mixed_pair.a, partitions=2)
    written = [Written(partition=n % 2, value=b"%d" % n) for n in range(200)]
    mixed_pair.a.produce(topic, written)
    mixed_pair.a.delete_before(at(topic, 1), 10)
    group = mixed_pair.a.name_group()
    with mixed_pair.a.consumer(group_id=group, max_poll_records=30) as consumer:
        consumer.subscribe([topic])
        seen = list(itertools.islice(consumer, 70))

    mixed_pair.migrate(topics=(topic,), groups=(GroupId(group),))

    rest = read_next(mixed_pair.b, topic, group)
    gone = {b"%d" % n for n in range(1, 20, 2)}
    values = [each.value for each in (*seen, *rest)]
    assert sorted(values) == sorted({b"%d" % n for n in range(200)} - gone)


def test_settings_arrive_with_the_topic(mixed_pair: Pair) -> None:
    wanted = {
        "retention.ms": "1234567890123",
        "max.message.bytes": "2000000",
        "message.timestamp.type": "LogAppendTime",
        "segment.bytes": "20000000",
    }
    topic = create(mixed_pair.a, settings=wanted)
    mixed_pair.a.produce(topic, 10)

    plan = mixed_pair.plan(topics=(topic,))
    mixed_pair.migrate(topics=(topic,))

    assert dict(plan.topics[0].settings).items() >= wanted.items()
    assert own_settings(mixed_pair.b, topic).items() >= wanted.items()
    assert_same(mixed_pair, topic)


def test_another_run_brings_what_is_new_and_nothing_twice(mixed_pair: Pair) -> None:
    topic = create(mixed_pair.a, partitions=2)
    group = mixed_pair.a.name_group()
    mixed_pair.a.produce(topic, 100)
    commit(mixed_pair.a, group, {at(topic): 40})
    mixed_pair.migrate(topics=(topic,), groups=(GroupId(group),))
    mixed_pair.a.produce(topic, [Written(partition=n % 2, value=b"new") for n in range(50)])
    commit(mixed_pair.a, group, {at(topic): 110, at(topic, 1): 3})

    summary = mixed_pair.migrate(topics=(topic,), groups=(GroupId(group),))
    idle = mixed_pair.migrate(topics=(topic,), groups=(GroupId(group),))

    assert summary.plan.topics[0].step is TopicStep.CONTINUE
    assert (summary.copied_now, idle.copied_now) == (50, 0)
    assert committed(mixed_pair.b, group) == {at(topic): 110, at(topic, 1): 3}
    assert_same(mixed_pair, topic, 2)


def test_what_a_group_notes_beside_its_offset_arrives(mixed_pair: Pair) -> None:
    topic = create(mixed_pair.a)
    mixed_pair.a.produce(topic, 5)
    group = mixed_pair.a.name_group()
    with mixed_pair.a.consumer(group_id=group) as consumer:
        consumer.commit({at(topic): Position(offset=Offset(3), metadata="half way")})

    mixed_pair.migrate(topics=(topic,), groups=(GroupId(group),))

    with mixed_pair.b.consumer(group_id=group) as consumer:
        found = consumer.committed(at(topic))
    assert found is not None
    assert (found.offset, found.metadata) == (3, "half way")


def test_partitions_that_came_later_are_added(node_pair: Pair) -> None:
    topic = create(node_pair.a, partitions=1)
    node_pair.a.produce(topic, 5)
    node_pair.migrate()
    node_pair.a.add_partitions(topic, 3)
    node_pair.a.produce(topic, [Written(partition=2, value=b"new")])

    node_pair.migrate()

    assert_same(node_pair, topic, 3)


def test_records_behind_those_that_b_had_are_found_again(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.b.create_topic(1, topic)
    node_pair.a.produce(topic, 20)
    node_pair.b.produce(topic, [Written(value=b"theirs")] * 7)
    commit(node_pair.a, "billing", {at(topic): 15})

    node_pair.migrate(is_into_existing=True)

    (arrived,) = read_all(node_pair.b, topic, 1)
    assert [each.value for each in arrived] == [b"theirs"] * 7 + [b"%d" % n for n in range(20)]
    assert committed(node_pair.b, "billing") == {at(topic): 22}


def test_a_topic_of_b_has_its_own_settings_again_afterwards(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.a.produce(topic, 5)
    node_pair.b.create_topic(1, topic)
    with_own = {"retention.ms": "777777777", "cleanup.policy": "delete"}
    alter(node_pair.b, topic, with_own)

    node_pair.migrate(is_into_existing=True)

    assert own_settings(node_pair.b, topic) == with_own


def test_large_records_arrive(node_pair: Pair) -> None:
    topic = create(node_pair.a)
    node_pair.a.produce(topic, [Written(value=bytes([n]) * 900_000) for n in range(5)])

    node_pair.migrate()

    assert_same(node_pair, topic)


def test_internal_topics_stay_where_they_are(node_pair: Pair) -> None:
    topic = create(node_pair.a, partitions=2)
    commit(node_pair.a, "billing", {at(topic): 0})

    plan = node_pair.plan()

    assert [each.topic for each in plan.topics] == [topic]
    assert "__consumer_offsets" in plan.internal
