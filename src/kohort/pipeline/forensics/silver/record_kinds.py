"""The kinds of records in `__consumer_offsets`, and bronze split by them.

The first two bytes of a key are the number of its kind.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kohort.events.internal_topics import CONSUMER_OFFSETS, KOHORT_EVENTS
from kohort.types import value

COMMIT_NUMBERS: Final = (0, 1)
GROUP_NUMBER: Final = 2

SKIPPED: Final[Mapping[int, str]] = {
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    9: "ShareGroupPartitionMetadata",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
    17: "StreamsGroupMetadata",
    18: "StreamsGroupPartitionMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}
"""Kafka's names of the kinds that are not about classic groups; they are only counted."""

NUMBER = "CAST(conv(hex(substring(key, 1, 2)), 16, 10) AS INT)"
"""SQL: the number of the kind of a record."""


@value
class RecordsByKind:
    """Records by kind: the many commits apart from the few others."""

    commits: DataFrame
    keys: DataFrame
    """The distinct keys of commits, with topic and partition: few even for millions of commits."""
    others: DataFrame
    """Groups, events and all other records."""


def split_by_kind(records: DataFrame) -> RecordsByKind:
    commits = records.where(_is_commit())
    return RecordsByKind(
        commits=commits,
        keys=commits.select("topic", "partition", "key").distinct(),
        others=records.where(~sql.coalesce(_is_commit(), sql.lit(False))),  # noqa: FBT003
    )


def choose_groups(records: DataFrame) -> DataFrame:
    return records.where((sql.col("topic") == CONSUMER_OFFSETS) & _has_number([GROUP_NUMBER]))


def choose_events(records: DataFrame) -> DataFrame:
    return records.where(sql.col("topic") == KOHORT_EVENTS)


def choose_others(records: DataFrame) -> DataFrame:
    """Records of kinds that are not read here."""
    return records.where(
        (sql.col("topic") == CONSUMER_OFFSETS)
        & sql.coalesce(~_has_number([*COMMIT_NUMBERS, GROUP_NUMBER]), sql.lit(True))  # noqa: FBT003
    )


def is_skipped() -> Column:
    """Whether a record is of a kind of Kafka that is not about classic groups."""
    return sql.coalesce(_has_number(SKIPPED), sql.lit(False))  # noqa: FBT003


def _is_commit() -> Column:
    return (sql.col("topic") == CONSUMER_OFFSETS) & _has_number(COMMIT_NUMBERS)


def _has_number(numbers: Iterable[int]) -> Column:
    prefixes = ", ".join(f"X'{number:04x}'" for number in numbers)
    return sql.expr(f"substring(key, 1, 2) IN ({prefixes})")
