"""The columns of an ingested table: those of the schema file, and those that are added.

Uses PySpark's types and starts no Spark.
"""

import json
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
from kohort.pipeline.ingest.ddl_parser import BadDdl, parse_ddl
from kohort.pipeline.ingest.error_text import explain_text

RECORD: Final = "_record"
"""The column of a parsed row that has the record's topic, partition, offset and so on."""

BATCH: Final = "batch"
"""The column with the batch number: the outermost directory."""

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

DERIVED_COLUMNS: Final[dict[str, DataType]] = {
    "date": DateType(),
    "hour": IntegerType(),
    "partition": IntegerType(),
    "topic": StringType(),
}
"""Partition columns besides the table's own. Date and hour are of the timestamp, in UTC."""

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
    """A schema that cannot be parsed, or that a table cannot have."""


def read_schema(text: str) -> StructType:
    """From Spark's DDL (`id BIGINT NOT NULL, name STRING`) or from a StructType's JSON."""
    read = _read_json if text.lstrip().startswith("{") else _read_ddl
    schema = read(text.strip().removesuffix(";"))
    if not isinstance(schema, StructType):
        raise BadSchema(
            f"the schema is the single type {schema.simpleString()}: write columns, "
            "as in id BIGINT, name STRING"
        )
    if not schema.fields:
        raise BadSchema("the schema is empty: write columns, as in id BIGINT, name STRING")
    _check_fields(schema, "")
    for name in schema.names:
        if name.lower() in (RECORD, BATCH):
            raise BadSchema(f"the schema may not have a column {name}: the table adds one")
    return schema


def _read_ddl(text: str) -> DataType:
    try:
        return parse_ddl(text)
    except BadDdl as error:
        raise BadSchema(f"the schema is not valid Spark DDL ({error})") from error


def _read_json(text: str) -> DataType:
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise BadSchema(f"the schema starts like JSON and is not valid JSON: {error}") from error
    if found.get("type") != "struct":
        kind = (
            "a JSON Schema" if "properties" in found or "$schema" in found else "not a StructType"
        )
        raise BadSchema(
            f"the schema is {kind}: write Spark's DDL, as in id BIGINT, name STRING, or the JSON "
            'of a StructType, {"type": "struct", "fields": [...]}'
        )
    try:
        return StructType.fromJson(found)
    except (PySparkException, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else explain_text(str(error))
        raise BadSchema(f"the schema is not a StructType in JSON: {reason}") from error


def _check_fields(schema: StructType, prefix: str) -> None:
    seen: set[str] = set()
    for field in schema.fields:
        name = f"{prefix}{field.name}"
        if field.name.lower() in seen:
            raise BadSchema(f"the schema has {name} twice; names are case-insensitive")
        seen.add(field.name.lower())
        _check_type(field.dataType, name)


def _check_type(kind: DataType, name: str) -> None:
    if isinstance(kind, StructType):
        _check_fields(kind, f"{name}.")
    elif isinstance(kind, ArrayType):
        _check_type(kind.elementType, f"{name}[]")
    elif isinstance(kind, MapType):
        if not isinstance(kind.keyType, StringType):
            raise BadSchema(f"{name} is a map whose keys are not strings: JSON has only strings")
        _check_type(kind.valueType, f"{name}{{}}")
    # CharType and VarcharType are subclasses of StringType, and Spark's JSON parser refuses them.
    elif type(kind) not in _LEAVES:
        raise BadSchema(
            f"{name} is {kind.simpleString()}, which cannot be read from JSON or stored in Parquet"
        )


def raw_columns() -> StructType:
    """The columns of the source."""
    fields = {field.name: field for field in RECORD_TYPE.fields}
    value = StructField("value", BinaryType())
    rest = ("topic", "partition", "offset", "timestamp", "timestampType", "headers")
    return StructType([fields["key"], value, *(fields[name] for name in rest)])


def parsed_columns(schema: StructType) -> StructType:
    return StructType([*schema.fields, StructField(RECORD, RECORD_TYPE)])


def table_columns(columns: StructType, partition_by: Iterable[str]) -> StructType:
    """All columns of the table but the batch; derived columns come last."""
    fields = {field.name: field for field in columns.fields}
    derived = []
    for name in partition_by:
        field = fields.get(name)
        if field is None:
            if name not in DERIVED_COLUMNS:
                names = ", ".join({**fields, **DERIVED_COLUMNS})
                raise BadSchema(f"there is no column {name} to partition by; use one of {names}")
            derived.append(StructField(name, DERIVED_COLUMNS[name]))
        elif type(field.dataType) not in _DIRECTORY_TYPES:
            raise BadSchema(
                f"{name} is {field.dataType.simpleString()}: only strings, integers, booleans and "
                "dates can be partition columns"
            )
    return StructType([*columns.fields, *derived])


def find_difference(before: StructType, now: StructType) -> str | None:
    """Why the table cannot take rows of the new schema; None if it can. Columns may be added."""
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
