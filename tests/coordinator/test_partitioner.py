"""Groups live where Kafka would put them: the expected numbers are `String.hashCode` of Java 17."""

import pytest

from kohort.coordinator.partitioner import partition_of
from kohort.types import GroupId

OFFSETS_TOPIC_PARTITIONS = 50
"""What Kafka gives `__consumer_offsets` unless told otherwise."""

HASHES = {
    "": 0,
    "a": 97,
    "group": 98_629_247,
    "my-group": -1_906_497_762,
    "test-group": 627_841_412,
    "consumer-group-1": 147_483_020,
    "console-consumer-35146": 160_390_000,
    "消费者组": 871_131_088,
    "Größe": 69_209_585,
    "😀": 1_772_899,
    "café-🚀-𝄞": -925_669_144,
    "x" * 300: -1_757_771_264,
}


@pytest.mark.parametrize(("group_id", "java_hash"), HASHES.items())
def test_a_group_lives_in_the_partition_of_its_java_hash(group_id: str, java_hash: int) -> None:
    found = partition_of(GroupId(group_id), OFFSETS_TOPIC_PARTITIONS)

    assert found == abs(java_hash) % OFFSETS_TOPIC_PARTITIONS


@pytest.mark.parametrize(("group_id", "java_hash"), HASHES.items())
def test_all_bits_of_the_hash_but_its_sign_count(group_id: str, java_hash: int) -> None:
    assert partition_of(GroupId(group_id), 2**31) == abs(java_hash)


@pytest.mark.parametrize("group_id", ["polygenelubricants", "GydZG_", "DESIGNING WORKHOUSES"])
def test_the_hash_without_an_absolute_value_counts_as_zero(group_id: str) -> None:
    assert partition_of(GroupId(group_id), 2**31) == 0
    assert partition_of(GroupId(group_id), 7) == 0


def test_a_lone_surrogate_is_hashed_as_java_would() -> None:
    assert partition_of(GroupId("\ud83d"), OFFSETS_TOPIC_PARTITIONS) == 55_357 % 50


def test_a_single_partition_holds_every_group() -> None:
    assert {partition_of(GroupId(group_id), 1) for group_id in HASHES} == {0}
