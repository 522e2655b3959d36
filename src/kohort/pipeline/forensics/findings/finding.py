"""What a finding is made of: the evidence it looks at, and how it says what it saw."""

from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.saying import say
from kohort.pipeline.forensics.silver.conforming import conform
from kohort.types import value

WHO: Final = "coalesce(party.instance_id, concat(party.client_id, ' at ', party.client_host))"
"""A program by a name that stays when its member id changes."""


@value
class Evidence:
    """The tables that findings look at."""

    generations: DataFrame
    memberships: DataFrame
    commits: DataFrame
    """Millions: for whoever cannot do with stints, and only of few partitions."""
    stints: DataFrame
    ends: DataFrame
    group_events: DataFrame
    rebalances: DataFrame
    lag_status: DataFrame
    groups: DataFrame

    @property
    def until(self) -> DataFrame:
        """One row: the last moment that anything is known of."""
        known = self.groups.select("to_at").union(self.ends.select("at"))
        return known.agg(sql.max("to_at").alias("until"))


@value
class Finding:
    name: str
    meaning: str
    find: Callable[[Evidence], DataFrame]
    """Rows with group_id, subject, from_at, to_at, count, and whatever the words have in braces."""
    severity: str
    """As SQL, since it may depend on the figures."""
    what: str
    """In words, with figures in braces, as `say` wants them."""
    advice: str
    setting: str = "NULL"
    """As SQL."""
    saved: str = "NULL"
    """As SQL: an estimate in milliseconds."""
    shown: tuple[str, ...] = ()
    """The columns that go into the evidence as they are."""


def look(finding: Finding, evidence: Evidence) -> DataFrame:
    """The rows of one finding, as the table wants them."""
    found = finding.find(evidence)
    shown = sql.to_json(sql.struct(*finding.shown)) if finding.shown else sql.lit("{}")
    return conform(
        found.select(
            "group_id",
            sql.lit(finding.name).alias("finding"),
            sql.expr(finding.severity).alias("severity"),
            sql.col("subject").cast("string").alias("subject"),
            "from_at",
            "to_at",
            sql.col("count").cast("int").alias("count"),
            say(finding.what).alias("what"),
            say(finding.advice).alias("advice"),
            sql.expr(finding.setting).cast("string").alias("setting"),
            sql.expr(finding.saved).cast("bigint").alias("would_have_saved_ms"),
            shown.alias("evidence"),
        ),
        tables.FINDINGS,
    )


def in_bursts(frame: DataFrame, *, by: list[str], at: str, gap_ms: int) -> DataFrame:
    """Rows that follow one another within `gap_ms` have the same `burst`."""
    order = Window.partitionBy(*by).orderBy(at)
    apart = sql.unix_millis(sql.col(at)) - sql.unix_millis(sql.lag(at).over(order))
    return frame.withColumn("burst", sql.count_if(apart > gap_ms).over(order))


def lasting(evidence: Evidence, least_ms: int) -> DataFrame:
    """Generations that were in force for a while, with `to_at`: what soon passes is no state."""
    order = Window.partitionBy("group_id").orderBy("offset")
    return (
        evidence.generations.withColumn("next_at", sql.lead("at").over(order))
        .where("kind = 'formed'")
        .crossJoin(sql.broadcast(evidence.until))
        .withColumn("to_at", sql.expr("coalesce(next_at, until)"))
        .where(f"unix_millis(to_at) - unix_millis(at) >= {least_ms}")
    )
