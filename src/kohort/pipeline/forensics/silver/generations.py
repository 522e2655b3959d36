"""Generations: what the coordinator kept of a group, each time it kept it.

The time is the record's own, which the coordinator set when it wrote it. A record of which there
are several copies is taken once.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from kohort.pipeline.forensics.decoding.generations import decode_generations
from kohort.pipeline.forensics.silver.choosing import choose_groups
from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.tables import GENERATIONS


def build(records: DataFrame) -> DataFrame:
    chosen = choose_groups(records).dropDuplicates(["partition", "offset"])
    return conform(chosen.mapInArrow(_decode, GENERATIONS.ddl), GENERATIONS)


def _decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield decode_generations(batch)
