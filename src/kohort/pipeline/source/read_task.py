"""Read an offset range of a partition as Arrow batches, in a task of a Spark executor.

The consumer handles connections, retries and leader changes, so a broker that restarts only delays
the task.
"""

import contextlib
import logging
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from kohort.client.consumer import Consumer
from kohort.client.errors import CorruptRecordError, InvalidOffsetError
from kohort.client.skipped_ranges import SkippedRanges
from kohort.pipeline.decode import Decoder, PartitionSlice
from kohort.pipeline.errors import DataLost, FetchTimeout, MalformedBatch
from kohort.pipeline.source.options import SourceOptions, consumer_config
from kohort.pipeline.source.planner import OffsetRange
from kohort.types import Offset, Partition, Topic, TopicPartition
from kohort.wire.malloc_tuning import keep_freed_memory

_LOGGER: Final = logging.getLogger("kohort.pipeline")

_FETCH_BYTES: Final = 4 * 1024 * 1024
"""Per fetch response. It is larger than the default, because a task reads only one partition."""

_WAIT_MS: Final = 1_000

_DAEMON_FILE: Final = "pyspark/daemon.py"


class RangePartition(InputPartition):
    """A range as plain values, which a Python worker can unpickle."""

    def __init__(self, topic: str, partition: int, first: int, stop: int) -> None:
        super().__init__((topic, partition, first, stop))

    @property
    def range(self) -> OffsetRange:
        topic, partition, first, stop = self.value
        return OffsetRange(
            partition=TopicPartition(Topic(topic), Partition(partition)),
            first=Offset(first),
            stop=Offset(stop),
        )


def to_partitions(ranges: Iterable[OffsetRange]) -> list[RangePartition]:
    return [
        RangePartition(
            str(each.partition.topic), int(each.partition.partition), each.first, each.stop
        )
        for each in ranges
        if each.size > 0
    ]


def read_range(partition: InputPartition, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, RangePartition):
        return  # Spark plans one empty task if there are no partitions
    keep_freed_memory()
    _hide_broken_pipe()
    with contextlib.closing(Consumer(_config(options))) as consumer:
        yield from _RangeReader(consumer, partition.range, options).read()


def _hide_broken_pipe() -> None:
    """Hide the traceback that a worker prints when Spark has closed its connection.

    Spark closes it as soon as a query like `limit(3)` has enough rows. The worker's next write then
    fails, and `pyspark.daemon` prints the BrokenPipeError of a job that has succeeded. It does so
    in this process, after the reader has ended, through `traceback.print_exc`.
    """
    program = getattr(sys.modules["__main__"], "__spec__", None)
    if program is None or program.name != "pyspark.daemon":
        return  # not a worker: a test, or a program that reads without Spark
    if traceback.print_exc.__module__ == __name__:
        return  # a reused worker
    print_exc = traceback.print_exc

    def print_other_errors(*args: Any, **kwargs: Any) -> None:
        _, error, trace = sys.exc_info()
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        is_daemon = trace is not None and trace.tb_frame.f_code.co_filename.endswith(_DAEMON_FILE)
        if not (isinstance(error, ConnectionError) and is_daemon):
            print_exc(*args, **kwargs)

    traceback.print_exc = print_other_errors


def _config(options: SourceOptions) -> dict[str, object]:
    return {
        "max.partition.fetch.bytes": _FETCH_BYTES,
        **consumer_config(options),
        # A missing offset must raise an error, not be skipped silently.
        "auto.offset.reset": "none",
        "enable.auto.commit": False,
    }


class _RangeReader:
    def __init__(self, consumer: Consumer, wanted: OffsetRange, options: SourceOptions) -> None:
        self._consumer = consumer
        self._wanted = wanted
        self._options = options
        self._decoder = self._decoder_from(wanted.first)
        self._skipped = SkippedRanges(_LOGGER.warning)

    def _decoder_from(self, first: Offset) -> Decoder:
        topic, partition = self._wanted.partition
        wanted = PartitionSlice(
            topic=topic, partition=partition, first=first, stop=self._wanted.stop
        )
        return Decoder(wanted, includes_headers=self._options.includes_headers)

    def read(self) -> Iterator[pa.RecordBatch]:
        self._consumer.assign([self._wanted.partition])
        self._consumer.seek(self._wanted.partition, self._wanted.first)
        timeout_s = self._options.fetch_timeout_ms / 1000
        give_up_at = time.monotonic() + timeout_s
        while self._decoder.next_offset < self._wanted.stop:
            before = self._decoder.next_offset
            yield from self._poll_once()
            if self._decoder.next_offset > before:
                give_up_at = time.monotonic() + timeout_s
            elif time.monotonic() > give_up_at:
                topic, partition = self._wanted.partition
                raise FetchTimeout(
                    f"the broker returned no record of {topic}-{partition} at offset {before} "
                    f"within {timeout_s:.0f} s, although its log end is at least "
                    f"{self._wanted.stop}; a larger fetchTimeoutMs waits longer"
                )
        self._skipped.report_total()

    def _poll_once(self) -> Iterator[pa.RecordBatch]:
        try:
            fetched = self._consumer.poll_batches(_WAIT_MS)
            if fetched is not None:
                yield from self._decoder.decode(fetched.content, fetched.aborted)
        except InvalidOffsetError:
            self._skip_lost()
        except CorruptRecordError as error:
            self._skip_malformed(error)

    def _skip_malformed(self, error: CorruptRecordError) -> None:
        """Raise MalformedBatch, or log the batch and continue behind it."""
        if not self._options.skips_malformed:
            raise MalformedBatch(
                f"{error}; skipMalformedBatches=true continues without it"
            ) from error
        stop = min(error.next_offset, self._wanted.stop)
        self._skipped.add(error.partition, error.offset, stop, error.reason)
        self._continue_at(stop)

    def _continue_at(self, resumed: Offset) -> None:
        self._decoder = self._decoder_from(resumed)
        if resumed < self._wanted.stop:
            self._consumer.seek(self._wanted.partition, resumed)

    def _skip_lost(self) -> None:
        """Handle an offset that no longer exists: raise DataLost, or log the gap and skip it."""
        partition, at = self._wanted.partition, self._decoder.next_offset
        topic, number = partition
        beginning = self._consumer.beginning_offsets([partition])[partition]
        first = beginning if beginning > at else self._wanted.stop
        what = f"offsets {at} to {min(first, self._wanted.stop) - 1} of {topic}-{number} are gone"
        if self._options.fail_on_data_loss:
            raise DataLost(
                f"{what}: deleted by retention or by an administrator while they were read, or the "
                "topic was recreated; failOnDataLoss=false continues without them"
            )
        _LOGGER.warning(what)
        self._continue_at(min(first, self._wanted.stop))
