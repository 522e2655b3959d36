"""Undecodable: records nobody could make sense of, set aside with the reason; and what is skipped.

Skipped is not undecodable: records of other kinds of groups are well known, and only counted.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.decoding import commits, events, generations
from kohort.pipeline.forensics.decoding.batches import Problem
from kohort.pipeline.forensics.decoding.kinds import SKIPPED
from kohort.pipeline.forensics.silver.choosing import (
    NUMBER,
    Sorted,
    choose_groups,
    choose_others,
    is_skipped,
)
from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.silver.group_events import put_together
from kohort.pipeline.forensics.tables import UNDECODABLE

_IS_PLAIN: Final = " OR ".join(
    f"(length(value) = {size} AND substring(value, 1, 2) = X'{version:04x}' "
    f"AND substring(value, {at}, {len(empty) // 2}) = X'{empty}'{more})"
    for version, size, at, empty, more in (
        (0, 20, 11, "0000", ""),
        (1, 28, 11, "0000", ""),
        (2, 20, 11, "0000", ""),
        (3, 24, 15, "0000", ""),
        (4, 24, 15, "01", " AND substring(value, 24, 1) = X'00'"),
    )
)
"""Whether a value is one of a commit without metadata, in any version; null for a tombstone."""


def build(records: Sorted) -> DataFrame:
    bad = (
        _ask(_doubtful_commits(records), commits.find_problems)
        .unionByName(_ask(choose_groups(records.others), generations.find_problems))
        .unionByName(_nameless(records.others))
        .dropDuplicates(["topic", "partition", "offset"])
        .unionByName(_bad_events(records.others))
    )
    return conform(bad, UNDECODABLE)


def count_skipped(records: Sorted) -> DataFrame:
    """How many records of each kind that is left alone there are: `kind STRING, records BIGINT`."""
    names = [sql.lit(each) for pair in SKIPPED.items() for each in pair]
    kind = sql.create_map(*names)[sql.expr(NUMBER)].alias("kind")
    skipped = choose_others(records.others).where(is_skipped())
    return skipped.groupBy(kind).agg(sql.countDistinct("partition", "offset").alias("records"))


def _ask(records: DataFrame, find_problems: Callable[[pa.RecordBatch], list[Problem]]) -> DataFrame:
    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _guilty(batch, find_problems(batch))

    return records.mapInArrow(decode, UNDECODABLE.ddl)


def _doubtful_commits(records: Sorted) -> DataFrame:
    """All commits but those that are sound at a glance, so that Python need not see millions.

    Keys are few, so each is read once; a value without metadata and tags has one size and form.
    """
    keys = records.keys.selectExpr(
        "topic",
        "partition",
        "0L AS offset",
        "timestamp_millis(0) AS timestamp",
        "key",
        "CAST(NULL AS BINARY) AS value",
    )
    bad_keys = _ask(keys, commits.find_problems).select("partition", "key")
    return records.commits.where(f"NOT coalesce({_IS_PLAIN}, true)").unionByName(
        records.commits.join(sql.broadcast(bad_keys), ["partition", "key"], "left_semi")
    )


def _guilty(batch: pa.RecordBatch, problems: list[Problem]) -> pa.RecordBatch:
    indices = pa.array([each.index for each in problems], pa.int64())
    reasons = pa.array([each.reason for each in problems], pa.string())
    return batch.take(indices).append_column("reason", reasons)


def _nameless(records: DataFrame) -> DataFrame:
    reason = sql.expr(
        "CASE WHEN key IS NULL THEN 'no key' "
        "WHEN length(key) < 2 THEN 'a key too short to say what it is' "
        f"ELSE concat('no kind of record has the number ', {NUMBER}) END"
    )
    return choose_others(records).where(~is_skipped()).withColumn("reason", reason)


def _bad_events(records: DataFrame) -> DataFrame:
    """All parts of events that make no sense as a whole."""
    whole = put_together(records)
    values = sql.expr("parts.value AS values")
    schema = f"{whole.select('*', values).schema.simpleString()[7:-1]},reason:string"

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _guilty(batch, events.find_problems(batch))

    return (
        whole.select("*", values)
        .mapInArrow(decode, schema)
        .selectExpr("topic", "partition", "reason", "explode(parts) AS part")
        .select("topic", "partition", "part.*", "reason")
    )
