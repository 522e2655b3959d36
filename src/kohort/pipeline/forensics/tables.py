"""The tables and their columns. Users query these names, so they are stable.

Bronze has the raw records, silver the decoded ones, gold the results. Every time is a TIMESTAMP in
UTC, and every duration has its unit in its name. A partition is always the pair of topic and
number. Pure: types are written as Spark DDL.
"""

from enum import StrEnum
from typing import Final

from kohort.types import value


class Layer(StrEnum):
    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


@value
class ColumnSpec:
    name: str
    type: str
    """Spark DDL."""
    meaning: str


@value
class TableSpec:
    layer: Layer
    name: str
    meaning: str
    columns: tuple[ColumnSpec, ...]

    @property
    def ddl(self) -> str:
        return ", ".join(f"`{each.name}` {each.type}" for each in self.columns)


def _columns(*rows: tuple[str, str, str]) -> tuple[ColumnSpec, ...]:
    return tuple(
        ColumnSpec(name=name, type=type_, meaning=meaning) for name, type_, meaning in rows
    )


_PARTITION: Final = "STRUCT<topic: STRING, partition: INT>"

_MEMBER: Final = (
    "STRUCT<member_id: STRING, instance_id: STRING, client_id: STRING, client_host: STRING, "
    "rebalance_timeout_ms: INT, session_timeout_ms: INT, topics: ARRAY<STRING>, "
    f"owned: ARRAY<{_PARTITION}>, assigned: ARRAY<{_PARTITION}>>"
)

_IDENTITY: Final = (
    "STRUCT<member_id: STRING, instance_id: STRING, client_id: STRING, client_host: STRING>"
)

_PARTICIPANT: Final = (
    f"STRUCT<party: {_IDENTITY}, join_took_ms: BIGINT, sync_took_ms: BIGINT, "
    f"had: ARRAY<{_PARTITION}>, got: ARRAY<{_PARTITION}>>"
)

_REMOVAL: Final = f"STRUCT<party: {_IDENTITY}, departure: STRING>"


RECORDS: Final = TableSpec(
    layer=Layer.BRONZE,
    name="records",
    meaning="The raw records of both topics; append-only, while the topic itself is compacted.",
    columns=_columns(
        ("topic", "STRING", "`__consumer_offsets` or `__kohort_events`"),
        ("partition", "INT", "of that topic"),
        ("offset", "BIGINT", "in the partition; topic, partition and offset identify a record"),
        ("timestamp", "TIMESTAMP", "of the record"),
        ("key", "BINARY", "raw bytes"),
        ("value", "BINARY", "raw bytes; null is a tombstone"),
    ),
)

ENDS: Final = TableSpec(
    layer=Layer.BRONZE,
    name="ends",
    meaning="The start and end offsets of all consumed partitions, read at regular intervals.",
    columns=_columns(
        ("at", "TIMESTAMP", "when the offsets were read"),
        ("topic", "STRING", "a consumed topic"),
        ("partition", "INT", "of that topic"),
        ("log_start", "BIGINT", "the log start offset"),
        ("log_end", "BIGINT", "the log end offset"),
    ),
)

UNDECODABLE: Final = TableSpec(
    layer=Layer.SILVER,
    name="undecodable",
    meaning="Records that could not be decoded, with the reason.",
    columns=_columns(
        ("topic", "STRING", "of the record"),
        ("partition", "INT", "of the record"),
        ("offset", "BIGINT", "of the record"),
        ("timestamp", "TIMESTAMP", "of the record"),
        ("key", "BINARY", "raw bytes"),
        ("value", "BINARY", "raw bytes"),
        ("reason", "STRING", "the decoding error"),
    ),
)

