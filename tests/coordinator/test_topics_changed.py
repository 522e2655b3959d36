"""TopicsChanged: deleting a topic removes its offsets; creating or growing one removes nothing."""

from kohort.coordinator.commands import (
    CommitOffsets,
    DeletedTopic,
    OffsetToCommit,
    PresentTopic,
    TopicsChanged,
)
from kohort.types import Offset, Partition, Topic, Uuid
from tests.coordinator.scenario import GROUP, TOPIC, Scenario

OLD_ID, NEW_ID = Uuid(bytes([1] * 16)), Uuid(bytes([2] * 16))


def commit(scenario: Scenario, topic_id: Uuid, offset: int) -> None:
    to_commit = OffsetToCommit(
        topic=TOPIC, partition=Partition(0), offset=Offset(offset), topic_id=topic_id
    )
    scenario.send(lambda ticket: CommitOffsets(ticket=ticket, group_id=GROUP, offsets=(to_commit,)))


def test_the_offsets_of_a_deleted_topic_are_removed() -> None:
    scenario = Scenario()
    scenario.commit({0: 42, 1: 43})
    scenario.commit({0: 44}, topic="u")

    scenario.driver.decide(TopicsChanged(deleted=(DeletedTopic(topic=TOPIC),)))

    assert scenario.committed(0, 1) == [-1, -1]
    assert scenario.committed(0, topic="u") == [44]


def test_creating_or_growing_a_topic_keeps_its_offsets() -> None:
    scenario = Scenario()
    commit(scenario, OLD_ID, 42)
    created = PresentTopic(topic=Topic("u"), topic_id=NEW_ID, partition_count=1)
    changed = PresentTopic(topic=TOPIC, topic_id=OLD_ID, partition_count=2)

    outcome = scenario.driver.decide(TopicsChanged(created=(created,), changed=(changed,)))

    assert not outcome.records
    assert scenario.committed(0) == [42]


def test_offsets_of_a_recreated_topic_are_kept() -> None:
    scenario = Scenario()
    commit(scenario, NEW_ID, 7)
    deleted = DeletedTopic(topic=TOPIC, topic_id=OLD_ID)
    created = PresentTopic(topic=TOPIC, topic_id=NEW_ID, partition_count=1)

    outcome = scenario.driver.decide(TopicsChanged(created=(created,), deleted=(deleted,)))

    assert not outcome.records
    assert scenario.committed(0) == [7]
