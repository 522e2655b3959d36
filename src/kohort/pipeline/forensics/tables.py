"""The tables and their columns, once and for all: names here are what users query, so they stay.

Bronze is what came, as it came. Silver is what it says. Gold is what it means. Every time is a
TIMESTAMP in UTC; every duration says its unit in its name; a partition is always the pair of topic
and number. Pure: types are written in Spark's own words for them.
"""

from enum import StrEnum
from typing import Final

from kohort.types import value


class Layer(StrEnum):
    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


@value
class Column:
    name: str
    type: str
    """As Spark's DDL has it."""
    meaning: str


@value
class Table:
    layer: Layer
    name: str
    meaning: str
    columns: tuple[Column, ...]

    @property
    def ddl(self) -> str:
        return ", ".join(f"`{each.name}` {each.type}" for each in self.columns)


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=type_, meaning=meaning) for name, type_, meaning in rows)


_PARTITION: Final = "STRUCT<topic: STRING, partition: INT>"

_MEMBER: Final = (
    "STRUCT<member_id: STRING, instance_id: STRING, client_id: STRING, client_host: STRING, "
    "rebalance_timeout_ms: INT, session_timeout_ms: INT, topics: ARRAY<STRING>, "
    f"owned: ARRAY<{_PARTITION}>, assigned: ARRAY<{_PARTITION}>>"
)

_PARTY: Final = (
    "STRUCT<member_id: STRING, instance_id: STRING, client_id: STRING, client_host: STRING>"
)

_PARTICIPANT: Final = (
    f"STRUCT<party: {_PARTY}, join_took_ms: BIGINT, sync_took_ms: BIGINT, "
    f"had: ARRAY<{_PARTITION}>, got: ARRAY<{_PARTITION}>>"
)

_REMOVAL: Final = f"STRUCT<party: {_PARTY}, departure: STRING>"


RECORDS: Final = Table(
    layer=Layer.BRONZE,
    name="records",
    meaning="The records of both topics as they came; kept, while the topic itself is compacted.",
    columns=_columns(
        ("topic", "STRING", "`__consumer_offsets` or `__kohort_events`"),
        ("partition", "INT", "of that topic"),
        ("offset", "BIGINT", "within the partition; with it, a record's name"),
        ("timestamp", "TIMESTAMP", "of the record"),
        ("key", "BINARY", "as it came"),
        ("value", "BINARY", "as it came; null is a tombstone"),
    ),
)

ENDS: Final = Table(
    layer=Layer.BRONZE,
    name="ends",
    meaning="Where the logs of all read partitions ended, looked at while the topic was read.",
    columns=_columns(
        ("at", "TIMESTAMP", "when it was looked at"),
        ("topic", "STRING", "a topic that some group commits offsets of"),
        ("partition", "INT", "of that topic"),
        ("log_start", "BIGINT", "the offset of its oldest record"),
        ("log_end", "BIGINT", "the offset its next record will have"),
    ),
)

UNDECODABLE: Final = Table(
    layer=Layer.SILVER,
    name="undecodable",
    meaning="Records nobody could make sense of, set aside, with the reason.",
    columns=_columns(
        ("topic", "STRING", "where it is"),
        ("partition", "INT", "where it is"),
        ("offset", "BIGINT", "where it is"),
        ("timestamp", "TIMESTAMP", "of the record"),
        ("key", "BINARY", "as it came"),
        ("value", "BINARY", "as it came"),
        ("reason", "STRING", "what is wrong with it"),
    ),
)

GENERATIONS: Final = Table(
    layer=Layer.SILVER,
    name="generations",
    meaning="What the coordinator kept of a group, each time it kept it.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("generation", "INT", "its number; the same one again where a static member restarted"),
        ("at", "TIMESTAMP", "when it was kept"),
        ("partition", "INT", "of `__consumer_offsets`"),
        ("offset", "BIGINT", "of the record; orders all that happened to a group"),
        ("kind", "STRING", "formed, emptied (nobody is left) or deleted (the group is gone)"),
        ("protocol_type", "STRING", "consumer for consumers"),
        ("protocol", "STRING", "the assignor everyone agreed on"),
        ("leader", "STRING", "the member id of whoever assigned"),
        ("members", f"ARRAY<{_MEMBER}>", "everyone, with what they wanted and what they got"),
    ),
)

