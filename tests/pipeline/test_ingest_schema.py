"""Schema files: Spark's DDL and StructType JSON are parsed and checked without a running Spark."""

import json

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from kohort.pipeline.ingest.ddl_parser import BadDdl, parse_ddl
from kohort.pipeline.ingest.options import IngestOptions
from kohort.pipeline.ingest.table_schema import BadSchema, read_schema
from kohort.pipeline.ingest.transform import choose_transform

VALID_DDL = (
    "",
    "INT",
    "STRUCT<a: INT>",
    "id INT",
    "id: INT, n: STRING",
    "id bigint not null comment 'the key', s STRUCT<c: INT NOT NULL COMMENT \"q\", d ARRAY<INT>>",
    "`a b` INT, `c``d` INT, 1a INT, _b INT",
    "a DEC, b NUMERIC(5), c DECIMAL(12, 2)",
    "a STRING COLLATE UTF8_LCASE, b CHAR(3), c CHARACTER(3), d VARCHAR(3), e VOID, f TIME",
    "a TIMESTAMP_LTZ, b TIMESTAMP_NTZ, c TIMESTAMP WITHOUT TIME ZONE, d TIMESTAMP, e DATE",
    "a REAL, b LONG, c BYTE, d SHORT, e TINYINT, f SMALLINT, g INTEGER, h VARIANT, i INTERVAL",
    "a BOOLEAN, b BINARY, c FLOAT, d DOUBLE, m MAP<STRING, ARRAY<STRUCT<x: INT>>>, s STRUCT<>",
    "a INT -- the first\n, b STRING /* the\nsecond */",
)

INVALID_DDL = (
    "a",
    "id FOO",
    "id INT,",
    "id INT NULL",
    "1 INT",
    "a-b INT",
    "a.b INT",
    "ä INT",
    '"a" INT',
    "a INT,, b INT",
    "a INT b INT",
    "a INT NOT NULL NOT NULL",
    "a INT DEFAULT 5",
    "a INT(3)",
    "a STRING(3)",
    "a DECIMAL(5, 7)",
    "a ARRAY<INT",
    "a MAP<STRING>",
    "s STRUCT<a INT>>",
)


def test_ddl_is_parsed_as_spark_parses_it(spark: SparkSession) -> None:
    assert spark.version
    for text in VALID_DDL:
        assert parse_ddl(text) == DataType.fromDDL(text), text
    for text in INVALID_DDL:
        with pytest.raises(ParseException):
            DataType.fromDDL(text)


@pytest.mark.parametrize("text", INVALID_DDL)
def test_invalid_ddl_is_refused_with_line_and_column(text: str) -> None:
    with pytest.raises(BadDdl, match=r"^line 1, column \d+: "):
        parse_ddl(text)


def test_the_line_and_column_of_an_error_are_those_of_the_file() -> None:
    with pytest.raises(BadDdl, match="line 3, column 8: unknown type FOO"):
        parse_ddl("id INT,\n-- a comment\n  name FOO")


REFUSED = {
    "": "the schema is empty",
    "INT": "single type int",
    "id FOO": "not valid Spark DDL (line 1, column 4: unknown type FOO)",
    "id INT,": "not valid Spark DDL (line 1, column 8: a column name expected",
    "a DECIMAL(40, 2)": "a precision of at most 38",
    "id INT, ID STRING": "has ID twice",
    "id INTERVAL": "id is interval, which cannot be read from JSON",
    "s STRUCT<c: CHAR(3)>": "s.c is char",
    "m MAP<INT, INT>": "m is a map whose keys",
    "batch INT": "may not have a column batch",
    '{"properties": {"id": {"type": "integer"}}}': "a JSON Schema",
    '{"type": "struct"}': "'fields' is missing",
    '{"type": "struct", "fields": [{"name": "a", "type": "foo", "nullable": true}]}': "foo",
    '{"type"': "starts like JSON and is not valid JSON",
}


@pytest.mark.parametrize("schema", REFUSED)
def test_a_schema_that_no_table_can_have_is_refused_in_one_line(schema: str) -> None:
    with pytest.raises(BadSchema) as caught:
        read_schema(schema)

    assert REFUSED[schema] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_struct_type_in_json_is_a_schema() -> None:
    field = {"name": "id", "type": "long", "nullable": False, "metadata": {}}

    schema = json.dumps({"type": "struct", "fields": [field]})

    assert read_schema(schema) == read_schema("id BIGINT NOT NULL;")


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("nothing", "no column nothing to partition by; use one of id, amount, _record, date"),
        ("amount", "amount is double: only strings"),
    ],
)
def test_a_partition_column_must_exist_and_have_a_simple_type(column: str, reason: str) -> None:
    options = IngestOptions(
        bootstrap_servers="localhost:9092",
        topics=("t",),
        group_id="g",
        target="d",
        schema="id INT, amount DOUBLE",
        partition_by=(column,),
    )

    with pytest.raises(BadSchema, match=reason):
        choose_transform(options)
