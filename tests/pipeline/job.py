"""One query in processes of its own: a driver, its JVM, its workers. Some are killed on purpose.

`python -m tests.pipeline.job JSON`: master, options, directory, and perhaps kill: a stage, after
which nothing of it is left. Batches are written under their number, so that one that runs again
replaces what it left.
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
from tests.pipeline.quick import QUICK
from tests.waiting import pause

KILLED_BATCH = 1
"""The first one is done, so that there is something to come back to."""


def main() -> None:
    given: dict[str, Any] = json.loads(sys.argv[1])
    directory = Path(given["directory"])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = start_spark(given["master"], given["settings"])
    if given["kill"] == "after-the-commit-log":
        watch(directory / "checkpoint" / "commits" / str(KILLED_BATCH))
    rows = run_query(spark, directory, given["options"], given["kill"])
    sys.stdout.write(json.dumps({"rows": rows}) + "\n")
    spark.stop()


def run_query(
    spark: SparkSession, directory: Path, options: dict[str, str], stage: str = ""
) -> int:
    """Until all that is there now is read; how many rows that was."""
    kohort.pipeline.register(spark)

    def write(batch: DataFrame, number: int) -> None:
        is_last = number == KILLED_BATCH
        if is_last and stage == "before-the-sink":
            die()
        batch.write.mode("overwrite").parquet(f"{directory / 'table' / f'batch={number}'}")
        if is_last and stage == "before-the-commit-log":
            die()

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
    for name, text in {**QUICK, **settings}.items():
        builder = builder.config(name, text)
    session: SparkSession = builder.getOrCreate()
    return session


def die() -> None:
    """Driver, JVM and workers, at once and without a word."""
    os.killpg(0, signal.SIGKILL)


def watch(path: Path) -> None:
    def look() -> None:
        while not path.exists():
            pause(0.001)
        die()

    threading.Thread(target=look, daemon=True).start()


if __name__ == "__main__":
    main()