MEMBERSHIPS: Final = Table(
    layer=Layer.SILVER,
    name="memberships",
    meaning="Each member from its first generation to its end.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("member_id", "STRING", "the member"),
        ("instance_id", "STRING", "of a static member"),
        ("client_id", "STRING", "what the program calls itself"),
        ("client_host", "STRING", "where it runs"),
        ("from_generation", "INT", "the first one it was in"),
        ("to_generation", "INT", "the last one it was in"),
        ("from_at", "TIMESTAMP", "when the first one was kept; earlier, if an event says so"),
        ("to_at", "TIMESTAMP", "when it was out; null while it is a member"),
        (
            "ending",
            "STRING",
            "a departure as in events, replaced (a static member restarted), gone, or null",
        ),
        ("is_exact", "BOOLEAN", "whether an event says so"),
    ),
)

OWNERSHIP: Final = Table(
    layer=Layer.SILVER,
    name="ownership",
    meaning="Who held which partition, from when to when.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("topic", "STRING", "of the partition"),
        ("partition", "INT", "of the partition"),
        ("member_id", "STRING", "its owner"),
        ("instance_id", "STRING", "of its owner"),
        ("client_id", "STRING", "of its owner"),
        ("from_generation", "INT", "in which it got it"),
        ("to_generation", "INT", "the last one in which it held it"),
        ("from_at", "TIMESTAMP", "when it got it"),
        ("to_at", "TIMESTAMP", "when it lost it; null while it holds it"),
        ("gap_before_ms", "BIGINT", "without any owner before; null for the first one"),
    ),
)

COMMITS: Final = Table(
    layer=Layer.SILVER,
    name="commits",
    meaning="Every committed offset, and every one that was removed or expired.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("topic", "STRING", "of the partition"),
        ("partition", "INT", "of the partition"),
        ("at", "TIMESTAMP", "when it was committed; of a tombstone, the record's time"),
        ("log_partition", "INT", "of `__consumer_offsets`"),
        ("log_offset", "BIGINT", "of the record there"),
        ("is_removed", "BOOLEAN", "whether this is the end of an offset, not a new one"),
        ("committed", "BIGINT", "the offset; null if removed"),
        ("step", "BIGINT", "from the one before; null for the first one, negative for a rewind"),
        ("leader_epoch", "INT", "-1 where there was none"),
        ("metadata", "STRING", "what the program wrote beside it"),
        ("owner", "STRING", "the member id that held the partition then; null if nobody did"),
        ("generation", "INT", "of the group at that time; null if there was none"),
    ),
)

STINTS: Final = Table(
    layer=Layer.SILVER,
    name="stints",
    meaning="What one member committed of one partition in one generation; commits in short.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("generation", "INT", "of the group at that time; null if there was none"),
        ("owner", "STRING", "the member id that held the partition; null if nobody did"),
        ("topic", "STRING", "of the partition"),
        ("partition", "INT", "of the partition"),
        ("commits", "BIGINT", "how many there are, removals aside"),
        ("first_at", "TIMESTAMP", "of the first commit"),
        ("last_at", "TIMESTAMP", "of the last commit"),
        ("first_committed", "BIGINT", "the offset of the first one"),
        ("last_committed", "BIGINT", "the offset of the last one"),
        ("last_log_offset", "BIGINT", "of the last one's record in `__consumer_offsets`"),
        ("removals", "BIGINT", "how often its offset was removed or expired"),
        ("rewinds", "BIGINT", "commits below the one before"),
        ("rewinds_to_zero", "BIGINT", "those of them that went to the very beginning"),
        ("rewound", "BIGINT", "by how many records in all"),
        ("rewound_most", "BIGINT", "by how many at once; null if never"),
        ("first_rewind_at", "TIMESTAMP", "null if never"),
        ("last_rewind_at", "TIMESTAMP", "null if never"),
    ),
)

