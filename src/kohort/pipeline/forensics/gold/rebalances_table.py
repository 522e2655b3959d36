"""One row for each rebalance: who started it, how long it took, what it cost.

If events record a rebalance, all values come from them, except the moved partitions, which only the
stored generations show. Without events, each pair of successive generations is one rebalance, even
if others were interrupted in between, and its cause is inferred.

The time without owner is the sum of the ownership gaps that the rebalance ended. For a group that
was empty, only the part within the rebalance counts. Without events it is unknown when members with
an eager assignor stopped: the partitions of the remaining members count from their owner's last
commit. That is an estimate, and `is_exact` is false. Gaps of cooperative assignors are in the
generations.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.gold.causes import causes
from kohort.pipeline.forensics.gold.departure_inference import departures, last_activity
from kohort.pipeline.forensics.gold.generation_pairs import pairs
from kohort.pipeline.forensics.gold.move_counts import moves
from kohort.pipeline.forensics.gold.rebalances_from_events import exact
from kohort.pipeline.forensics.store import conform

SAME_MS = 10_000
"""The largest difference between the timestamps of an event and of its group record."""

_KEYS = ("group_id", "generation", "ending", "ended_at")


def build(
    *,
    generations: DataFrame,
    ownership: DataFrame,
    commit_runs: DataFrame,
    group_events: DataFrame,
) -> DataFrame:
    recorded, inferred = (
        exact(group_events),
        infer(generations=generations, ownership=ownership, commit_runs=commit_runs),
    )
    is_same = (
        (recorded.group_id == inferred.group_id)
        & (recorded.generation == inferred.generation)
        & recorded.ending.isin("stable", "empty")
        & (
            sql.abs(sql.unix_millis(recorded.ended_at) - sql.unix_millis(inferred.ended_at))
            <= SAME_MS
        )
    )
    both = recorded.select(*_KEYS, sql.struct("*").alias("t")).join(
        inferred.select(*_KEYS, sql.struct("*").alias("i")), is_same, "full"
    )
    return conform(both.selectExpr(*_chosen()), tables.REBALANCES)


def _chosen() -> list[str]:
    """The values of the event if there is one, also its nulls."""
    either = {
        name: f"CASE WHEN t IS NOT NULL THEN t.{name} ELSE i.{name} END"
        for name in (
            *("group_id", "generation_before", "generation", "started_at", "ended_at"),
            *("duration_ms", "ending", "trigger", "initiator", "protocol", "members_after"),
            "departed",
        )
    }
    from_events = {name: f"t.{name}" for name in ("join_ms", "sync_ms", "client_reason")}
    is_kept = "coalesce(t.ending = 'stable', t IS NULL)"
    chosen = {
        **either,
        **from_events,
        "confidence": "CASE WHEN t IS NOT NULL THEN 1.0D ELSE i.confidence END",
        "is_exact": "t IS NOT NULL",
        "is_cooperative": "coalesce(i.is_cooperative, "
        "lower(t.protocol) LIKE '%cooperative%' OR t.protocol = 'stream')",
        # If the events start in the middle, the generations show the previous members.
        "members_before": "coalesce(t.members_before, i.members_before)",
        "joined": "coalesce(t.joined, i.joined)",
        "slowest": "t.slow.party",
        "slowest_join_ms": "t.slow.ms",
        "partitions": f"CASE WHEN {is_kept} THEN coalesce(int(i.partitions), t.got) END",
        # If the generation is no longer stored, only the gained partitions are known.
        "moved": f"CASE WHEN NOT {is_kept} THEN 0 WHEN i IS NOT NULL THEN int(i.moved) "
        "WHEN t.members_before = 0 THEN 0 ELSE t.gained END",
        "moved_needlessly": f"CASE WHEN {is_kept} THEN int(i.moved_needlessly) ELSE 0 END",
        "ownerless_partition_ms": f"CASE WHEN NOT {is_kept} THEN 0L WHEN t IS NULL THEN i.estimate "
        "WHEN t.members_before = 0 THEN least(coalesce(i.gap_ms, 0L), t.duration_ms * t.got) "
        "ELSE coalesce(i.gap_ms, 0L) END",
        "replayed": "i.replayed",
    }
    return [f"{expression} AS {name}" for name, expression in chosen.items()]


def infer(*, generations: DataFrame, ownership: DataFrame, commit_runs: DataFrame) -> DataFrame:
    """The rebalances without events; the column `rule` is for measuring the accuracy."""
    paired = pairs(generations)
    keys = ["group_id", "deletions", "seq"]
    all_of_it = (
        causes(paired, departures(paired, last_activity(commit_runs)))
        .join(moves(paired, commit_runs), keys, "left")
        .join(_gaps(paired, ownership), keys, "left")
    )
    longest = "aggregate(before.members, 0L, (most, m) -> greatest(most, m.rebalance_timeout_ms))"
    return (
        all_of_it.selectExpr(
            "*",
            # Joins and syncs end with the longest rebalance timeout: an older commit is unrelated.
            f"CASE WHEN unix_millis(after.at) - unix_millis(last_seen) <= 2 * {longest} "
            "THEN least(last_seen, after.at) END AS started_at",
            f"{_is_cooperative('after')} AS is_cooperative",
        )
        .selectExpr(
            "group_id",
            "before.generation AS generation_before",
            "after.generation AS generation",
            "started_at",
            "after.at AS ended_at",
            "unix_millis(after.at) - unix_millis(started_at) AS duration_ms",
            "CASE WHEN after.kind = 'emptied' THEN 'empty' ELSE 'stable' END AS ending",
            "trigger",
            "initiator",
            "confidence",
            "rule",
            "exits",
            "false AS is_exact",
            "coalesce(after.protocol, before.protocol) AS protocol",
            "is_cooperative",
            "members_before",
            "members_after",
            "joined",
            "departed",
            "coalesce(partitions, 0L) AS partitions",
            "coalesce(moved, 0L) AS moved",
            f"CASE WHEN {_IS_EVEN} THEN greatest(coalesce(moved - necessary, 0L), 0L) END"
            " AS moved_needlessly",
            "gap_ms",
            "idle_ms",
            "replayed",
        )
        .withColumn("estimate", sql.expr(_ESTIMATE))
    )


_IS_EVEN = (
    "(size(array_distinct(transform(after.members, m -> array_sort(m.topics)))) <= 1"
    " AND forall(after.members, m -> m.topics IS NOT NULL))"
)

_ESTIMATE = """
    CASE WHEN ending = 'empty' OR members_before = 0 THEN 0L
         WHEN members_before IS NULL OR is_cooperative THEN coalesce(gap_ms, 0L)
         ELSE coalesce(gap_ms, 0L) + idle_ms END
"""


def _is_cooperative(generation: str) -> str:
    """By the name of the assignor; if it is unknown, by whether members keep partitions."""
    protocol = f"lower(coalesce({generation}.protocol, before.protocol))"
    return (
        f"CASE WHEN {protocol} LIKE '%cooperative%' OR {protocol} = 'stream' THEN true "
        f"WHEN {protocol} IN ('range', 'roundrobin', 'sticky') THEN false "
        f"ELSE exists({generation}.members, m -> size(m.owned) > 0) END"
    )


def _gaps(paired: DataFrame, ownership: DataFrame) -> DataFrame:
    gaps = ownership.groupBy("group_id", "from_generation", "from_at").agg(
        sql.sum("gap_before_ms").alias("gap_ms")
    )
    ended = paired.selectExpr(
        "group_id", "deletions", "seq", "after.generation AS from_generation", "after.at", "next_at"
    )
    return (
        ended.join(gaps, ["group_id", "from_generation"])
        .where("from_at >= at AND (next_at IS NULL OR from_at < next_at)")
        .groupBy("group_id", "deletions", "seq")
        .agg(sql.sum("gap_ms").alias("gap_ms"))
    )
