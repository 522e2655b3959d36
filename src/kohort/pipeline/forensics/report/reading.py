"""Tables on disk, as DataFrames; a table that is not there is told by its place."""

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.forensics import tables
from kohort.types import value


class NoTables(PipelineError):
    """Where tables were said to be, there are none, or not of all kinds."""


@value
class Shelf:
    """A directory of tables, on any file system of Hadoop's; of some groups, or of all."""

    spark: SparkSession
    place: str
    groups: tuple[str, ...] = ()

    def read(self, table: tables.Table) -> DataFrame:
        path = f"{self.place.rstrip('/')}/{table.layer}/{table.name}"
        schema = StructType.fromDDL(table.ddl)
        assert isinstance(schema, StructType)
        try:
            frame = self.spark.read.schema(schema).parquet(path)
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            raise NoTables(
                f"{path}: no such table; a report is made of the tables that forensics has made"
            ) from error
        if self.groups and "group_id" in frame.columns:
            return frame.where(frame.group_id.isin(list(self.groups)))
        return frame

    def only(self, groups: Sequence[str]) -> "Shelf":
        return Shelf(spark=self.spark, place=self.place, groups=tuple(groups))
