"""The stored tables: DIR/LAYER/NAME, as Parquet, on any file system that Spark's executors reach.

`_complete.json` is deleted before tables are built and written last, so incomplete tables are never
taken for complete ones.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.forensics.tables import TableSpec
from kohort.pipeline.ingest.hadoop_fs import HadoopFiles

_COMPLETE: Final = "_complete.json"


class NoTables(PipelineError):
    """The directory has no complete tables."""


class Store:
    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._spark = spark
        self.files = HadoopFiles(spark, directory)

    def address(self, table: TableSpec) -> str:
        return self.files.address(_name(table))

    def read(self, table: TableSpec) -> DataFrame:
        """Empty if it was never written."""
        if not self.files.names(_name(table)):
            return self._spark.createDataFrame([], table.ddl)
        reader = self._spark.read.schema(table.ddl).option("recursiveFileLookup", value=True)
        return reader.parquet(self.address(table))

    def write(self, table: TableSpec, frame: DataFrame) -> DataFrame:
        """Replace the table; returns it as read from storage."""
        conform(frame, table).write.mode("overwrite").parquet(self.address(table))
        return self.read(table)

    def begin(self) -> None:
        """Mark the tables as incomplete."""
        self.files.delete(_COMPLETE)

    def complete(self, summary: Mapping[str, Any]) -> None:
        self.files.write(_COMPLETE, json.dumps(summary, indent=2))

    def summary(self) -> dict[str, Any]:
        if not self.files.exists(_COMPLETE):
            raise NoTables(
                f"{self.files.root} has no complete tables: a run is in progress or was stopped; "
                "run kohort pipeline forensics again"
            )
        found: dict[str, Any] = json.loads(self.files.read(_COMPLETE))
        return found


def _name(table: TableSpec) -> str:
    return f"{table.layer}/{table.name}"


def conform(frame: DataFrame, table: TableSpec) -> DataFrame:
    """Select the table's columns in order, with its types.

    Types may be widened. A missing column or another type is an error before any row is read.
    """
    missing = [each.name for each in table.columns if each.name not in frame.columns]
    if missing:
        raise ValueError(f"{table.layer}.{table.name} lacks {', '.join(missing)}")
    schema = StructType.fromDDL(table.ddl)
    assert isinstance(schema, StructType)
    return frame.to(schema)
