"""From records to rows: raw, or parsed from JSON with what cannot be parsed kept apart.

All of it is Spark's own columns: no Python runs for a record.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody who uses Spark calls it
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from kohort.pipeline.ingest.schema import (
    DERIVED,
    RECORD,
    RECORD_TYPE,
    parsed_columns,
    raw_columns,
    table_columns,
)

REASON: Final = "reason"

_PARSED: Final = "_parsed"
_IS_BAD: Final = "_is_bad"
_TEXT: Final = "_text"

_STRICT: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "corrupt",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}


class Shape(Protocol):
    """How records of a batch become rows of a table."""

    columns: StructType
    """Of the table, without the batch."""
    can_be_bad: bool

    def prepare(self, records: DataFrame) -> DataFrame:
        """All records, each with what is needed below; worth keeping if it is used twice."""
        ...

    def is_bad(self) -> Column: ...

    def take_good(self, prepared: DataFrame) -> DataFrame: ...

    def take_bad(self, prepared: DataFrame) -> DataFrame: ...


class Raw:
    """Records as they are. None of them is bad."""

    def __init__(self, partition_by: Sequence[str]) -> None:
        self.columns = table_columns(raw_columns(), partition_by)
        self.can_be_bad = False

    def prepare(self, records: DataFrame) -> DataFrame:
        own = raw_columns().names
        derived = [_derive(name) for name in self.columns.names if name not in own]
        return records.select(*own, *derived)

    def is_bad(self) -> Column:
        return F.lit(False)  # noqa: FBT003

    def take_good(self, prepared: DataFrame) -> DataFrame:
        return prepared

    def take_bad(self, prepared: DataFrame) -> DataFrame:
        return prepared.where(self.is_bad()).withColumn(REASON, F.lit(""))


class Parsed:
    """Values parsed from JSON, strictly; whatever does not fit is bad, and says why."""

    def __init__(self, schema: StructType, partition_by: Sequence[str]) -> None:
        self._schema = schema
        self._own = parsed_columns(schema)
        self.columns = table_columns(self._own, partition_by)
        self.can_be_bad = True

    def prepare(self, records: DataFrame) -> DataFrame:
        text = F.col("value").cast("string")
        # Spark stops reading after the first value, whatever follows. Within brackets, and with
        # something behind them that must be seen as well, what follows is an error.
        wrapped = F.concat(F.lit('{"record":['), text, F.lit('],"end":1}'))
        envelope = StructType(
            [
                StructField("record", ArrayType(self._schema)),
                StructField("end", IntegerType()),
                StructField("corrupt", StringType()),
            ]
        )
        parsed = F.from_json(wrapped, envelope, _STRICT)
        found = records.select("*", parsed.alias(_PARSED))
        return found.select("*", self._judge().alias(_IS_BAD))

    def _judge(self) -> Column:
        record, row = F.col(f"{_PARSED}.record"), _first()
        is_whole = (
            F.col(f"{_PARSED}.corrupt").isNull()
            & (F.col(f"{_PARSED}.end") == 1)
            & (F.size(record) == 1)
            & row.isNotNull()
            & F.is_valid_utf8(F.col("value").cast("string"))
        )
        holes = find_holes(row, self._schema)
        is_good = is_whole if holes is None else is_whole & ~holes
        return ~F.coalesce(is_good, F.lit(False))  # noqa: FBT003

    def is_bad(self) -> Column:
        return F.col(_IS_BAD)

    def take_good(self, prepared: DataFrame) -> DataFrame:
        row = _first()
        fields = [row.getField(name).alias(name) for name in self._schema.names]
        record = F.struct(*RECORD_TYPE.names).alias(RECORD)
        derived = [_derive(name) for name in self.columns.names if name not in self._own.names]
        return prepared.where(~self.is_bad()).select(*fields, record, *derived)

    def take_bad(self, prepared: DataFrame) -> DataFrame:
        bad = prepared.where(self.is_bad())
        with_text = bad.withColumn(_TEXT, F.col("value").cast("string"))
        return with_text.select(*raw_columns().names, self._explain().alias(REASON))

    def _explain(self) -> Column:
        """Looked for only in records that are bad, so it may take its time."""
        text = F.col(_TEXT)
        as_list = F.try_parse_json(F.concat(F.lit("["), text, F.lit("]")))
        shape = F.schema_of_variant(as_list)
        return (
            F.when(F.col("value").isNull(), F.lit("the value is null"))
            .when(~F.is_valid_utf8(text), F.lit("not UTF-8"))
            .when(F.trim(text) == "", F.lit("the value is empty"))
            .when(as_list.isNull() | (F.col(f"{_PARSED}.end").isNull()), F.lit("not JSON"))
            .when(F.size(F.col(f"{_PARSED}.record")) > 1, F.lit("more than one JSON value"))
            .when(~shape.startswith("ARRAY<OBJECT<"), F.lit("no JSON object"))
            .otherwise(self._explain_fields())
        )

    def _explain_fields(self) -> Column:
        row = _first()
        object_ = F.try_parse_json(F.col(_TEXT))
        complaints = []
        for field in self._schema.fields:
            given = _pick(object_, field.name)
            is_absent = row.getField(field.name).isNull()
            does_not_fit = f"{field.name} is no {field.dataType.simpleString()}"
            complaints.append(F.when(is_absent & given.isNotNull(), F.lit(does_not_fit)))
            if not field.nullable:
                missing = F.lit(f"{field.name} is missing")
                complaints.append(F.when(is_absent & given.isNull(), missing))
        found = F.concat_ws("; ", *complaints)
        return F.when(found == "", F.lit("does not fit the schema")).otherwise(found)


def _first() -> Column:
    """The one row of a record that is whole; null where there is none."""
    return F.get(F.col(f"{_PARSED}.record"), F.lit(0))


def _pick(object_: Column, name: str) -> Column:
    """A field of a variant as text; null where it is not there, or is null."""
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return F.try_variant_get(object_, f"$['{quoted}']", "string")


def find_holes(column: Column, kind: DataType) -> Column | None:
    """Whether something is null within a value that may not be; None where all may be."""
    if isinstance(kind, StructType):
        found: Column | None = None
        for field in kind.fields:
            inner = column.getField(field.name)
            holes = find_holes(inner, field.dataType)
            if not field.nullable:
                holes = _either(inner.isNull(), holes)
            found = _either(found, holes)
        # Of a struct that is null itself, nothing is missing.
        return None if found is None else column.isNotNull() & found
    if isinstance(kind, ArrayType):
        return _find_in_elements(column, kind.elementType, has_nulls=kind.containsNull)
    if isinstance(kind, MapType):
        values = F.map_values(column)
        return _find_in_elements(values, kind.valueType, has_nulls=kind.valueContainsNull)
    return None


def _find_in_elements(column: Column, kind: DataType, *, has_nulls: bool) -> Column | None:
    if has_nulls and not _has_duties(kind):
        return None

    def is_hole(element: Column) -> Column:
        holes = find_holes(element, kind)
        found = holes if has_nulls else _either(element.isNull(), holes)
        assert found is not None
        return found

    return F.coalesce(F.exists(column, is_hole), F.lit(False))  # noqa: FBT003


def _has_duties(kind: DataType) -> bool:
    """Whether something in it may not be null."""
    if isinstance(kind, StructType):
        return any(not field.nullable or _has_duties(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return not kind.containsNull or _has_duties(kind.elementType)
    if isinstance(kind, MapType):
        return not kind.valueContainsNull or _has_duties(kind.valueType)
    return False


def _either(one: Column | None, other: Column | None) -> Column | None:
    if one is None or other is None:
        return one if other is None else other
    return one | other


def _derive(name: str) -> Column:
    """Of the record's own columns, in UTC."""
    assert name in DERIVED
    match name:
        case "date":
            return F.to_date("timestamp").alias(name)
        case "hour":
            return F.hour("timestamp").alias(name)
        case _:
            return F.col(name)
