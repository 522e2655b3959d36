"""Rows into topics: `df.write.format("kohort")` and `df.writeStream.format("kohort")`.

A write is made at least once. A task that Spark tries again, and a batch that it plays again after
a restart, send their rows again, and nothing that was sent is ever taken back. Within a task, rows
of one partition keep their order.

Columns and options are those of Spark's own Kafka sink: `value`, and if wanted `key`, `topic`,
`partition` and `headers`; the option `topic` wins over the column. Other columns are not written:
a record's time is the time it was sent at. Options that begin with `kafka.` are the producer's,
under librdkafka's names.
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
from kohort.pipeline.sink import task as sink_task
from kohort.pipeline.sink.plan import Plan, make_plan

_LOGGER: Final = logging.getLogger("kohort.sink")


class Acknowledged(WriterCommitMessage):
    """What one task has written."""

    def __init__(self, rows: int, size_in_bytes: int) -> None:
        self.rows = rows
        self.size_in_bytes = size_in_bytes


Messages = Sequence[WriterCommitMessage | None]
"""One for each task; None where it failed."""


def make_writer(
    options: Mapping[str, str],
    schema: StructType,
    overwrite: bool,  # as Spark has it
) -> "TopicWriter":
    """For a batch query; refuses what cannot be written, before any task begins."""
    if overwrite:
        raise BadSourceOption(
            'a topic cannot be overwritten, only written to: use .mode("append"); '
            "to begin anew, delete the topic or its records first"
        )
    return TopicWriter(_make_plan(options, schema))


def make_stream_writer(
    options: Mapping[str, str],
    schema: StructType,
    overwrite: bool,  # as Spark has it
) -> "TopicStreamWriter":
    """For a streaming query; refuses what cannot be written, before any task begins.

    Spark says overwrite where the output mode is complete. As in its own sink, every batch then
    appends the whole result.
    """
    del overwrite
    return TopicStreamWriter(_make_plan(options, schema))


def _make_plan(options: Mapping[str, str], schema: StructType) -> Plan:
    columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    plan = make_plan(options, columns)
    sink_task.check_settings(plan)
    return plan


class TopicWriter(DataSourceArrowWriter):
    """Spark carries it to the tasks, so it holds nothing but values."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Acknowledged:
        return _write(self._plan, iterator)

    def commit(self, messages: Messages) -> None:
        """The brokers have kept all there is to keep."""
        _LOGGER.info("written %s", _totals(messages))

    def abort(self, messages: Messages) -> None:
        """What was sent stays sent."""
        _LOGGER.warning("write-aborted %s", _totals(messages))


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """The same for every batch of a stream."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Acknowledged:
        return _write(self._plan, iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803  # Spark's name
        """The brokers have kept all there is to keep."""
        _LOGGER.info("written batch=%d %s", batchId, _totals(messages))

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803  # Spark's name
        """What was sent stays sent, and is sent again when the batch is played again."""
        _LOGGER.warning("write-aborted batch=%d %s", batchId, _totals(messages))


def _write(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Acknowledged:
    written = sink_task.write(plan, batches)
    return Acknowledged(written.rows, written.size_in_bytes)


def _totals(messages: Messages) -> str:
    told = [each for each in messages if isinstance(each, Acknowledged)]
    rows = sum(each.rows for each in told)
    size = sum(each.size_in_bytes for each in told)
    return f"rows={rows} bytes={size} tasks={len(told)} failed={len(messages) - len(told)}"
