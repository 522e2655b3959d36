"""Spark settings for forensics.

Some are set only while tables are built; settings that the user gave are never changed.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION_SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.memory": "2g",
    # Millions of short-lived rows, and throughput matters more than pauses.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
}
"""For the session of a run."""

_ROWS_PER_TASK: Final = 250_000
"""Of a shuffle: fits into the memory of a small executor; far fewer are not worth a task."""

_TASKS_MAX: Final = 4_000

_HASHED_KEYS_MAX: Final = 10_000
"""Keys of a hash aggregation before Spark falls back to sorting all commits.

Spark's default is 128, for values of any size. Here a value has ten commits: about a kilobyte."""


def settings_for(spark: "SparkSession", rows: int) -> dict[str, str]:
    """Settings for a history with this number of records."""
    tasks = min(max(-(-rows // _ROWS_PER_TASK), spark.sparkContext.defaultParallelism), _TASKS_MAX)
    return {
        "spark.sql.shuffle.partitions": str(tasks),
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(_HASHED_KEYS_MAX),
    }


@contextmanager
def tuned(spark: "SparkSession", settings: Mapping[str, str]) -> Iterator[None]:
    user_settings = spark.sparkContext.getConf()
    ours = {name: text for name, text in settings.items() if not user_settings.contains(name)}
    before = {name: spark.conf.get(name, None) for name in ours}
    for name, text in ours.items():
        spark.conf.set(name, text)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, former)
