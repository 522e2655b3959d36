"""When each member was last heard of, as far as its commits tell; the one reading of all commits.

Heartbeats are in no topic, so a commit is the only sign of life that any Kafka keeps.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

COMMITS_FOR_A_RHYTHM = 3
"""Two commits have a distance; it takes a third to call it a rhythm."""


def stints(commits: DataFrame) -> DataFrame:
    """What one member committed of one partition in one generation. All else is made from this."""
    return (
        commits.where("NOT is_removed AND owner IS NOT NULL")
        .groupBy("group_id", "generation", "owner", "topic", "partition")
        .agg(
            sql.count("*").alias("commits"),
            sql.min("at").alias("first_at"),
            sql.max("at").alias("last_at"),
            sql.min_by("committed", "log_offset").alias("first_committed"),
            sql.max_by("committed", "log_offset").alias("last_committed"),
        )
    )


def signs(stints_: DataFrame) -> DataFrame:
    """A member's last sign in a generation, and how often it gave one while it did."""
    span = millis(sql.col("last_at")) - millis(sql.col("first_at"))
    rhythm = sql.when(
        sql.col("commits") >= COMMITS_FOR_A_RHYTHM, (span / (sql.col("commits") - 1)).cast("bigint")
    )
    return stints_.groupBy("group_id", "generation", sql.col("owner").alias("member_id")).agg(
        sql.max("last_at").alias("last_sign"),
        # A partition nobody writes to is not committed: the liveliest one has the rhythm.
        sql.min(rhythm).alias("rhythm_ms"),
    )


def millis(moment: Column) -> Column:
    return sql.unix_millis(moment)
