"""Group events: the events of Kohort, one row per event and group.

An event that is too large for one record is stored as several consecutive records, each with its
part number. The offset of the first part identifies the event.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.decoders.event_decoder import decode_events
from kohort.pipeline.forensics.silver.record_kinds import choose_events
from kohort.pipeline.forensics.store import conform
from kohort.pipeline.forensics.tables import GROUP_EVENTS


def build(records: DataFrame) -> DataFrame:
    whole = assemble_parts(records).select("partition", "offset", sql.expr("parts.value AS values"))
    return conform(whole.mapInArrow(_decode, GROUP_EVENTS.ddl), GROUP_EVENTS)


def assemble_parts(records: DataFrame) -> DataFrame:
    """Events by the offset of their first part, with the records of all parts in order."""
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
