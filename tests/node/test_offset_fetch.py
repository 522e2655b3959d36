"""OffsetFetch: order of groups and partitions, topic ids and errors."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kohort.coordinator.commands import (
    Command,
    CommitOffsets,
    CommitTransactionOffsets,
    OffsetToCommit,
    Shutdown,
    Ticket,
)
from kohort.types import (
    ZERO_UUID,
    GroupId,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    Uuid,
)
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseTopics,
)
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from tests.node.broker_harness import BrokerHarness, name_of

NOT_A_TOPIC = Uuid(b"not any topic id")


@pytest.fixture
def syncing(tmp_path: Path) -> Iterator[BrokerHarness]:
    harness = BrokerHarness(tmp_path / "syncing", syncs=True)
    yield harness
    harness.close()


def submit(harness: BrokerHarness, make: Callable[[Ticket], Command]) -> None:
    harness.submit(make)


def commit(
    harness: BrokerHarness,
    group: str,
    offsets: dict[int, int],
    topic: str = "t",
    metadata: str = "",
) -> None:
    submit(
        harness,
        lambda ticket: CommitOffsets(
            ticket=ticket, group_id=GroupId(group), offsets=_offsets(offsets, topic, metadata)
        ),
    )


def commit_in_transaction(harness: BrokerHarness, group: str, offsets: dict[int, int]) -> None:
    submit(
        harness,
        lambda ticket: CommitTransactionOffsets(
            ticket=ticket,
            group_id=GroupId(group),
            producer_id=ProducerId(1),
            producer_epoch=ProducerEpoch(0),
            offsets=_offsets(offsets, "t", ""),
        ),
    )


def _offsets(offsets: dict[int, int], topic: str, metadata: str) -> tuple[OffsetToCommit, ...]:
    return tuple(
        OffsetToCommit(
            topic=Topic(topic),
            partition=Partition(partition),
            offset=Offset(offset),
            metadata=metadata,
        )
        for partition, offset in offsets.items()
    )


def asking(
    *groups: str,
    topics: tuple[OffsetFetchRequestTopics, ...] | None = None,
    is_stable: bool = False,
) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=tuple(
            OffsetFetchRequestGroup(group_id=GroupId(each), topics=topics) for each in groups
        ),
        require_stable=is_stable,
    )


def wanted(
    *partitions: int, topic: str = "", topic_id: Uuid = ZERO_UUID
) -> OffsetFetchRequestTopics:
    return OffsetFetchRequestTopics(
        name=Topic(topic), topic_id=topic_id, partition_indexes=tuple(map(Partition, partitions))
    )


def shown(topic: OffsetFetchResponseTopics) -> list[tuple[int, int | str]]:
    """Each partition with its offset, or its error instead."""
    return [
        (
            each.partition_index,
            name_of(each.error_code) if each.error_code else each.committed_offset,
        )
        for each in topic.partitions
    ]


@pytest.mark.parametrize("version", [8, 9, 10])
def test_groups_are_in_request_order(harness: BrokerHarness, version: int) -> None:
    harness.create("t", 3)
    commit(harness, "a", {0: 1, 2: 2})
    commit(harness, "b", {1: 3})

    groups = harness.answer(asking("b", "unknown", "a", "b"), version).groups

    assert [group.group_id for group in groups] == ["b", "unknown", "a", "b"]
    assert [[shown(topic) for topic in group.topics] for group in groups] == [
        [[(1, 3)]],
        [],
        [[(0, 1), (2, 2)]],
        [[(1, 3)]],
    ]


@pytest.mark.parametrize("version", [8, 9, 10])
def test_empty_group_list_gets_an_empty_response(harness: BrokerHarness, version: int) -> None:
    assert harness.answer(asking(), version).groups == ()


def test_partitions_are_in_request_order(harness: BrokerHarness) -> None:
    harness.create("t", 3)
    commit(harness, "a", {0: 1, 2: 2})
    commit(harness, "a", {0: 5}, topic="gone")

    topics = (wanted(2, 0, 1, 2, topic="t"), wanted(topic="t"), wanted(0, topic="gone"))
    (group,) = harness.answer(asking("a", topics=topics), 8).groups

    assert [topic.name for topic in group.topics] == ["t", "t", "gone"]
    assert [shown(topic) for topic in group.topics] == [
        [(2, 2), (0, 1), (1, -1), (2, 2)],
        [],
        [(0, 5)],
    ]


@pytest.mark.parametrize("version", range(1, 8))
def test_versions_before_8_return_one_group(harness: BrokerHarness, version: int) -> None:
    harness.create("t", 3)
    commit(harness, "a", {0: 1}, metadata="half")
    topic = OffsetFetchRequestTopic(name=Topic("t"), partition_indexes=(Partition(0), Partition(1)))

    answer = harness.answer(OffsetFetchRequest(group_id=GroupId("a"), topics=(topic,)), version)

    (returned,) = answer.topics
    assert returned.name == "t"
    assert [
        (each.partition_index, each.committed_offset, each.metadata) for each in returned.partitions
    ] == [(0, 1, "half"), (1, -1, "")]


def test_unknown_topic_ids_come_last(harness: BrokerHarness) -> None:
    harness.create("t", 3)
    commit(harness, "a", {0: 1})
    foreign, known = wanted(4, topic_id=NOT_A_TOPIC), wanted(0, topic_id=harness.id_of("t"))

    pending = harness.ask(asking("a", topics=(foreign, known, foreign)), 10)

    (group,) = pending.answer.groups
    assert [(topic.topic_id, shown(topic)) for topic in group.topics] == [
        (harness.id_of("t"), [(0, 1)]),
        (NOT_A_TOPIC, [(4, "UNKNOWN_TOPIC_ID")]),
        (NOT_A_TOPIC, [(4, "UNKNOWN_TOPIC_ID")]),
    ]
    assert name_of(pending.request.error) == "UNKNOWN_TOPIC_ID"


def test_all_topics_are_returned_with_their_ids(harness: BrokerHarness) -> None:
    harness.create("t")
    commit(harness, "a", {0: 1})
    commit(harness, "a", {0: 2}, topic="gone")

    (group,) = harness.answer(asking("a"), 10).groups

    assert [(topic.topic_id, shown(topic)) for topic in group.topics] == [
        (harness.id_of("t"), [(0, 1)]),
        (ZERO_UUID, [(0, 2)]),
    ]


@pytest.mark.parametrize("topics", [None, (wanted(0, 1, topic="t"),)], ids=["all", "named"])
def test_offset_in_an_open_transaction_is_unstable(
    harness: BrokerHarness, topics: tuple[OffsetFetchRequestTopics, ...] | None
) -> None:
    harness.create("t", 2)
    commit(harness, "a", {0: 1, 1: 2})
    commit_in_transaction(harness, "a", {1: 3})

    pending = harness.ask(asking("a", topics=topics, is_stable=True), 8)
    careless = harness.ask(asking("a", topics=topics), 8)

    assert shown(pending.answer.groups[0].topics[0]) == [(0, 1), (1, "UNSTABLE_OFFSET_COMMIT")]
    assert name_of(pending.request.error) == "UNSTABLE_OFFSET_COMMIT"
    assert shown(careless.answer.groups[0].topics[0]) == [(0, 1), (1, 2)]
    assert careless.request.error == 0


def test_stopped_coordinator_refuses_every_group(harness: BrokerHarness) -> None:
    harness.create("t")
    commit(harness, "a", {0: 1})
    harness.broker.groups.submit(Shutdown(), harness.now)

    pending = harness.ask(asking("a", "b"), 8)

    groups = pending.answer.groups
    assert [(each.group_id, name_of(each.error_code), each.topics) for each in groups] == [
        ("a", "NOT_COORDINATOR", ()),
        ("b", "NOT_COORDINATOR", ()),
    ]
    assert name_of(pending.request.error) == "NOT_COORDINATOR"


def test_responses_wait_for_the_sync(syncing: BrokerHarness) -> None:
    syncing.create("t")
    syncing.sync()
    commit(syncing, "a", {0: 1})

    pending = syncing.ask(asking("b", "a"), 8)
    was_answered = pending.is_answered
    commit(syncing, "a", {0: 2})
    syncing.sync()

    assert not was_answered
    groups = pending.answer.groups
    assert [(each.group_id, *map(shown, each.topics)) for each in groups] == [
        ("b",),
        ("a", [(0, 1)]),
    ]


def test_topic_deleted_before_the_response_is_still_answered(
    syncing: BrokerHarness,
) -> None:
    syncing.create("t")
    topic_id = syncing.id_of("t")
    syncing.sync()
    commit(syncing, "a", {0: 1})

    pending = syncing.ask(asking("a", topics=(wanted(0, topic_id=topic_id),)), 10)
    syncing.ask(DeleteTopicsRequest(topic_names=(Topic("t"),)), 5)
    syncing.sync()

    (group,) = pending.answer.groups
    assert [(topic.topic_id, shown(topic)) for topic in group.topics] == [(topic_id, [(0, 1)])]


def test_metadata_too_long_for_an_old_version_closes_the_connection(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path / "long", {"offset.metadata.max.bytes": "100000"})
    harness.create("t")
    commit(harness, "a", {0: 1}, metadata="m" * 40_000)

    old = harness.ask(OffsetFetchRequest(group_id=GroupId("a"), topics=None), 5)
    new = harness.answer(OffsetFetchRequest(group_id=GroupId("a"), topics=None), 6)

    assert "metadata: 40000 does not fit" in (old.request.disconnect_reason or "")
    assert len(new.topics[0].partitions[0].metadata) == 40_000
    harness.close()
