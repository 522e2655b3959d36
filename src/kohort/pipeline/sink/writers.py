"""`df.write.format("kohort")` and `df.writeStream.format("kohort")`.

Delivery is at least once. A task that Spark retries, and a batch that it repeats after a restart,
send their rows again; sent records are never removed. Rows of one task and one partition keep their
order.

Columns and options are those of Spark's own Kafka sink: `value`, and optionally `key`, `topic`,
`partition` and `headers`. The option `topic` overrides the column. Other columns are ignored: a
record's timestamp is the time of sending. Options that begin with `kafka.` are the producer's, with
librdkafka's names.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from kohort.pipeline.errors import BadSourceOption
from kohort.pipeline.sink import write_task
from kohort.pipeline.sink.write_plan import WritePlan, make_plan

_LOGGER: Final = logging.getLogger("kohort.sink")


class Acknowledged(WriterCommitMessage):
    """The result of one task."""

    def __init__(self, rows: int, size_in_bytes: int) -> None:
        self.rows = rows
        self.size_in_bytes = size_in_bytes


Messages = Sequence[WriterCommitMessage | None]
"""One per task; None if it failed."""


def make_writer(
    options: Mapping[str, str],
    schema: StructType,
    overwrite: bool,
) -> "TopicWriter":
    """The writer of a batch query; raises an error before any task starts."""
    if overwrite:
        raise BadSourceOption(
            'a topic cannot be overwritten: use .mode("append"); '
            "to start again, delete the topic or its records first"
        )
    return TopicWriter(_make_plan(options, schema))


def make_stream_writer(
    options: Mapping[str, str],
    schema: StructType,
    overwrite: bool,
) -> "TopicStreamWriter":
    """The writer of a streaming query; raises an error before any task starts.

    Spark sets `overwrite` for the output mode complete. As in its own sink, every batch then
    appends the whole result.
    """
    del overwrite
    return TopicStreamWriter(_make_plan(options, schema))


def _make_plan(options: Mapping[str, str], schema: StructType) -> WritePlan:
    columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    plan = make_plan(options, columns)
    write_task.check_settings(plan)
    return plan


class TopicWriter(DataSourceArrowWriter):
    """Spark pickles it for the tasks, so it has no producer."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Acknowledged:
        return _write(self._plan, iterator)

    def commit(self, messages: Messages) -> None:
        """Nothing to do: the brokers have acknowledged all records."""
        _LOGGER.info("written %s", _totals(messages))

    def abort(self, messages: Messages) -> None:
        """Nothing to undo: sent records stay."""
        _LOGGER.warning("write-aborted %s", _totals(messages))


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a stream."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Acknowledged:
        return _write(self._plan, iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803  # Spark's name
        """Nothing to do: the brokers have acknowledged all records."""
        _LOGGER.info("written batch=%d %s", batchId, _totals(messages))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803  # Spark's name
        """Nothing to undo: sent records stay, and are sent again when Spark repeats the batch."""
        _LOGGER.warning("write-aborted batch=%d %s", batchId, _totals(messages))


def _write(plan: WritePlan, batches: Iterator[pa.RecordBatch]) -> Acknowledged:
    written = write_task.write(plan, batches)
    return Acknowledged(written.rows, written.size_in_bytes)


def _totals(messages: Messages) -> str:
    results = [each for each in messages if isinstance(each, Acknowledged)]
    rows = sum(each.rows for each in results)
    size = sum(each.size_in_bytes for each in results)
    return f"rows={rows} bytes={size} tasks={len(results)} failed={len(messages) - len(results)}"
