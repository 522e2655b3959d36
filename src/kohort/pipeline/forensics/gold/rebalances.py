"""One row for each rebalance: who started it, how long it took, what it cost.

Where events tell of a rebalance they are believed in everything but what only the kept generations
know: which partitions moved. Where there are none, each pair of successive generations is one
rebalance, however many others came to nothing in between, and its cause is inferred.

The time without an owner is the sum of silver's gaps that the rebalance ended. While a group
stands empty nobody is kept waiting: only the part within the rebalance counts then. Without events
nobody knows when members of an eager protocol stopped. There, the partitions of those who stayed
are taken to have been without an owner since their owner's last sign, which is an estimate, as
`is_exact` tells; cooperative gaps show in the generations themselves.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.gold.causes import causes
from kohort.pipeline.forensics.gold.exact import exact
from kohort.pipeline.forensics.gold.moves import moves
from kohort.pipeline.forensics.gold.pairs import pairs
from kohort.pipeline.forensics.gold.signs import signs
from kohort.pipeline.forensics.gold.silences import silences
from kohort.pipeline.forensics.silver.conforming import conform

SAME_MS = 10_000
"""An event and the record it tells of are written one after the other; by then both are."""

_KEYS = ("group_id", "generation", "ending", "ended_at")


def build(
    *,
    generations: DataFrame,
    ownership: DataFrame,
    stints: DataFrame,
    group_events: DataFrame,
) -> DataFrame:
    told, inferred = (
        exact(group_events),
        infer(generations=generations, ownership=ownership, stints=stints),
    )
    is_same = (
        (told.group_id == inferred.group_id)
        & (told.generation == inferred.generation)
        & told.ending.isin("stable", "empty")
        & (sql.abs(sql.unix_millis(told.ended_at) - sql.unix_millis(inferred.ended_at)) <= SAME_MS)
    )
    both = told.select(*_KEYS, sql.struct("*").alias("t")).join(
        inferred.select(*_KEYS, sql.struct("*").alias("i")), is_same, "full"
    )
    return conform(both.selectExpr(*_chosen()), tables.REBALANCES)


def _chosen() -> list[str]:
    """What events say where they say anything, be it that something is not known."""
    either = {
        name: f"CASE WHEN t IS NOT NULL THEN t.{name} ELSE i.{name} END"
        for name in (
            *("group_id", "generation_before", "generation", "started_at", "ended_at"),
            *("duration_ms", "ending", "trigger", "culprit", "protocol", "members_after"),
            "departed",
        )
    }
    told = {name: f"t.{name}" for name in ("join_ms", "sync_ms", "client_reason")}
    is_kept = "coalesce(t.ending = 'stable', t IS NULL)"
    chosen = {
        **either,
        **told,
        "confidence": "CASE WHEN t IS NOT NULL THEN 1.0D ELSE i.confidence END",
        "is_exact": "t IS NOT NULL",
        "is_cooperative": "coalesce(i.is_cooperative, "
        "lower(t.protocol) LIKE '%cooperative%' OR t.protocol = 'stream')",
        # Where events begin in the middle, the generations know who was there before.
        "members_before": "coalesce(t.members_before, i.members_before)",
        "joined": "coalesce(t.joined, i.joined)",
        "slowest": "t.slow.party",
        "slowest_join_ms": "t.slow.ms",
        "partitions": f"CASE WHEN {is_kept} THEN coalesce(int(i.partitions), t.got) END",
        # Where the generation is not kept any more, what members gained is all that is known.
        "moved": f"CASE WHEN NOT {is_kept} THEN 0 WHEN i IS NOT NULL THEN int(i.moved) "
        "WHEN t.members_before = 0 THEN 0 ELSE t.gained END",
        "moved_needlessly": f"CASE WHEN {is_kept} THEN int(i.moved_needlessly) ELSE 0 END",
        "ownerless_partition_ms": f"CASE WHEN NOT {is_kept} THEN 0L WHEN t IS NULL THEN i.estimate "
        "WHEN t.members_before = 0 THEN least(coalesce(i.gap_ms, 0L), t.duration_ms * t.got) "
        "ELSE coalesce(i.gap_ms, 0L) END",
        "replayed": "i.replayed",
    }
    return [f"{expression} AS {name}" for name, expression in chosen.items()]


def infer(*, generations: DataFrame, ownership: DataFrame, stints: DataFrame) -> DataFrame:
    """What can be said without events. Has the rule that gave the trigger, for whoever measures."""
    paired = pairs(generations)
    keys = ["group_id", "era", "seq"]
    all_of_it = (
        causes(paired, silences(paired, signs(stints)))
        .join(moves(paired, stints), keys, "left")
        .join(_gaps(paired, ownership), keys, "left")
    )
    longest = "aggregate(before.members, 0L, (most, m) -> greatest(most, m.rebalance_timeout_ms))"
    return (
        all_of_it.selectExpr(
            "*",
            # Joins and syncs end with the longest rebalance timeout: what is older was no sign.
            f"CASE WHEN unix_millis(after.at) - unix_millis(last_sign) <= 2 * {longest} "
            "THEN least(last_sign, after.at) END AS started_at",
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
            "culprit",
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
    """By the assignor's name; one that is not known is judged by whether its members keep any."""
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
        "group_id", "era", "seq", "after.generation AS from_generation", "after.at", "next_at"
    )
    return (
        ended.join(gaps, ["group_id", "from_generation"])
        .where("from_at >= at AND (next_at IS NULL OR from_at < next_at)")
        .groupBy("group_id", "era", "seq")
        .agg(sql.sum("gap_ms").alias("gap_ms"))
    )