GENERATIONS: Final = TableSpec(
    layer=Layer.SILVER,
    name="generations",
    meaning="Every record of group metadata that the coordinator stored.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("generation", "INT", "its number; repeated if a static member restarted"),
        ("at", "TIMESTAMP", "when it was stored"),
        ("partition", "INT", "of `__consumer_offsets`"),
        ("offset", "BIGINT", "of the record; the order of all records of a group"),
        ("kind", "STRING", "formed, emptied (no members) or deleted (group deleted)"),
        ("protocol_type", "STRING", "`consumer` for consumers"),
        ("protocol", "STRING", "the assignor"),
        ("leader", "STRING", "the member id of the leader"),
        ("members", f"ARRAY<{_MEMBER}>", "all members, with subscription and assignment"),
    ),
)

MEMBERSHIPS: Final = TableSpec(
    layer=Layer.SILVER,
    name="memberships",
    meaning="Each member from its first generation to its departure.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("member_id", "STRING", "the member"),
        ("instance_id", "STRING", "`group.instance.id` of a static member"),
        ("client_id", "STRING", "`client.id`"),
        ("client_host", "STRING", "the host of the client"),
        ("from_generation", "INT", "its first generation"),
        ("to_generation", "INT", "its last generation"),
        ("from_at", "TIMESTAMP", "when it joined (events), or its first generation was stored"),
        ("to_at", "TIMESTAMP", "when it left; null while it is a member"),
        (
            "ending",
            "STRING",
            "a departure as in events, replaced (a static member restarted), gone, or null",
        ),
        ("is_exact", "BOOLEAN", "whether the departure is from an event"),
    ),
)

OWNERSHIP: Final = TableSpec(
    layer=Layer.SILVER,
    name="ownership",
    meaning="The owner of each partition over time.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("topic", "STRING", "of the partition"),
        ("partition", "INT", "of the partition"),
        ("member_id", "STRING", "its owner"),
        ("instance_id", "STRING", "of its owner"),
        ("client_id", "STRING", "of its owner"),
        ("from_generation", "INT", "the first generation of this owner"),
        ("to_generation", "INT", "the last generation of this owner"),
        ("from_at", "TIMESTAMP", "when the ownership started"),
        ("to_at", "TIMESTAMP", "when it ended; null while it lasts"),
        ("gap_before_ms", "BIGINT", "time without owner before; null for the first owner"),
    ),
)

COMMITS: Final = TableSpec(
    layer=Layer.SILVER,
    name="commits",
    meaning="Every committed offset, and every offset that was removed or expired.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("topic", "STRING", "of the partition"),
        ("partition", "INT", "of the partition"),
        ("at", "TIMESTAMP", "the commit timestamp; of a tombstone, the record timestamp"),
        ("log_partition", "INT", "of `__consumer_offsets`"),
        ("log_offset", "BIGINT", "of the record there"),
        ("is_removed", "BOOLEAN", "whether the record is a tombstone"),
        ("committed", "BIGINT", "the committed offset; null if removed"),
        ("step", "BIGINT", "minus the previous offset; null for the first, negative for a rewind"),
        ("leader_epoch", "INT", "-1 if there is none"),
        ("metadata", "STRING", "the commit metadata"),
        ("owner", "STRING", "the member id that owned the partition then; null if there was none"),
        ("generation", "INT", "of the group at that time; null if there was none"),
    ),
)

COMMIT_RUNS: Final = TableSpec(
    layer=Layer.SILVER,
    name="commit_runs",
    meaning="The commits of one member, partition and generation, summarised.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("generation", "INT", "of the group at that time; null if there was none"),
        ("owner", "STRING", "the member id that owned the partition; null if there was none"),
        ("topic", "STRING", "of the partition"),
        ("partition", "INT", "of the partition"),
        ("commits", "BIGINT", "number of commits, without removals"),
        ("first_at", "TIMESTAMP", "of the first commit"),
        ("last_at", "TIMESTAMP", "of the last commit"),
        ("first_committed", "BIGINT", "the first committed offset"),
        ("last_committed", "BIGINT", "the last committed offset"),
        ("last_log_offset", "BIGINT", "offset of the last commit record in `__consumer_offsets`"),
        ("removals", "BIGINT", "number of times the offset was removed or expired"),
        ("rewinds", "BIGINT", "number of commits below the previous one"),
        ("rewinds_to_zero", "BIGINT", "number of rewinds to offset 0"),
        ("rewound", "BIGINT", "sum of all rewinds, in records"),
        ("rewound_most", "BIGINT", "the largest rewind, in records; null if there is none"),
        ("first_rewind_at", "TIMESTAMP", "null if there is none"),
        ("last_rewind_at", "TIMESTAMP", "null if there is none"),
    ),
)

