"""Arrow batches become what a producer takes, column by column.

What cannot become a record is refused before any row of its piece is sent. Nothing here sends.
"""

from collections.abc import Iterator
from itertools import accumulate, repeat
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.sink.plan import BadColumns, Plan

_PIECE_BYTES: Final = 8 * 1024 * 1024
"""How much of a batch becomes Python objects at once; protects an executor's memory."""

_ANY_PARTITION: Final = -1
"""What librdkafka takes for: let the partitioner choose."""

Headers = list[tuple[str, str | bytes | None]]
Record = tuple[str, bytes | None, bytes | None, int, Headers | None]
"""Topic, value, key, partition, headers: in the order in which a producer takes them."""


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch, cut where it is too large to be held twice."""
    rows = max(1, batch.num_rows * _PIECE_BYTES // max(1, batch.nbytes))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def records(plan: Plan, piece: pa.RecordBatch) -> tuple[Iterator[Record], int]:
    """The rows as records, in their order, and how many bytes their parts have."""
    columns = {name: piece.column(place) for name, place in plan.columns.items()}
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
    """Text is sent as the UTF-8 that it is kept in; nobody decodes it on the way."""
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
            f"there is no partition {smallest}: give its number, or null to have one chosen"
        )
    return column.fill_null(_ANY_PARTITION).to_pylist()  # type: ignore[no-any-return]  # as above


def _headers(column: pa.Array) -> tuple[list[Headers | None], int]:
    names, contents = column.flatten().flatten()
    if names.null_count:
        raise BadColumns(
            f"{names.null_count} headers have no name: a header needs one; its value may be null"
        )
    pairs: Headers = list(zip(names.to_pylist(), contents.to_pylist(), strict=True))
    counts: list[int] = pc.list_value_length(column).fill_null(0).to_pylist()
    spans = zip(counts, accumulate(counts), strict=True)
    found = [pairs[end - count : end] if count else None for count, end in spans]
    return found, _size(names) + _size(contents)


def _size(column: pa.Array) -> int:
    total: Any = pc.sum(pc.binary_length(column)).as_py()
    return int(total or 0)
