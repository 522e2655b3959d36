"""Read the complete batches of an ingested table as a DataFrame."""

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kohort.pipeline.ingest.hadoop_fs import HadoopFiles
from kohort.pipeline.ingest.table import BAD, DATA, IngestTable, TableMismatch
from kohort.pipeline.ingest.table_schema import BATCH, raw_columns
from kohort.pipeline.ingest.transform import REASON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(spark: "SparkSession", directory: str) -> DataFrame:
    """The rows of all complete batches, with the table's exact types."""
    table = IngestTable(HadoopFiles(spark, directory))
    metadata = table.find_metadata()
    if metadata is None:
        raise TableMismatch(f"{table.files.root} is not the table of an ingest")
    return _read(spark, table, DATA, metadata.columns)


def read_bad(spark: "SparkSession", directory: str) -> DataFrame:
    """The raw records of the same batches that could not be parsed, with the reason."""
    table = IngestTable(HadoopFiles(spark, directory))
    if table.find_metadata() is None:
        raise TableMismatch(f"{table.files.root} is not the table of an ingest")
    columns = StructType([*raw_columns().fields, StructField(REASON, StringType())])
    return _read(spark, table, BAD, columns)


def _read(spark: "SparkSession", table: IngestTable, part: str, columns: StructType) -> DataFrame:
    schema = StructType([*columns.fields, StructField(BATCH, LongType())])
    last = table.find_last_commit()
    if last is None or not table.files.exists(part):
        return spark.createDataFrame([], schema)
    rows = spark.read.schema(schema).parquet(table.files.address(part))
    # Batches are sequential: one without a commit is newer than the last committed one.
    return rows.where(F.col(BATCH) <= last.batch)
