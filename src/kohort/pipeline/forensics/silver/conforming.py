"""A DataFrame is made to be the table it is meant to be, or it is refused."""

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from kohort.pipeline.forensics.tables import Table


def conform(frame: DataFrame, table: Table) -> DataFrame:
    """Exactly the table's columns, in its order, of its types.

    A type may become a wider one. A column that is missing, or that would have to be bent, is an
    error before a single row is read.
    """
    missing = [each.name for each in table.columns if each.name not in frame.columns]
    if missing:
        raise ValueError(f"{table.layer}.{table.name} lacks {', '.join(missing)}")
    schema = StructType.fromDDL(table.ddl)
    assert isinstance(schema, StructType)
    return frame.to(schema)
