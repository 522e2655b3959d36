"""The partition of a group in `__consumer_offsets`. The hashes are `String.hashCode` of Java 17."""

import pytest

from kohort.events.internal_topics import partition_of
from kohort.types import GroupId

OFFSETS_TOPIC_PARTITIONS = 50
"""Kafka's default for `__consumer_offsets`."""

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
def test_partition_is_the_java_hash_modulo_the_count(group_id: str, java_hash: int) -> None:
    found = partition_of(GroupId(group_id), OFFSETS_TOPIC_PARTITIONS)

    assert found == abs(java_hash) % OFFSETS_TOPIC_PARTITIONS


@pytest.mark.parametrize(("group_id", "java_hash"), HASHES.items())
def test_all_bits_of_the_hash_except_the_sign_are_used(group_id: str, java_hash: int) -> None:
    assert partition_of(GroupId(group_id), 2**31) == abs(java_hash)


@pytest.mark.parametrize("group_id", ["polygenelubricants", "GydZG_", "DESIGNING WORKHOUSES"])
def test_minimum_int_hash_is_partition_zero(group_id: str) -> None:
    assert partition_of(GroupId(group_id), 2**31) == 0
    assert partition_of(GroupId(group_id), 7) == 0


def test_lone_surrogate_is_hashed_as_in_java() -> None:
    assert partition_of(GroupId("\ud83d"), OFFSETS_TOPIC_PARTITIONS) == 55_357 % 50


def test_one_partition_holds_all_groups() -> None:
    assert {partition_of(GroupId(group_id), 1) for group_id in HASHES} == {0}
