"""Runs one query in separate processes: a driver, its JVM and its workers.

`python -m tests.pipeline.query_process JSON` takes the master, the options, the directory and,
optionally, `kill`: the stage after which the whole process group is killed. Batches are written
under their batch number, so a batch that runs again replaces its earlier output.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import kohort.pipeline
from tests.pipeline.spark_settings import FAST_SETTINGS
from tests.wait import pause

KILLED_BATCH = 1
"""The first batch is complete, so that the query restarts from a checkpoint."""


def main() -> None:
    given: dict[str, Any] = json.loads(sys.argv[1])
    directory = Path(given["directory"])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = start_spark(given["master"], given["settings"])
    if given["kill"] == "after-the-commit-log":
        kill_when_exists(directory / "checkpoint" / "commits" / str(KILLED_BATCH))
    rows = run_query(spark, directory, given["options"], given["kill"])
    sys.stdout.write(json.dumps({"rows": rows}) + "\n")
    spark.stop()


def run_query(
    spark: SparkSession, directory: Path, options: dict[str, str], stage: str = ""
) -> int:
    """Read all records that are there now; returns the number of rows."""
    kohort.pipeline.register(spark)

    def write(batch: DataFrame, number: int) -> None:
        is_killed = number == KILLED_BATCH
        if is_killed and stage == "before-the-sink":
            kill_all()
        batch.write.mode("overwrite").parquet(f"{directory / 'table' / f'batch={number}'}")
        if is_killed and stage == "before-the-commit-log":
            kill_all()

    query = (
        spark.readStream.format("kohort")
        .options(**options)
        .load()
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{directory / 'checkpoint'}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(each.numInputRows for each in query.recentProgress)


def start_spark(master: str, settings: dict[str, str]) -> SparkSession:
    builder = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
    )
    for name, text in {**FAST_SETTINGS, **settings}.items():
        builder = builder.config(name, text)
    session: SparkSession = builder.getOrCreate()
    return session


def kill_all() -> None:
    """Kill driver, JVM and workers with SIGKILL."""
    os.killpg(0, signal.SIGKILL)


def kill_when_exists(path: Path) -> None:
    def poll() -> None:
        while not path.exists():
            pause(0.001)
        kill_all()

    threading.Thread(target=poll, daemon=True).start()


if __name__ == "__main__":
    main()