GROUP_EVENTS: Final = TableSpec(
    layer=Layer.SILVER,
    name="group_events",
    meaning="The events that Kohort recorded about its groups. Empty for other brokers.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("at", "TIMESTAMP", "the timestamp of the event"),
        ("partition", "INT", "of `__kohort_events`"),
        ("offset", "BIGINT", "of the record, or of its first part"),
        ("event", "STRING", "its name, see the page on events"),
        ("generation", "INT", "if the event has it"),
        ("generation_before", "INT", "if the event has it"),
        ("trigger", "STRING", "if the event has it"),
        ("ending", "STRING", "if the event has it"),
        ("initiator", _IDENTITY, "the member that started the rebalance"),
        ("party", _IDENTITY, "the member that the event is about"),
        ("client_reason", "STRING", "the reason that the client gave"),
        ("departure", "STRING", "how a membership ended"),
        ("state_before", "STRING", "if the event has it"),
        ("started_at", "TIMESTAMP", "of a rebalance that ended"),
        ("join_ended_at", "TIMESTAMP", "of a rebalance that ended"),
        ("join_ended_by", "STRING", "of a rebalance that ended"),
        ("protocol", "STRING", "of a rebalance that ended"),
        ("leader", "STRING", "of a rebalance that ended"),
        ("participants", f"ARRAY<{_PARTICIPANT}>", "of a rebalance that ended"),
        ("removals", f"ARRAY<{_REMOVAL}>", "of a rebalance that ended"),
        ("body", "STRING", "the whole event as JSON"),
    ),
)

REBALANCES: Final = TableSpec(
    layer=Layer.GOLD,
    name="rebalances",
    meaning="One row for each rebalance: who started it, how long it took, what it cost.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("generation_before", "INT", "the generation before it; null for the first"),
        ("generation", "INT", "the generation after it"),
        (
            "started_at",
            "TIMESTAMP",
            "exact from events; else the last commit of the previous generation",
        ),
        ("ended_at", "TIMESTAMP", "when the new generation was stored"),
        ("duration_ms", "BIGINT", "from start to end; null if the start is unknown"),
        ("join_ms", "BIGINT", "duration of the join phase; null without events"),
        ("sync_ms", "BIGINT", "duration of the sync phase; null without events"),
        ("ending", "STRING", "stable, empty, interrupted or abandoned"),
        ("trigger", "STRING", "the cause, one of the triggers of the page on events"),
        ("initiator", _IDENTITY, "the member that started it; null if there is none or unknown"),
        ("client_reason", "STRING", "the reason that the client gave; null without events"),
        ("confidence", "DOUBLE", "1.0 from events; else the confidence of the inference"),
        ("is_exact", "BOOLEAN", "whether the row is from events"),
        ("protocol", "STRING", "the assignor"),
        ("is_cooperative", "BOOLEAN", "whether members kept their partitions during it"),
        ("members_before", "INT", "number of members before"),
        ("members_after", "INT", "number of members after"),
        ("joined", f"ARRAY<{_IDENTITY}>", "new members"),
        ("departed", f"ARRAY<{_IDENTITY}>", "departed members"),
        ("slowest", _IDENTITY, "the last member to join; null without events"),
        ("slowest_join_ms", "BIGINT", "its join time"),
        ("partitions", "INT", "assigned partitions after it"),
        ("moved", "INT", "partitions with another owner than before"),
        ("moved_needlessly", "INT", "those that the stickiest balanced assignment would not move"),
        ("ownerless_partition_ms", "BIGINT", "time without owner, summed over partitions"),
        (
            "replayed",
            "BIGINT",
            "records that the new owner processed again; null if unknown",
        ),
    ),
)

