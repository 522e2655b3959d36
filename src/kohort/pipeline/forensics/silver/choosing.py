"""Which records of bronze are of which kind, told from their keys' first two bytes by Spark."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.decoding.files import EVENTS, OFFSETS
from kohort.pipeline.forensics.decoding.kinds import COMMIT_NUMBERS, GROUP_NUMBER, SKIPPED
from kohort.types import value

NUMBER = "CAST(conv(hex(substring(key, 1, 2)), 16, 10) AS INT)"
"""What a key of `__consumer_offsets` begins with: the kind of its record."""


@value
class Sorted:
    """Records by what they are: what is many, and apart from it what is few."""

    commits: DataFrame
    keys: DataFrame
    """Of commits, each once, with topic and partition: few, even where commits are millions."""
    others: DataFrame
    """Groups, events, and whatever else there is."""


def sort_out(records: DataFrame) -> Sorted:
    commits = records.where(_is_commit())
    return Sorted(
        commits=commits,
        keys=commits.select("topic", "partition", "key").distinct(),
        others=records.where(~sql.coalesce(_is_commit(), sql.lit(False))),  # noqa: FBT003
    )


def choose_groups(records: DataFrame) -> DataFrame:
    return records.where((sql.col("topic") == OFFSETS) & _has_number([GROUP_NUMBER]))


def choose_events(records: DataFrame) -> DataFrame:
    return records.where(sql.col("topic") == EVENTS)


def choose_others(records: DataFrame) -> DataFrame:
    """What is of none of the kinds that are read here."""
    return records.where(
        (sql.col("topic") == OFFSETS)
        & sql.coalesce(~_has_number([*COMMIT_NUMBERS, GROUP_NUMBER]), sql.lit(True))  # noqa: FBT003
    )


def is_skipped() -> Column:
    """Whether a record is of a kind that Kafka knows and that tells of other groups."""
    return sql.coalesce(_has_number(SKIPPED), sql.lit(False))  # noqa: FBT003


def _is_commit() -> Column:
    return (sql.col("topic") == OFFSETS) & _has_number(COMMIT_NUMBERS)


def _has_number(numbers: Iterable[int]) -> Column:
    prefixes = ", ".join(f"X'{number:04x}'" for number in numbers)
    return sql.expr(f"substring(key, 1, 2) IN ({prefixes})")
