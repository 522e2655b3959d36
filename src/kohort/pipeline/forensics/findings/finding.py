"""The rule of a finding: its query over the evidence, its severity and its texts."""

from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.sql_text import format_text
from kohort.pipeline.forensics.store import conform
from kohort.types import value

WHO: Final = "coalesce(party.instance_id, concat(party.client_id, ' at ', party.client_host))"
"""SQL: a name of the client that does not change with its member id."""


@value
class Evidence:
    """The tables that rules query."""

    generations: DataFrame
    memberships: DataFrame
    commits: DataFrame
    """Millions of rows: use `commit_runs` if possible, else filter by partition first."""
    commit_runs: DataFrame
    ends: DataFrame
    group_events: DataFrame
    rebalances: DataFrame
    lag_status: DataFrame
    groups: DataFrame

    @property
    def until(self) -> DataFrame:
        """One row: the last timestamp of the history."""
        known = self.groups.select("to_at").union(self.ends.select("at"))
        return known.agg(sql.max("to_at").alias("until"))


@value
class FindingRule:
    name: str
    meaning: str
    find: Callable[[Evidence], DataFrame]
    """Returns rows with group_id, subject, from_at, to_at, count and the columns of the texts."""
    severity: str
    """SQL."""
    what: str
    """A template for `format_text`."""
    advice: str
    """A template for `format_text`: an instruction with the setting and the value."""
    setting: str = "NULL"
    """SQL."""
    saved: str = "NULL"
    """SQL: an estimate in milliseconds."""
    shown: tuple[str, ...] = ()
    """The columns that are copied into the evidence."""


def apply_rule(rule: FindingRule, evidence: Evidence) -> DataFrame:
    """The rows of one finding, with the columns of the findings table."""
    found = rule.find(evidence)
    shown = sql.to_json(sql.struct(*rule.shown)) if rule.shown else sql.lit("{}")
    return conform(
        found.select(
            "group_id",
            sql.lit(rule.name).alias("finding"),
            sql.expr(rule.severity).alias("severity"),
            sql.col("subject").cast("string").alias("subject"),
            "from_at",
            "to_at",
            sql.col("count").cast("int").alias("count"),
            format_text(rule.what).alias("what"),
            format_text(rule.advice).alias("advice"),
            sql.expr(rule.setting).cast("string").alias("setting"),
            sql.expr(rule.saved).cast("bigint").alias("would_have_saved_ms"),
            shown.alias("evidence"),
        ),
        tables.FINDINGS,
    )


def in_bursts(frame: DataFrame, *, by: list[str], at: str, gap_ms: int) -> DataFrame:
    """Add the column `burst`: consecutive rows at most `gap_ms` apart have the same number."""
    order = Window.partitionBy(*by).orderBy(at)
    apart = sql.unix_millis(sql.col(at)) - sql.unix_millis(sql.lag(at).over(order))
    return frame.withColumn("burst", sql.count_if(apart > gap_ms).over(order))


def lasting_generations(evidence: Evidence, least_ms: int) -> DataFrame:
    """Generations that lasted at least `least_ms`, with their end as `to_at`."""
    order = Window.partitionBy("group_id").orderBy("offset")
    return (
        evidence.generations.withColumn("next_at", sql.lead("at").over(order))
        .where("kind = 'formed'")
        .crossJoin(sql.broadcast(evidence.until))
        .withColumn("to_at", sql.expr("coalesce(next_at, until)"))
        .where(f"unix_millis(to_at) - unix_millis(at) >= {least_ms}")
    )
