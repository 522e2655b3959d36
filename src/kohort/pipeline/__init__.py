"""Topics into Spark under a consumer group, and every rebalance explained.

The only room that knows Spark. It never moves a group's offset before Spark has kept the batch.

    kohort.pipeline.register(spark)
    spark.readStream.format("kohort").option("subscribe", "orders").option("group.id", "etl")
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """From now on `spark` knows `format("kohort")`, to read and to write."""
    from kohort.pipeline.format import KohortDataSource  # noqa: PLC0415  # pure parts need no Spark

    spark.dataSource.register(KohortDataSource)
