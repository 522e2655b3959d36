"""Read and write topics with Spark as a member of a consumer group, and analyse rebalances.

The only package that uses Spark. It commits an offset to the group only after Spark has made the
batch durable.

    spark.readStream.format("kohort").option("subscribe", "orders").option("group.id", "etl")
"""

from typing import TYPE_CHECKING

from kohort.extras import require_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Register `format("kohort")`, and check that Spark's Python workers can run it.

    Spark finds the format by itself through the package `pyspark_kohort`; the check is the reason
    to call this.
    """
    # The pure modules of this package must be importable without PySpark.
    with require_extra("kohort.pipeline"):
        from pyspark.errors import AnalysisException  # noqa: PLC0415

        from kohort.pipeline.data_source import KohortDataSource  # noqa: PLC0415
        from kohort.pipeline.worker_python import check_session_python  # noqa: PLC0415

    check_session_python(spark)
    try:
        spark.dataSource.register(KohortDataSource)
    except AnalysisException as error:
        # Spark has found it through pyspark_kohort, and does not let a session replace it.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
