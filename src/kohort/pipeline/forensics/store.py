"""Where the tables are: DIR/LAYER/NAME, as Parquet, on any file system that Spark's workers reach.

While tables are being built there is no `_complete.json`; it is written last. So nobody takes what
a crash has left for the whole.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.tables import Table
from kohort.pipeline.ingest.files import Files

_COMPLETE: Final = "_complete.json"


class NoTables(PipelineError):
    """There are no tables, or not all of them."""


class Store:
    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._spark = spark
        self.files = Files(spark, directory)

    def address(self, table: Table) -> str:
        return self.files.address(_name(table))

    def read(self, table: Table) -> DataFrame:
        """Empty where it was never written: nothing is known of it."""
        if not self.files.names(_name(table)):
            return self._spark.createDataFrame([], table.ddl)
        reader = self._spark.read.schema(table.ddl).option("recursiveFileLookup", value=True)
        return reader.parquet(self.address(table))

    def write(self, table: Table, frame: DataFrame) -> DataFrame:
        """Replace it; what comes back is read from where it is kept."""
        conform(frame, table).write.mode("overwrite").parquet(self.address(table))
        return self.read(table)

    def begin(self) -> None:
        """What there was is no longer the whole."""
        self.files.delete(_COMPLETE)

    def complete(self, summary: Mapping[str, Any]) -> None:
        self.files.write(_COMPLETE, json.dumps(summary, indent=2))

    def summary(self) -> dict[str, Any]:
        if not self.files.exists(_COMPLETE):
            raise NoTables(
                f"{self.files.root} has no complete tables: they are being built, or were cut off; "
                "run kohort pipeline forensics again"
            )
        found: dict[str, Any] = json.loads(self.files.read(_COMPLETE))
        return found


def _name(table: Table) -> str:
    return f"{table.layer}/{table.name}"
