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
    # Pure parts need no Spark.
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    from kohort.pipeline.errors import PipelineError  # noqa: PLC0415
    from kohort.pipeline.format import KohortDataSource  # noqa: PLC0415

    try:
        spark.dataSource.register(KohortDataSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        # Spark neither finds it in such a session nor takes it.
        raise PipelineError(
            "Spark does not let a session know a format that the session it was made from by "
            "newSession() knows: use that one, or a new SparkSession"
        ) from error
