"""Rebalances from the events of a Kohort node; nothing is inferred.

Each ended rebalance has one event. A rebalance with only a start event is in progress, or, if
another one follows, was cut off by a broker stop and is called abandoned.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

_KEY = "coalesce(concat('instance ', p.party.instance_id), p.party.member_id)"


def exact(group_events: DataFrame) -> DataFrame:
    return _ended(group_events).unionByName(_unended(group_events), allowMissingColumns=True)


def _ended(events: DataFrame) -> DataFrame:
    by_group = Window.partitionBy("group_id").orderBy("offset")
    ended = (
        events.where("event = 'rebalance-ended'")
        .selectExpr("*", f"transform(participants, p -> {_KEY}) AS keys")
        .withColumn("keys_before", sql.lag("keys").over(by_group))
    )
    return ended.selectExpr(
        "group_id",
        "generation_before",
        "generation",
        "started_at",
        "at AS ended_at",
        "unix_millis(at) - unix_millis(started_at) AS duration_ms",
        "unix_millis(join_ended_at) - unix_millis(started_at) AS join_ms",
        "CASE WHEN ending IN ('stable', 'interrupted') THEN "
        "unix_millis(at) - unix_millis(join_ended_at) END AS sync_ms",
        "ending",
        "trigger",
        "initiator",
        "client_reason",
        "protocol",
        # Before its first generation a group has no members; else the previous event has them.
        "CASE WHEN generation_before <= 0 THEN 0 ELSE size(keys_before) END AS members_before",
        "CASE WHEN ending = 'empty' THEN 0 ELSE size(participants) END AS members_after",
        "transform(CASE WHEN generation_before <= 0 THEN participants WHEN keys_before IS NOT NULL "
        f"THEN filter(participants, p -> NOT array_contains(keys_before, {_KEY})) END, "
        "p -> p.party) AS joined",
        "transform(removals, r -> r.party) AS departed",
        "array_max(transform(filter(participants, p -> p.join_took_ms IS NOT NULL), "
        "p -> named_struct('ms', p.join_took_ms, 'party', p.party))) AS slow",
        "aggregate(participants, 0, (sum, p) -> sum + size(coalesce(p.got, array()))) AS got",
        "aggregate(participants, 0, (sum, p) -> sum + size(array_except("
        "coalesce(p.got, array()), coalesce(p.had, array())))) AS gained",
    )


def _unended(events: DataFrame) -> DataFrame:
    by_group = Window.partitionBy("group_id").orderBy("offset")
    rebalances = events.where("event IN ('rebalance-started', 'rebalance-ended')")
    return (
        rebalances.withColumn("next_event", sql.lead("event").over(by_group))
        .where("event = 'rebalance-started' AND coalesce(next_event, '') != 'rebalance-ended'")
        .selectExpr(
            "group_id",
            "generation AS generation_before",
            "at AS started_at",
            "CASE WHEN next_event IS NOT NULL THEN 'abandoned' END AS ending",
            "trigger",
            "initiator",
            "client_reason",
        )
    )
