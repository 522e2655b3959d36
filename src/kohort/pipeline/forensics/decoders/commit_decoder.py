"""Decode offset commits into Arrow columns, without a Python object for each.

The compiled loop finds the fields, and Arrow checks that strings are UTF-8. Records that fail
either check are decoded again by kohort.wire, which decodes them or returns the error.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kohort.pipeline.decode import timestamps
from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.decoders import kernel
from kohort.pipeline.forensics.decoders.batches import (
    Problem,
    Row,
    in_utc,
    read_carefully,
    schema_of,
)
from kohort.wire.consumer_offsets import OffsetCommitKey, decode_key, decode_value

COMMITS: Final = schema_of(tables.COMMITS, without={"step", "owner", "generation"})


def decode_commits(records: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Decode records with keys of offset commits; the order is undefined."""
    records = in_utc(records)
    scanned = _Scanned(records)
    if scanned.plain is not None and scanned.plain.num_rows:
        yield scanned.plain
    careful, _ = read_carefully(records, scanned.doubtful, _read, COMMITS)
    if careful.num_rows:
        yield careful


def find_problems(records: pa.RecordBatch) -> list[Problem]:
    """The records that `decode_commits` leaves out, with the reasons."""
    records = in_utc(records)
    return read_carefully(records, _Scanned(records).doubtful, _read, COMMITS)[1]


class _Scanned:
    """The rows that the compiled loop decoded, as columns, and the indices of all others."""

    def __init__(self, records: pa.RecordBatch) -> None:
        rows = records.num_rows
        keys, values = _Bytes(records.column("key")), _Bytes(records.column("value"))
        found = np.empty((kernel.COMMIT_ROWS, rows), dtype=np.int64)
        doubts = kernel.scan_commits(
            keys.data, keys.edges, values.data, values.edges, values.is_null, found
        )
        is_doubtful = found[kernel.STATE] == kernel.DOUBTFUL
        self.doubtful: NDArray[np.int64] = np.nonzero(is_doubtful)[0]
        self.plain: pa.RecordBatch | None = None
        if doubts:
            records = records.filter(pa.array(~is_doubtful))
            found = np.ascontiguousarray(found[:, ~is_doubtful])
        try:
            self.plain = _build(records, keys.data, values.data, found)
        except pa.ArrowInvalid:
            # A string is not UTF-8; decode all records with kohort.wire to find it.
            self.doubtful = np.arange(rows)


class _Bytes:
    """A binary column as arrays: all bytes, the offsets of the values, and which are null."""

    def __init__(self, column: pa.Array) -> None:
        _, edges, data = column.buffers()
        size = len(column)
        self.edges: NDArray[np.int32] = np.frombuffer(edges, dtype=np.int32)[
            column.offset : column.offset + size + 1
        ]
        self.data: NDArray[np.uint8] = (
            np.frombuffer(data, dtype=np.uint8) if data else np.empty(0, dtype=np.uint8)
        )
        self.is_null: NDArray[np.bool_] = (
            column.is_null().to_numpy(zero_copy_only=False)
            if column.null_count
            else np.zeros(size, dtype=np.bool_)
        )


def _build(
    records: pa.RecordBatch,
    keys: NDArray[np.uint8],
    values: NDArray[np.uint8],
    found: NDArray[np.int64],
) -> pa.RecordBatch:
    is_removed = found[kernel.STATE] == kernel.REMOVED
    committed_at = timestamps(found[kernel.COMMIT_MS])
    at = committed_at
    if is_removed.any():
        at = pa.compute.if_else(pa.array(is_removed), records.column("timestamp"), committed_at)
    columns = [
        _texts(keys, found[kernel.GROUP_AT], found[kernel.GROUP_SIZE]),
        _texts(keys, found[kernel.TOPIC_AT], found[kernel.TOPIC_SIZE]),
        pa.array(found[kernel.PARTITION].astype(np.int32)),
        at,
        records.column("partition"),
        records.column("offset"),
        pa.array(is_removed),
        pa.array(found[kernel.OFFSET], mask=is_removed),
        pa.array(found[kernel.LEADER_EPOCH].astype(np.int32)),
        _texts(values, found[kernel.METADATA_AT], found[kernel.METADATA_SIZE], is_removed),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=COMMITS)


def _texts(
    buf: NDArray[np.uint8],
    at: NDArray[np.int64],
    sizes: NDArray[np.int64],
    is_null: NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Slices of a buffer as strings; ArrowInvalid if one is not UTF-8."""
    edges = np.zeros(len(at) + 1, dtype=np.int32)
    np.cumsum(sizes, out=edges[1:])
    out = np.empty(int(edges[-1]), dtype=np.uint8)
    kernel.copy(buf, at, edges, out)
    validity = None
    if is_null is not None and is_null.any():
        validity = pa.array(~is_null).buffers()[1]
    content = pa.Array.from_buffers(
        pa.binary(), len(at), [validity, pa.py_buffer(edges), pa.py_buffer(out)]
    )
    return content.cast(pa.string())


def _read(record: Row) -> Row:
    key: OffsetCommitKey = decode_key(record["key"].as_py())
    content = decode_value(key, record["value"].as_py())
    row = {
        "group_id": key.group,
        "topic": key.topic,
        "partition": key.partition,
        "at": record["timestamp"],
        "log_partition": record["partition"].as_py(),
        "log_offset": record["offset"].as_py(),
        "is_removed": content is None,
        "leader_epoch": -1,
    }
    if content is not None:
        row |= {
            "at": timestamps(np.array([content.commit_timestamp]))[0],
            "committed": content.offset,
            "leader_epoch": content.leader_epoch,
            "metadata": content.metadata,
        }
    return row