GROUP_HEALTH: Final = TableSpec(
    layer=Layer.GOLD,
    name="group_health",
    meaning="Rebalance statistics of a group per time window.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("window_start", "TIMESTAMP", "inclusive"),
        ("window_end", "TIMESTAMP", "exclusive"),
        ("rebalances", "INT", "rebalances that ended in the window"),
        ("rebalances_per_hour", "DOUBLE", "the same as a rate"),
        ("rebalancing_ms", "BIGINT", "time spent rebalancing"),
        ("rebalancing_share", "DOUBLE", "share of the window, 0 to 1"),
        ("flapping_members", "INT", "clients that joined or left at least three times"),
        ("members_max", "INT", "largest number of members"),
        ("imbalance", "DOUBLE", "most partitions of a member divided by the mean, at the end"),
        ("stickiness", "DOUBLE", "share of partitions that kept their owner; 1 if none moved"),
    ),
)

LAG: Final = TableSpec(
    layer=Layer.GOLD,
    name="lag",
    meaning="The lag at every commit and every reading of the end offsets.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("topic", "STRING", "of the partition"),
        ("partition", "INT", "of the partition"),
        ("at", "TIMESTAMP", "of the commit or the reading"),
        ("log_offset", "BIGINT", "of the commit in `__consumer_offsets`; null for a reading"),
        ("committed", "BIGINT", "the committed offset at that time; null if removed"),
        ("log_end", "BIGINT", "the last known log end offset; null if unknown"),
        ("lag_records", "BIGINT", "the difference, never negative; null if unknown"),
        ("lag_seconds", "DOUBLE", "time since the log end was at that offset; null if unknown"),
    ),
)

LAG_STATUS: Final = TableSpec(
    layer=Layer.GOLD,
    name="lag_status",
    meaning="The lag status of each partition, without thresholds; deleted groups are left out.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("topic", "STRING", "of the partition"),
        ("partition", "INT", "of the partition"),
        ("status", "STRING", "ok, warning, stalled, stopped or rewound"),
        ("since", "TIMESTAMP", "the first commit that shows this status"),
        ("committed", "BIGINT", "the last committed offset"),
        ("log_end", "BIGINT", "the last known log end offset; null if unknown"),
        ("lag_records", "BIGINT", "the last known lag"),
        ("owner", "STRING", "the member id of the owner; null if there is none"),
        ("reason", "STRING", "a sentence"),
    ),
)

GROUPS: Final = TableSpec(
    layer=Layer.GOLD,
    name="groups",
    meaning="Every group in the history, also groups with committed offsets only.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("from_at", "TIMESTAMP", "its first timestamp in any table"),
        ("to_at", "TIMESTAMP", "its last timestamp in any table"),
        ("generations", "BIGINT", "its rows in `generations`"),
        ("rebalances", "BIGINT", "its rows in `rebalances`"),
        ("commits", "BIGINT", "its rows in `commits`"),
        ("events", "BIGINT", "its rows in `group_events`"),
    ),
)

FINDINGS: Final = TableSpec(
    layer=Layer.GOLD,
    name="findings",
    meaning="Named problems, each with its evidence and advice.",
    columns=_columns(
        ("group_id", "STRING", "the group"),
        ("finding", "STRING", "its name"),
        ("severity", "STRING", "critical, warning or notice"),
        ("subject", "STRING", "the client or topic; null for the whole group"),
        ("from_at", "TIMESTAMP", "when it started"),
        ("to_at", "TIMESTAMP", "when it was last seen"),
        ("count", "INT", "number of occurrences"),
        ("what", "STRING", "what happened, with numbers"),
        ("advice", "STRING", "what to do"),
        ("setting", "STRING", "the setting to change and its value; null if there is none"),
        ("would_have_saved_ms", "BIGINT", "avoidable partition time without owner; null: unknown"),
        ("evidence", "STRING", "JSON: generations, times and members"),
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
    COMMIT_RUNS,
    GROUP_EVENTS,
    REBALANCES,
    GROUP_HEALTH,
    LAG,
    LAG_STATUS,
    GROUPS,
    FINDINGS,
)