GROUP_EVENTS: Final = Table(
    layer=Layer.SILVER,
    name="group_events",
    meaning="What Kohort itself noted about its groups. Empty for any other broker.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("at", "TIMESTAMP", "when the coordinator noticed"),
        ("partition", "INT", "of `__kohort_events`"),
        ("offset", "BIGINT", "of the record, or of its first part"),
        ("event", "STRING", "which one, as in the page on events"),
        ("generation", "INT", "where the event has one"),
        ("generation_before", "INT", "where the event has one"),
        ("trigger", "STRING", "where the event has one"),
        ("ending", "STRING", "where the event has one"),
        ("culprit", _PARTY, "who made it begin"),
        ("party", _PARTY, "whom it is about"),
        ("client_reason", "STRING", "what the client gave as its reason"),
        ("departure", "STRING", "how a membership ended"),
        ("state_before", "STRING", "where the event has one"),
        ("started_at", "TIMESTAMP", "of a rebalance that ended"),
        ("join_ended_at", "TIMESTAMP", "of a rebalance that ended"),
        ("join_ended_by", "STRING", "of a rebalance that ended"),
        ("protocol", "STRING", "of a rebalance that ended"),
        ("leader", "STRING", "of a rebalance that ended"),
        ("participants", f"ARRAY<{_PARTICIPANT}>", "of a rebalance that ended"),
        ("removals", f"ARRAY<{_REMOVAL}>", "of a rebalance that ended"),
        ("body", "STRING", "the whole event as JSON, its parts put together"),
    ),
)

REBALANCES: Final = Table(
    layer=Layer.GOLD,
    name="rebalances",
    meaning="One row for each rebalance: who started it, how long it took, what it cost.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("generation_before", "INT", "which it ended; null for the first"),
        ("generation", "INT", "which it led to"),
        (
            "started_at",
            "TIMESTAMP",
            "exact from events; else the last sign of the generation before",
        ),
        ("ended_at", "TIMESTAMP", "when the new generation was kept"),
        ("duration_ms", "BIGINT", "between the two; null where the start is not known"),
        ("join_ms", "BIGINT", "waiting for members to join; null without events"),
        ("sync_ms", "BIGINT", "waiting for the leader's assignment; null without events"),
        ("ending", "STRING", "stable, empty, interrupted or abandoned"),
        ("trigger", "STRING", "what made it begin, from the triggers of the page on events"),
        ("culprit", _PARTY, "who made it begin; null where nobody did or it cannot be known"),
        ("client_reason", "STRING", "what the client gave as its reason; null without events"),
        ("confidence", "DOUBLE", "1.0 where an event says so; else how sure the inference is"),
        ("is_exact", "BOOLEAN", "whether events say so"),
        ("protocol", "STRING", "the assignor"),
        ("is_cooperative", "BOOLEAN", "whether members kept their partitions meanwhile"),
        ("members_before", "INT", "in the generation it ended"),
        ("members_after", "INT", "in the generation it led to"),
        ("joined", f"ARRAY<{_PARTY}>", "who is new"),
        ("departed", f"ARRAY<{_PARTY}>", "who is gone"),
        ("slowest", _PARTY, "who was waited for longest; null without events"),
        ("slowest_join_ms", "BIGINT", "how long it was waited for"),
        ("partitions", "INT", "owned after it"),
        ("moved", "INT", "partitions whose owner is another one than before"),
        ("moved_needlessly", "INT", "those a stickiest assignment would have left where they were"),
        ("ownerless_partition_ms", "BIGINT", "the sum of all gaps between two owners"),
        (
            "replayed",
            "BIGINT",
            "records read again because their commit was not kept; null: unknown",
        ),
    ),
)

