"""Undecodable records with the reasons, and the counts of skipped records.

Skipped records are valid: they are about other kinds of groups, and are only counted.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.decoders import commit_decoder, event_decoder, generation_decoder
from kohort.pipeline.forensics.decoders.batches import Problem
from kohort.pipeline.forensics.silver.group_events_table import assemble_parts
from kohort.pipeline.forensics.silver.record_kinds import (
    NUMBER,
    SKIPPED,
    RecordsByKind,
    choose_groups,
    choose_others,
    is_skipped,
)
from kohort.pipeline.forensics.store import conform
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
"""SQL: whether the value is a valid commit without metadata. Null for a tombstone."""


def build(records: RecordsByKind) -> DataFrame:
    bad = (
        _find_bad(_doubtful_commits(records), commit_decoder.find_problems)
        .unionByName(_find_bad(choose_groups(records.others), generation_decoder.find_problems))
        .unionByName(_unknown_kinds(records.others))
        .dropDuplicates(["topic", "partition", "offset"])
        .unionByName(_bad_events(records.others))
    )
    return conform(bad, UNDECODABLE)


def count_skipped(records: RecordsByKind) -> DataFrame:
    """The number of skipped records of each kind: `kind STRING, records BIGINT`."""
    names = [sql.lit(each) for pair in SKIPPED.items() for each in pair]
    kind = sql.create_map(*names)[sql.expr(NUMBER)].alias("kind")
    skipped = choose_others(records.others).where(is_skipped())
    return skipped.groupBy(kind).agg(sql.countDistinct("partition", "offset").alias("records"))


def _find_bad(
    records: DataFrame, find_problems: Callable[[pa.RecordBatch], list[Problem]]
) -> DataFrame:
    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _with_reasons(batch, find_problems(batch))

    return records.mapInArrow(decode, UNDECODABLE.ddl)


def _doubtful_commits(records: RecordsByKind) -> DataFrame:
    """The commits that SQL cannot recognise as valid. Only these take the slow check in Python.

    Each of the few distinct keys is checked once; a value without metadata and tags has a fixed
    size and layout.
    """
    keys = records.keys.selectExpr(
        "topic",
        "partition",
        "0L AS offset",
        "timestamp_millis(0) AS timestamp",
        "key",
        "CAST(NULL AS BINARY) AS value",
    )
    bad_keys = _find_bad(keys, commit_decoder.find_problems).select("partition", "key")
    return records.commits.where(f"NOT coalesce({_IS_PLAIN}, true)").unionByName(
        records.commits.join(sql.broadcast(bad_keys), ["partition", "key"], "left_semi")
    )


def _with_reasons(batch: pa.RecordBatch, problems: list[Problem]) -> pa.RecordBatch:
    indices = pa.array([each.index for each in problems], pa.int64())
    reasons = pa.array([each.reason for each in problems], pa.string())
    return batch.take(indices).append_column("reason", reasons)


def _unknown_kinds(records: DataFrame) -> DataFrame:
    reason = sql.expr(
        "CASE WHEN key IS NULL THEN 'no key' "
        "WHEN length(key) < 2 THEN 'the key is shorter than 2 bytes' "
        f"ELSE concat('unknown record type ', {NUMBER}) END"
    )
    return choose_others(records).where(~is_skipped()).withColumn("reason", reason)


def _bad_events(records: DataFrame) -> DataFrame:
    """All parts of events that cannot be parsed."""
    whole = assemble_parts(records)
    values = sql.expr("parts.value AS values")
    schema = f"{whole.select('*', values).schema.simpleString()[7:-1]},reason:string"

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _with_reasons(batch, event_decoder.find_problems(batch))

    return (
        whole.select("*", values)
        .mapInArrow(decode, schema)
        .selectExpr("topic", "partition", "reason", "explode(parts) AS part")
        .select("topic", "partition", "part.*", "reason")
    )
