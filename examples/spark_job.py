"""A Spark stream that reads a topic as a member of a consumer group, and writes Parquet.

    python spark_job.py HOST:PORT TOPIC DIRECTORY

It reads what is there now and stops. Run it again to continue: `kohort groups describe etl` shows
the committed offsets. Spark starts its Python workers with PYSPARK_PYTHON; it must have Kohort too.
"""

import os
import sys

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import SparkSession

import kohort.pipeline


def main(bootstrap_servers: str, topic: str, directory: str) -> None:
    spark = SparkSession.builder.master("local[2]").appName("orders").getOrCreate()
    kohort.pipeline.register(spark)
    orders = (
        spark.readStream.format("kohort")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("group.id", "etl")
        .option("auto.offset.reset", "earliest")
        .load()
    )
    query = (
        orders.selectExpr("CAST(value AS STRING) AS value", "partition", "offset", "timestamp")
        .writeStream.format("parquet")
        .option("path", f"{directory}/table")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print(f"{spark.read.parquet(f'{directory}/table').count()} rows in {directory}/table")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