GROUP_HEALTH: Final = Table(
    layer=Layer.GOLD,
    name="group_health",
    meaning="How a group did, window by window.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("window_start", "TIMESTAMP", "inclusive"),
        ("window_end", "TIMESTAMP", "exclusive"),
        ("rebalances", "INT", "that ended in it"),
        ("rebalances_per_hour", "DOUBLE", "as a rate"),
        ("rebalancing_ms", "BIGINT", "spent between generations"),
        ("rebalancing_share", "DOUBLE", "of the window, 0 to 1"),
        ("flapping_members", "INT", "clients that came or went at least three times in it"),
        ("members_max", "INT", "of all generations in it"),
        ("imbalance", "DOUBLE", "most partitions of a member over the mean, at the window's end"),
        ("stickiness", "DOUBLE", "share of partitions that stayed, over its rebalances; 1 if none"),
    ),
)

LAG: Final = Table(
    layer=Layer.GOLD,
    name="lag",
    meaning="How far behind, at every commit and every look at the logs' ends.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("topic", "STRING", "of the partition"),
        ("partition", "INT", "of the partition"),
        ("at", "TIMESTAMP", "of the commit, or of the look"),
        ("log_offset", "BIGINT", "of the commit in `__consumer_offsets`; null for a look"),
        ("committed", "BIGINT", "the offset that held then; null where it was just removed"),
        ("log_end", "BIGINT", "as last seen before; null where it is not known"),
        ("lag_records", "BIGINT", "the difference, never negative; null where it is not known"),
        ("lag_seconds", "DOUBLE", "since the log's end was where the commit is; null: not known"),
    ),
)

LAG_STATUS: Final = Table(
    layer=Layer.GOLD,
    name="lag_status",
    meaning="One word for each partition, without a threshold; groups that are deleted are gone.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("topic", "STRING", "of the partition"),
        ("partition", "INT", "of the partition"),
        ("status", "STRING", "ok, warning, stalled, stopped or rewound"),
        ("since", "TIMESTAMP", "the first commit or look of the run that shows it"),
        ("committed", "BIGINT", "the last one"),
        ("log_end", "BIGINT", "the last one seen; null where it is not known"),
        ("lag_records", "BIGINT", "the last one known"),
        ("owner", "STRING", "the member id that holds it; null if nobody does"),
        ("reason", "STRING", "in plain words"),
    ),
)

GROUPS: Final = Table(
    layer=Layer.GOLD,
    name="groups",
    meaning="Every group that anything is known of, be it that it once committed an offset.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("from_at", "TIMESTAMP", "the first that is known of it"),
        ("to_at", "TIMESTAMP", "the last, looks at its partitions' ends included"),
        ("generations", "BIGINT", "rows about it in `generations`"),
        ("rebalances", "BIGINT", "rows about it in `rebalances`"),
        ("commits", "BIGINT", "rows about it in `commits`"),
        ("events", "BIGINT", "rows about it in `group_events`"),
    ),
)

FINDINGS: Final = Table(
    layer=Layer.GOLD,
    name="findings",
    meaning="Named patterns, each with its evidence and what to change.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("finding", "STRING", "its name"),
        ("severity", "STRING", "critical, warning or notice"),
        ("subject", "STRING", "the member, client or topic it is about; null for the whole group"),
        ("from_at", "TIMESTAMP", "when it began"),
        ("to_at", "TIMESTAMP", "when it was last seen"),
        ("count", "INT", "how often it was seen"),
        ("what", "STRING", "what happened, in plain words with figures"),
        ("advice", "STRING", "what to do about it"),
        ("setting", "STRING", "the setting to change and its value; null where there is none"),
        ("would_have_saved_ms", "BIGINT", "partition-time without an owner; null: no estimate"),
        ("evidence", "STRING", "JSON: generations, times and members that show it"),
    ),
)

TABLES: Final = (
    RECORDS,
    ENDS,
    UNDECODABLE,
    GENERATIONS,
    MEMBERSHIPS,
    OWNERSHIP,
    COMMITS,
    STINTS,
    GROUP_EVENTS,
    REBALANCES,
    GROUP_HEALTH,
    LAG,
    LAG_STATUS,
    GROUPS,
    FINDINGS,
)
