"""Convert Arrow batches, column by column, to the arguments of a producer.

A value that cannot be written raises BadColumns before any row of its slice is sent.
"""

from collections.abc import Iterator
from itertools import accumulate, repeat
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.sink.write_plan import BadColumns, WritePlan

_SLICE_BYTES: Final = 8 * 1024 * 1024
"""Bytes that become Python objects at once; protects an executor's memory."""

_ANY_PARTITION: Final = -1
"""Lets librdkafka's partitioner choose."""

Headers = list[tuple[str, str | bytes | None]]
Record = tuple[str, bytes | None, bytes | None, int, Headers | None]
"""Topic, value, key, partition, headers: in the order of the producer's arguments."""


def split_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices of the batch that are small enough to convert."""
    rows = max(1, batch.num_rows * _SLICE_BYTES // max(1, batch.nbytes))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def to_records(plan: WritePlan, part: pa.RecordBatch) -> tuple[Iterator[Record], int]:
    """The rows as records, in order, and the size of their keys, values and headers."""
    columns = {name: part.column(index) for name, index in plan.columns.items()}
    values, value_bytes = _content(columns["value"])
    keys, key_bytes = _content(columns["key"]) if "key" in columns else (repeat(None), 0)
    headers, header_bytes = (
        _headers(columns["headers"]) if "headers" in columns else (repeat(None), 0)
    )
    topics = repeat(plan.topic) if plan.topic is not None else _topics(columns["topic"])
    partitions = (
        _partitions(columns["partition"]) if "partition" in columns else repeat(_ANY_PARTITION)
    )
    rows = zip(topics, values, keys, partitions, headers, strict=False)
    return rows, value_bytes + key_bytes + header_bytes


def _content(column: pa.Array) -> tuple[list[bytes | None], int]:
    """Text is sent as UTF-8, as Arrow stores it, without decoding."""
    content = column.cast(pa.binary())
    return content.to_pylist(), _size(content)


def _topics(column: pa.Array) -> list[str]:
    if column.null_count:
        raise BadColumns(
            f"{column.null_count} of {len(column)} rows have no topic: fill the column topic, "
            'or give .option("topic", NAME) for all rows'
        )
    return column.to_pylist()  # type: ignore[no-any-return]  # Arrow has no types


def _partitions(column: pa.Array) -> list[int]:
    smallest = pc.min(column).as_py()
    if smallest is not None and smallest < 0:
        raise BadColumns(
            f"there is no partition {smallest}: give a number, or null to let the key choose"
        )
    return column.fill_null(_ANY_PARTITION).to_pylist()  # type: ignore[no-any-return]  # as above


def _headers(column: pa.Array) -> tuple[list[Headers | None], int]:
    names, contents = column.flatten().flatten()
    if names.null_count:
        raise BadColumns(
            f"{names.null_count} headers have no name: only the value of a header may be null"
        )
    pairs: Headers = list(zip(names.to_pylist(), contents.to_pylist(), strict=True))
    counts: list[int] = pc.list_value_length(column).fill_null(0).to_pylist()
    spans = zip(counts, accumulate(counts), strict=True)
    found = [pairs[end - count : end] if count else None for count, end in spans]
    return found, _size(names) + _size(contents)


def _size(column: pa.Array) -> int:
    total: Any = pc.sum(pc.binary_length(column)).as_py()
    return int(total or 0)
