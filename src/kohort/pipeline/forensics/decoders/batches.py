"""Parts that all decoders of records share: Arrow schemas of tables, undecodable records."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeAlias

import pyarrow as pa

from kohort.pipeline.forensics.tables import TableSpec
from kohort.types import value
from kohort.wire.errors import WireError

Row: TypeAlias = dict[str, Any]


TIMESTAMP_UTC: Final = pa.timestamp("us", tz="UTC")

_TYPES: Final = {
    "BIGINT": pa.int64(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "STRING": pa.string(),
    "TIMESTAMP": TIMESTAMP_UTC,
}


def schema_of(table: TableSpec, *, without: Collection[str] = ()) -> pa.Schema:
    """The Arrow schema of a table, without some columns."""
    columns = [each for each in table.columns if each.name not in without]
    return pa.schema([pa.field(each.name, arrow_type(each.type)) for each in columns])


def arrow_type(ddl: str) -> pa.DataType:
    """The Arrow type of a Spark DDL type; supports the types that the tables use."""
    outer, _, inner = ddl.removesuffix(">").partition("<")
    if outer == "ARRAY":
        return pa.list_(arrow_type(inner))
    if outer == "STRUCT":
        # Split at the commas outside of inner types.
        fields = [each.split(": ", 1) for each in re.findall(r"(?:<.*?>+|[^,<])+", inner)]
        return pa.struct([pa.field(name.strip(), arrow_type(type_)) for name, type_ in fields])
    return _TYPES[ddl]


@value
class Problem:
    """An undecodable row, and the reason."""

    index: int
    reason: str


def in_utc(records: pa.RecordBatch) -> pa.RecordBatch:
    """The same timestamps: Spark names the time zone of its session, which may not be UTC."""
    at = records.schema.get_field_index("timestamp")
    moments = records.column(at).cast(TIMESTAMP_UTC)
    return records.set_column(at, "timestamp", moments)


def read_carefully(
    records: pa.RecordBatch,
    indices: Iterable[int],
    read: Callable[[Row], Row],
    schema: pa.Schema,
) -> tuple[pa.RecordBatch, list[Problem]]:
    """Decode these records one by one with the readers of kohort.wire; also return the failures."""
    rows: list[Row] = []
    problems: list[Problem] = []
    for index in map(int, indices):
        # Timestamps stay Arrow values: a damaged one may be after year 9999, Python's maximum.
        record = {name: records.column(name)[index] for name in records.schema.names}
        try:
            rows.append(read(record))
        except WireError as error:
            problems.append(Problem(index=index, reason=str(error)))
    return pa.RecordBatch.from_pylist(rows, schema=schema), problems
