"""Settings of Spark for forensics: what it cannot know, and we do.

Some are for as long as tables are built; whatever a session was started with then stays as it is.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION: Final[Mapping[str, str]] = {
    "spark.driver.memory": "2g",
    # Millions of rows that live for a moment, and nobody who waits for an answer meanwhile.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
}
"""For a session that is started for a run."""

_ROWS_PER_TASK: Final = 250_000
"""Of a shuffle. They fit into a small worker's memory; far fewer are not worth a task."""

_TASKS_MAX: Final = 4_000

_PLACES_AT_ONCE: Final = 10_000
"""Partitions whose last commits are kept in a table; with more, Spark sorts all commits first.

Spark's own number is 128, for values of any size. Ours are ten commits: a kilobyte."""


def settings_for(spark: "SparkSession", rows: int) -> dict[str, str]:
    """For a history of so many records."""
    tasks = min(max(-(-rows // _ROWS_PER_TASK), spark.sparkContext.defaultParallelism), _TASKS_MAX)
    return {
        "spark.sql.shuffle.partitions": str(tasks),
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(_PLACES_AT_ONCE),
    }


@contextmanager
def tuned(spark: "SparkSession", settings: Mapping[str, str]) -> Iterator[None]:
    given = spark.sparkContext.getConf()
    ours = {name: text for name, text in settings.items() if not given.contains(name)}
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
