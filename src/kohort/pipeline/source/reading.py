"""One range of one partition, read by one of Spark's tasks, as Arrow batches.

Connections, retries and new leaders are the consumer's business; a broker that restarts in the
middle of a range costs time.
"""

import contextlib
import logging
import time
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from kohort.client.consumer import Consumer
from kohort.client.errors import OffsetNotValid
from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.decode import Decoder, Slice
from kohort.pipeline.errors import DataLost, NothingCame
from kohort.pipeline.source.options import SourceOptions, consumer_config
from kohort.pipeline.source.ranges import Range
from kohort.types import Offset, Partition, Topic
from kohort.wire.heap import keep_freed_memory

_LOGGER: Final = logging.getLogger("kohort.pipeline")

_FETCH_BYTES: Final = 4 * 1024 * 1024
"""Of one partition in one answer; a task reads only one."""

_WAIT_MS: Final = 1_000


class Task(InputPartition):
    """A range, in words that any process can unpack."""

    def __init__(self, topic: str, partition: int, first: int, stop: int) -> None:
        super().__init__((topic, partition, first, stop))

    @property
    def range(self) -> Range:
        topic, partition, first, stop = self.value
        return Range(
            partition=TopicPartition(Topic(topic), Partition(partition)),
            first=Offset(first),
            stop=Offset(stop),
        )


def tasks_of(ranges: Iterable[Range]) -> list[Task]:
    return [
        Task(str(each.partition.topic), int(each.partition.partition), each.first, each.stop)
        for each in ranges
        if each.size > 0
    ]


def read_task(task: InputPartition, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    if not isinstance(task, Task):
        return  # where there is nothing to read, Spark makes up a task that has nothing to do
    keep_freed_memory()  # of a worker that Spark made for such tasks
    wanted = task.range
    with contextlib.closing(Consumer(_config(options))) as consumer:
        yield from _RangeReader(consumer, wanted, options).read()


def _config(options: SourceOptions) -> dict[str, object]:
    return {
        "max.partition.fetch.bytes": _FETCH_BYTES,
        **consumer_config(options),
        # What is gone must be noticed, not passed over.
        "auto.offset.reset": "none",
        "enable.auto.commit": False,
    }


class _RangeReader:
    def __init__(self, consumer: Consumer, wanted: Range, options: SourceOptions) -> None:
        self._consumer = consumer
        self._wanted = wanted
        self._options = options
        self._decoder = self._decoder_from(wanted.first)

    def _decoder_from(self, first: Offset) -> Decoder:
        topic, partition = self._wanted.partition
        wanted = Slice(topic=topic, partition=partition, first=first, stop=self._wanted.stop)
        return Decoder(wanted, includes_headers=self._options.includes_headers)

    def read(self) -> Iterator[pa.RecordBatch]:
        self._consumer.assign([self._wanted.partition])
        self._consumer.seek(self._wanted.partition, self._wanted.first)
        patience_s = self._options.fetch_timeout_ms / 1000
        give_up_at = time.monotonic() + patience_s
        while self._decoder.next_offset < self._wanted.stop:
            before = self._decoder.next_offset
            yield from self._read_some()
            if self._decoder.next_offset > before:
                give_up_at = time.monotonic() + patience_s
            elif time.monotonic() > give_up_at:
                topic, partition = self._wanted.partition
                raise NothingCame(
                    f"nothing came of {topic}-{partition} at offset {before} for "
                    f"{patience_s:.0f} s, though its end was seen at {self._wanted.stop} or later; "
                    "fetchTimeoutMs allows for more time"
                )

    def _read_some(self) -> Iterator[pa.RecordBatch]:
        try:
            fetched = self._consumer.poll_batches(_WAIT_MS)
        except OffsetNotValid:
            self._pass_over_loss()
            return
        if fetched is not None:
            yield from self._decoder.decode(fetched.content, fetched.aborted)

    def _pass_over_loss(self) -> None:
        """The offset is not there any more: an error, or a gap that is written down."""
        partition, at = self._wanted.partition, self._decoder.next_offset
        topic, number = partition
        beginning = self._consumer.beginning_offsets([partition])[partition]
        first = beginning if beginning > at else self._wanted.stop
        what = f"offsets {at} to {min(first, self._wanted.stop) - 1} of {topic}-{number} are gone"
        if self._options.fail_on_data_loss:
            raise DataLost(
                f"{what}: deleted by retention or by somebody while they were read, or the topic "
                "was made anew; failOnDataLoss=false goes on without them"
            )
        _LOGGER.warning(what)
        resumed = Offset(min(first, self._wanted.stop))
        self._decoder = self._decoder_from(resumed)
        if resumed < self._wanted.stop:
            self._consumer.seek(partition, resumed)
