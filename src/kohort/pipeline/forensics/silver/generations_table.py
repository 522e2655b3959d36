"""Generations: every record of group metadata that the coordinator stored.

The timestamp is that of the record. Duplicates of a record are dropped.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from kohort.pipeline.forensics.decoders.generation_decoder import decode_generations
from kohort.pipeline.forensics.silver.record_kinds import choose_groups
from kohort.pipeline.forensics.store import conform
from kohort.pipeline.forensics.tables import GENERATIONS


def build(records: DataFrame) -> DataFrame:
    chosen = choose_groups(records).dropDuplicates(["partition", "offset"])
    return conform(chosen.mapInArrow(_decode, GENERATIONS.ddl), GENERATIONS)


def _decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield decode_generations(batch)
