"""When each member was last heard of, as far as its commits tell.

Heartbeats are in no topic, so a commit is the only sign of life that any Kafka keeps.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

COMMITS_FOR_A_RHYTHM = 3
"""Two commits have a distance; it takes a third to call it a rhythm."""


def signs(stints: DataFrame) -> DataFrame:
    """A member's last sign in a generation, and how often it gave one while it did."""
    span = sql.unix_millis("last_at") - sql.unix_millis("first_at")
    rhythm = sql.when(
        sql.col("commits") >= COMMITS_FOR_A_RHYTHM, (span / (sql.col("commits") - 1)).cast("bigint")
    )
    return (
        stints.where("owner IS NOT NULL AND commits > 0")
        .groupBy("group_id", "generation", sql.col("owner").alias("member_id"))
        .agg(
            sql.max("last_at").alias("last_sign"),
            # A partition nobody writes to is not committed: the liveliest one has the rhythm.
            sql.min(rhythm).alias("rhythm_ms"),
        )
    )
