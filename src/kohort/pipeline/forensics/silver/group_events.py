"""Group events: what Kohort itself noted about its groups, one row for each group it befell.

An event that was too large for one record was written as several in a row, each saying which part
it is: so the first part's offset is known from any of them, and is the name of the whole.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.decoding.events import decode_events
from kohort.pipeline.forensics.silver.choosing import choose_events
from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.tables import GROUP_EVENTS


def build(records: DataFrame) -> DataFrame:
    whole = put_together(records).select("partition", "offset", sql.expr("parts.value AS values"))
    return conform(whole.mapInArrow(_decode, GROUP_EVENTS.ddl), GROUP_EVENTS)


def put_together(records: DataFrame) -> DataFrame:
    """Events by their first part's offset, with the records of all parts in their order."""
    part = sql.expr("try_cast(get_json_object(CAST(value AS STRING), '$.part') AS INT)")
    return (
        choose_events(records)
        .dropDuplicates(["partition", "offset"])
        .withColumn("part", part)
        .withColumn("first", sql.expr("offset - coalesce(part, 1) + 1"))
        .groupBy("topic", "partition", "first", sql.expr("part IS NULL AS is_alone"))
        .agg(sql.expr("sort_array(collect_list(struct(offset, timestamp, key, value))) AS parts"))
        .select("topic", "partition", sql.col("first").alias("offset"), "parts")
    )


def _decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield decode_events(batch)
