"""The lag status of each partition, by the rules of Burrow: no threshold, only movement.

The rules are applied in this order to the last ten commits of a partition:

    ok        the lag is 0
    stopped   the last commit is longer ago than those ten took, and none of them had caught up
    rewound   a commit was below the previous one, and the offset has not recovered
    stalled   commits continue at the same offset, and none had caught up
    warning   offsets advance, none had caught up, and the lag never falls
    ok        anything else

Between two readings of the end offsets the known log end is out of date, and every commit seems to
catch up. So the lag is judged by the readings since the first of those commits, and by the commits
only if there are fewer than two readings.

Removed offsets and deleted groups have no status.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.sql_text import count, duration
from kohort.pipeline.forensics.store import conform

RECENT = 10
"""The number of commits, Burrow's default."""

SPAN_MS_MIN = 60_000
"""With few commits the span would be too short to compare the time since the last one with."""

_PLACE = ["group_id", "topic", "partition"]

_STATUSES = """
    CASE WHEN lag_records = 0 THEN 'ok'
         WHEN lag_records > 0 AND silent_ms > span_ms AND NOT was_level THEN 'stopped'
         WHEN last.committed < most THEN 'rewound'
         WHEN coalesce(lag_records, 0) = 0 OR was_level OR size(recent) < 2 THEN 'ok'
         WHEN last.committed = least_ THEN 'stalled'
         WHEN never_falls THEN 'warning'
         ELSE 'ok' END
"""

_LAG = f"concat('lag ', {count('lag_records', 'record')})"

_REASONS = f"""
    CASE status
    WHEN 'stopped' THEN concat('no commit for ', {duration("silent_ms")}, ', ', {_LAG})
    WHEN 'rewound' THEN concat('the last commit is ', {count("(most - last.committed)", "record")},
        ' below an earlier one')
    WHEN 'stalled' THEN concat('the last ', size(recent), ' commits are all at offset ',
        last.committed, ', ', {_LAG})
    WHEN 'warning' THEN concat('the lag has not fallen over the last ', size(recent), ' commits, ',
        {_LAG})
    ELSE CASE WHEN lag_records IS NULL THEN 'the log end is unknown'
              WHEN lag_records = 0 THEN 'no lag'
              ELSE concat({_LAG}, ', and it keeps up') END END
"""

_SINCE = """
    CASE status
    WHEN 'stopped' THEN last.at
    WHEN 'rewound' THEN get(filter(recent, (c, i) -> c.committed < most AND
        i > array_position(transform(recent, x -> x.committed), most) - 1), 0).at
    ELSE get(recent, 0).at END
"""


def recent_lag(lag: DataFrame) -> DataFrame:
    """The last commits and readings of each partition, and the total number of commits."""
    reading = sql.expr("CASE WHEN log_offset IS NULL THEN struct(at, lag_records) END")
    commit = sql.expr(
        "CASE WHEN log_offset IS NOT NULL THEN struct(at, committed, lag_records) END"
    )
    return lag.groupBy(*_PLACE).agg(
        sql.max_by(commit, "log_offset", RECENT).alias("newest_first"),
        sql.max_by(reading, sql.expr("CASE WHEN log_offset IS NULL THEN at END"), RECENT).alias(
            "readings"
        ),
        sql.max("log_offset").alias("log_offset"),
        sql.max_by("lag_records", sql.expr("struct(at, log_offset IS NOT NULL)")).alias(
            "lag_records"
        ),
        sql.max_by("log_end", "at").alias("log_end"),
        sql.min("at").alias("from_at"),
        sql.max("at").alias("to_at"),
        sql.count("log_offset").alias("commits"),
    )


def build(
    *, recent_lag: DataFrame, ownership: DataFrame, generations: DataFrame, ends: DataFrame
) -> DataFrame:
    now = recent_lag.select("to_at").union(ends.select("at")).agg(sql.max("to_at").alias("now"))
    owners = (
        ownership.where("to_at IS NULL")
        .groupBy(*_PLACE)
        .agg(sql.max_by("member_id", "from_at").alias("owner"))
    )
    deleted = generations.groupBy("group_id").agg(
        sql.expr("max(offset) FILTER (WHERE kind = 'deleted')").alias("deleted_at")
    )
    known = (
        recent_lag.where("get(newest_first, 0).committed IS NOT NULL")
        .join(deleted, "group_id", "left")
        .where("deleted_at IS NULL OR deleted_at < log_offset")
        .join(owners, _PLACE, "left")
        .crossJoin(sql.broadcast(now))
    )
    return conform(_judged(known), tables.LAG_STATUS)


def _judged(known: DataFrame) -> DataFrame:
    return (
        known.selectExpr(
            "*",
            # Commits before a removal do not count.
            "reverse(CASE WHEN exists(newest_first, c -> c.committed IS NULL) THEN "
            "slice(newest_first, 1, array_position(transform(newest_first, "
            "c -> c.committed IS NULL), true)::int - 1) ELSE newest_first END) AS recent",
        )
        .selectExpr(
            "*",
            "element_at(recent, -1) AS last",
            "array_max(transform(recent, c -> c.committed)) AS most",
            "array_min(transform(recent, c -> c.committed)) AS least_",
            "filter(reverse(readings), l -> l.at >= get(recent, 0).at) AS seen",
        )
        .selectExpr(
            "*",
            "transform(CASE WHEN size(seen) >= 2 THEN seen ELSE transform(recent, "
            "c -> struct(c.at, c.lag_records)) END, x -> x.lag_records) AS lags",
        )
        .selectExpr(
            "*",
            "coalesce(array_contains(lags, 0L), false) AS was_level",
            "forall(sequence(1, size(lags)), i -> i = 1 OR "
            "coalesce(get(lags, i - 1) >= get(lags, i - 2), false)) AS never_falls",
        )
        .selectExpr(
            "*",
            "unix_millis(now) - unix_millis(last.at) AS silent_ms",
            f"greatest(unix_millis(last.at) - unix_millis(get(recent, 0).at), {SPAN_MS_MIN})"
            " AS span_ms",
        )
        .withColumn("status", sql.expr(_STATUSES))
        .withColumn("reason", sql.expr(_REASONS))
        .withColumn("since", sql.expr(_SINCE))
        .withColumn("committed", sql.expr("last.committed"))
    )
