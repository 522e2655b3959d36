"""What all decoders of records share: records as Spark hands them over, what is wrong with one."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pyarrow as pa

from kohort.types import value
from kohort.wire.errors import WireError

Row: TypeAlias = dict[str, Any]


@value
class Problem:
    """A row that nobody could make sense of, and why."""

    index: int
    reason: str


def in_utc(records: pa.RecordBatch) -> pa.RecordBatch:
    """The same moments: Spark names the zone of its session, which is not always UTC."""
    at = records.schema.get_field_index("timestamp")
    moments = records.column(at).cast(pa.timestamp("us", tz="UTC"))
    return records.set_column(at, "timestamp", moments)


def read_carefully(
    records: pa.RecordBatch,
    indices: Iterable[int],
    read: Callable[[Row], Row],
    schema: pa.Schema,
) -> tuple[pa.RecordBatch, list[Problem]]:
    """These records one by one, by the wire's own readers: what they say, and who says nothing."""
    rows: list[Row] = []
    problems: list[Problem] = []
    for index in map(int, indices):
        # A time stays Arrow's: Python knows no year after 9999, and a damaged one may be any.
        record = {name: records.column(name)[index] for name in records.schema.names}
        try:
            rows.append(read(record))
        except WireError as error:
            problems.append(Problem(index=index, reason=str(error)))
    return pa.RecordBatch.from_pylist(rows, schema=schema), problems
