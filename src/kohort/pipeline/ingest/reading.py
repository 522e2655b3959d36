"""An ingested table as a DataFrame: batches that are whole, and no others."""

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody who uses Spark calls it
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kohort.pipeline.ingest.files import Files
from kohort.pipeline.ingest.schema import BATCH, raw_columns
from kohort.pipeline.ingest.shaping import REASON
from kohort.pipeline.ingest.table import BAD, DATA, NotOurs, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(spark: "SparkSession", directory: str) -> DataFrame:
    """The rows of all batches that are whole now, with the table's exact types."""
    table = Table(Files(spark, directory))
    about = table.find_about()
    if about is None:
        raise NotOurs(f"{table.files.root} is no table of an ingest")
    return _read(spark, table, DATA, about.columns)


def read_bad(spark: "SparkSession", directory: str) -> DataFrame:
    """The records of the same batches that could not be parsed, raw, and why."""
    table = Table(Files(spark, directory))
    if table.find_about() is None:
        raise NotOurs(f"{table.files.root} is no table of an ingest")
    columns = StructType([*raw_columns().fields, StructField(REASON, StringType())])
    return _read(spark, table, BAD, columns)


def _read(spark: "SparkSession", table: Table, part: str, columns: StructType) -> DataFrame:
    schema = StructType([*columns.fields, StructField(BATCH, LongType())])
    last = table.find_last_commit()
    if last is None or not table.files.exists(part):
        return spark.createDataFrame([], schema)
    rows = spark.read.schema(schema).parquet(table.files.address(part))
    # Batches come one after the other: what has no commit is later than what has one.
    return rows.where(F.col(BATCH) <= last.batch)
