"""The batch reader: what lies between two places, once."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kohort.client.consumer import Consumer
from kohort.pipeline.source.cutting import mend, refuse_loss
from kohort.pipeline.source.options import Reset, SourceOptions, Where, Word, consumer_config
from kohort.pipeline.source.places import find_partitions, find_places
from kohort.pipeline.source.ranges import Range, split
from kohort.pipeline.source.reading import read_task, tasks_of

_LOGGER: Final = logging.getLogger("kohort.pipeline")


class KohortBatchReader(DataSourceReader):
    """It commits nothing: Spark does not tell a batch query's source that all went well."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        config = consumer_config(options)
        if options.group_id is not None:
            config |= {"group.id": options.group_id, "enable.auto.commit": False}
        with contextlib.closing(Consumer(config)) as consumer:
            ranges = _find_ranges(consumer, options)
        return tasks_of(split(ranges, options.parts_min))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self._options)


def _find_ranges(consumer: Consumer, options: SourceOptions) -> list[Range]:
    partitions = find_partitions(consumer, options)
    beginnings = find_places(consumer, Where(word=Word.EARLIEST), partitions, Reset.EARLIEST)
    ends = find_places(consumer, Where(word=Word.LATEST), partitions, Reset.LATEST)
    starts = find_places(consumer, options.starting, partitions, options.reset)
    stops = find_places(consumer, options.ending, partitions, Reset.LATEST)
    starts, losses = mend(starts, beginnings, ends)
    refuse_loss(losses, fail=options.fail_on_data_loss, warn=_LOGGER.warning)
    return [
        Range(
            partition=each,
            first=starts[each],
            stop=max(starts[each], min(stops[each], ends[each])),
        )
        for each in sorted(partitions)
    ]
