"""The columns of an ingested table: what a schema file says, what comes with it, what may not be.

Uses Spark's types and its parser of DDL; reads no data.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.ingest.explaining import explain_text

RECORD: Final = "_record"
"""Where a parsed row tells which record it was."""

BATCH: Final = "batch"
"""Which batch a row came with: the outermost directory."""

RECORD_TYPE: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("key", BinaryType()),
        StructField(
            "headers",
            ArrayType(
                StructType([StructField("key", StringType()), StructField("value", BinaryType())])
            ),
        ),
    ]
)

DERIVED: Final[dict[str, DataType]] = {
    "date": DateType(),
    "hour": IntegerType(),
    "partition": IntegerType(),
    "topic": StringType(),
}
"""What a table may be partitioned by besides its own columns: of the record's timestamp, in UTC,
and of its place."""

_LEAVES: Final = (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)
_DIRECTORY_TYPES: Final = (
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)


class BadSchema(PipelineError, ValueError):
    """A schema that cannot be read, or that no table can have."""


def read_schema(text: str) -> StructType:
    """From Spark's DDL (`id BIGINT NOT NULL, name STRING`) or from a StructType's JSON."""
    read = _read_json if text.lstrip().startswith("{") else _read_ddl
    schema = read(text.strip().removesuffix(";"))
    if not isinstance(schema, StructType):
        raise BadSchema(
            f"the schema is the single type {schema.simpleString()}: it takes columns, "
            "as in id BIGINT, name STRING"
        )
    if not schema.fields:
        raise BadSchema("the schema is empty: it takes columns, as in id BIGINT, name STRING")
    _check_fields(schema, "")
    for name in schema.names:
        if name.lower() in (RECORD, BATCH):
            raise BadSchema(f"the schema may not have a column {name}: the table has its own")
    return schema


def _read_ddl(text: str) -> DataType:
    try:
        return DataType.fromDDL(text)
    except PySparkException as error:
        message = str(error)
        place = re.search(r"\(line (\d+), pos (\d+)\)", message)
        where = f" (line {place[1]}, column {int(place[2]) + 1})" if place else ""
        reason = re.sub(r"\(line \d+, pos \d+\)", "", explain_text(message)).strip().rstrip(".")
        raise BadSchema(f"the schema is no DDL of Spark's{where}: {reason}") from error


def _read_json(text: str) -> DataType:
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise BadSchema(f"the schema begins like JSON and is none: {error}") from error
    if found.get("type") != "struct":
        kind = "a JSON Schema" if "properties" in found or "$schema" in found else "no StructType"
        raise BadSchema(
            f"the schema is {kind}: write Spark's DDL, as in id BIGINT, name STRING, or the JSON "
            'of a StructType, {"type": "struct", "fields": [...]}'
        )
    try:
        return StructType.fromJson(found)
    except (PySparkException, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else explain_text(str(error))
        raise BadSchema(f"the schema is no StructType in JSON: {reason}") from error


def _check_fields(schema: StructType, prefix: str) -> None:
    seen: set[str] = set()
    for field in schema.fields:
        name = f"{prefix}{field.name}"
        if field.name.lower() in seen:
            raise BadSchema(f"the schema has {name} twice; Spark does not tell upper from lower")
        seen.add(field.name.lower())
        _check_type(field.dataType, name)


def _check_type(kind: DataType, name: str) -> None:
    if isinstance(kind, StructType):
        _check_fields(kind, f"{name}.")
    elif isinstance(kind, ArrayType):
        _check_type(kind.elementType, f"{name}[]")
    elif isinstance(kind, MapType):
        if not isinstance(kind.keyType, StringType):
            raise BadSchema(f"{name} is a map whose keys are no strings: JSON has no others")
        _check_type(kind.valueType, f"{name}{{}}")
    # CHAR(n) and VARCHAR(n) are strings to Python's isinstance, and refused by Spark's parser.
    elif type(kind) not in _LEAVES:
        raise BadSchema(
            f"{name} is {kind.simpleString()}, which cannot be read from JSON and kept in Parquet"
        )


def raw_columns() -> StructType:
    """Those of the source."""
    fields = {field.name: field for field in RECORD_TYPE.fields}
    value = StructField("value", BinaryType())
    rest = ("topic", "partition", "offset", "timestamp", "timestampType", "headers")
    return StructType([fields["key"], value, *(fields[name] for name in rest)])


def parsed_columns(schema: StructType) -> StructType:
    return StructType([*schema.fields, StructField(RECORD, RECORD_TYPE)])


def table_columns(columns: StructType, partition_by: Iterable[str]) -> StructType:
    """All columns of the table, those that are derived at the end; the batch is not among them."""
    fields = {field.name: field for field in columns.fields}
    derived = []
    for name in partition_by:
        field = fields.get(name)
        if field is None:
            if name not in DERIVED:
                raise BadSchema(
                    f"there is no column {name} to partition by: there are "
                    f"{', '.join([*fields, *(each for each in DERIVED if each not in fields)])}"
                )
            derived.append(StructField(name, DERIVED[name]))
        elif type(field.dataType) not in _DIRECTORY_TYPES:
            raise BadSchema(
                f"{name} is {field.dataType.simpleString()}, which makes no good name of a "
                "directory: strings, whole numbers, booleans and dates do"
            )
    return StructType([*columns.fields, *derived])


def find_difference(before: StructType, now: StructType) -> str | None:
    """Why rows of the one cannot lie beside rows of the other; columns may be added."""
    fields = {field.name: field for field in now.fields}
    for field in before.fields:
        other = fields.get(field.name)
        if other is None:
            return f"it has a column {field.name}, which the schema lacks"
        if other.dataType != field.dataType:
            return (
                f"its column {field.name} is {field.dataType.simpleString()}, "
                f"not {other.dataType.simpleString()}"
            )
    return None
