"""Turn records into rows: raw, or parsed from JSON, with bad records kept apart.

Uses only Spark's column expressions: no Python runs per record.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from kohort.pipeline.ingest.options import IngestOptions
from kohort.pipeline.ingest.table_schema import (
    DERIVED_COLUMNS,
    RECORD,
    RECORD_TYPE,
    parsed_columns,
    raw_columns,
    read_schema,
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


class RowTransform(Protocol):
    """How the records of a batch become rows of the table."""

    columns: StructType
    """All columns of the table but the batch."""
    can_be_bad: bool

    def prepare(self, records: DataFrame) -> DataFrame:
        """All records, with the columns that the other methods need. Persist it to use it twice."""
        ...

    def is_bad(self) -> Column: ...

    def select_good(self, prepared: DataFrame) -> DataFrame: ...

    def select_bad(self, prepared: DataFrame) -> DataFrame: ...


class RawRows:
    """Records as the source returns them. None is bad."""

    def __init__(self, partition_by: Sequence[str]) -> None:
        self.columns = table_columns(raw_columns(), partition_by)
        self.can_be_bad = False

    def prepare(self, records: DataFrame) -> DataFrame:
        own = raw_columns().names
        derived = [_derive(name) for name in self.columns.names if name not in own]
        return records.select(*own, *derived)

    def is_bad(self) -> Column:
        return F.lit(False)  # noqa: FBT003

    def select_good(self, prepared: DataFrame) -> DataFrame:
        return prepared

    def select_bad(self, prepared: DataFrame) -> DataFrame:
        return prepared.where(self.is_bad()).withColumn(REASON, F.lit(""))


class ParsedRows:
    """Values parsed from JSON in strict mode. A record that does not fit is bad, with a reason."""

    def __init__(self, schema: StructType, partition_by: Sequence[str]) -> None:
        self._schema = schema
        self._own = parsed_columns(schema)
        self.columns = table_columns(self._own, partition_by)
        self.can_be_bad = True

    def prepare(self, records: DataFrame) -> DataFrame:
        text = F.col("value").cast("string")
        # from_json ignores everything after the first value. Inside an array that another field
        # follows, extra text is an error.
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
        return found.select("*", self._is_bad_record().alias(_IS_BAD))

    def _is_bad_record(self) -> Column:
        record, row = F.col(f"{_PARSED}.record"), _first()
        is_one_object = (
            F.col(f"{_PARSED}.corrupt").isNull()
            & (F.col(f"{_PARSED}.end") == 1)
            & (F.size(record) == 1)
            & row.isNotNull()
            & F.is_valid_utf8(F.col("value").cast("string"))
        )
        missing = find_missing(row, self._schema)
        is_good = is_one_object if missing is None else is_one_object & ~missing
        return ~F.coalesce(is_good, F.lit(False))  # noqa: FBT003

    def is_bad(self) -> Column:
        return F.col(_IS_BAD)

    def select_good(self, prepared: DataFrame) -> DataFrame:
        row = _first()
        fields = [row.getField(name).alias(name) for name in self._schema.names]
        record = F.struct(*RECORD_TYPE.names).alias(RECORD)
        derived = [_derive(name) for name in self.columns.names if name not in self._own.names]
        return prepared.where(~self.is_bad()).select(*fields, record, *derived)

    def select_bad(self, prepared: DataFrame) -> DataFrame:
        bad = prepared.where(self.is_bad())
        with_text = bad.withColumn(_TEXT, F.col("value").cast("string"))
        return with_text.select(*raw_columns().names, self._reason().alias(REASON))

    def _reason(self) -> Column:
        """Evaluated only for bad records, so it may be slow."""
        text = F.col(_TEXT)
        as_list = F.try_parse_json(F.concat(F.lit("["), text, F.lit("]")))
        shape = F.schema_of_variant(as_list)
        return (
            F.when(F.col("value").isNull(), F.lit("the value is null"))
            .when(~F.is_valid_utf8(text), F.lit("not UTF-8"))
            .when(F.trim(text) == "", F.lit("the value is empty"))
            .when(as_list.isNull() | (F.col(f"{_PARSED}.end").isNull()), F.lit("not JSON"))
            .when(F.size(F.col(f"{_PARSED}.record")) > 1, F.lit("more than one JSON value"))
            .when(~shape.startswith("ARRAY<OBJECT<"), F.lit("not a JSON object"))
            .otherwise(self._field_reasons())
        )

    def _field_reasons(self) -> Column:
        row = _first()
        object_ = F.try_parse_json(F.col(_TEXT))
        reasons = []
        for field in self._schema.fields:
            given = _pick(object_, field.name)
            is_absent = row.getField(field.name).isNull()
            wrong_type = f"{field.name} is not {field.dataType.simpleString()}"
            reasons.append(F.when(is_absent & given.isNotNull(), F.lit(wrong_type)))
            if not field.nullable:
                missing = F.lit(f"{field.name} is missing")
                reasons.append(F.when(is_absent & given.isNull(), missing))
        found = F.concat_ws("; ", *reasons)
        return F.when(found == "", F.lit("does not fit the schema")).otherwise(found)


def choose_transform(options: IngestOptions) -> RowTransform:
    """Raises BadSchema if the schema or a partition column is wrong. Needs no running Spark."""
    if options.schema is None:
        return RawRows(options.partition_by)
    return ParsedRows(read_schema(options.schema), options.partition_by)


def _first() -> Column:
    """The row of a record that is one JSON object; null for others."""
    return F.get(F.col(f"{_PARSED}.record"), F.lit(0))


def _pick(object_: Column, name: str) -> Column:
    """A field of a variant as text; null if it is missing or null."""
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return F.try_variant_get(object_, f"$['{quoted}']", "string")


def find_missing(column: Column, kind: DataType) -> Column | None:
    """Whether a NOT NULL field inside the value is null; None if there is no such field."""
    if isinstance(kind, StructType):
        found: Column | None = None
        for field in kind.fields:
            inner = column.getField(field.name)
            missing = find_missing(inner, field.dataType)
            if not field.nullable:
                missing = _either(inner.isNull(), missing)
            found = _either(found, missing)
        # A struct that is null itself has no missing field.
        return None if found is None else column.isNotNull() & found
    if isinstance(kind, ArrayType):
        return _find_in_elements(column, kind.elementType, has_nulls=kind.containsNull)
    if isinstance(kind, MapType):
        values = F.map_values(column)
        return _find_in_elements(values, kind.valueType, has_nulls=kind.valueContainsNull)
    return None


def _find_in_elements(column: Column, kind: DataType, *, has_nulls: bool) -> Column | None:
    if has_nulls and not _has_required_fields(kind):
        return None

    def is_missing(element: Column) -> Column:
        missing = find_missing(element, kind)
        found = missing if has_nulls else _either(element.isNull(), missing)
        assert found is not None
        return found

    return F.coalesce(F.exists(column, is_missing), F.lit(False))  # noqa: FBT003


def _has_required_fields(kind: DataType) -> bool:
    """Whether the type has a NOT NULL field or element."""
    if isinstance(kind, StructType):
        return any(
            not field.nullable or _has_required_fields(field.dataType) for field in kind.fields
        )
    if isinstance(kind, ArrayType):
        return not kind.containsNull or _has_required_fields(kind.elementType)
    if isinstance(kind, MapType):
        return not kind.valueContainsNull or _has_required_fields(kind.valueType)
    return False


def _either(one: Column | None, other: Column | None) -> Column | None:
    if one is None or other is None:
        return one if other is None else other
    return one | other


def _derive(name: str) -> Column:
    """A partition column computed from the record, in UTC."""
    assert name in DERIVED_COLUMNS
    match name:
        case "date":
            return F.to_date("timestamp").alias(name)
        case "hour":
            return F.hour("timestamp").alias(name)
        case _:
            return F.col(name)
