"""Commit runs: the commits of one member, partition and generation as one row.

There are millions of commits. Queries about the last activity of members, the last offset of a
partition or rewinds read this table instead.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.store import conform
from kohort.pipeline.forensics.tables import COMMIT_RUNS

_BY: Final = ["group_id", "generation", "owner", "topic", "partition"]

_KEPT: Final = "FILTER (WHERE NOT is_removed)"
_FALLEN: Final = "FILTER (WHERE step < 0)"


def build(commits: DataFrame) -> DataFrame:
    aggregates = {
        "commits": f"count(*) {_KEPT}",
        "first_at": f"min(at) {_KEPT}",
        "last_at": f"max(at) {_KEPT}",
        "first_committed": f"min_by(committed, log_offset) {_KEPT}",
        "last_committed": f"max_by(committed, log_offset) {_KEPT}",
        "last_log_offset": f"max(log_offset) {_KEPT}",
        "removals": "count(*) FILTER (WHERE is_removed)",
        "rewinds": f"count(*) {_FALLEN}",
        "rewinds_to_zero": "count(*) FILTER (WHERE step < 0 AND committed = 0)",
        "rewound": f"coalesce(sum(-step) {_FALLEN}, 0L)",
        "rewound_most": f"max(-step) {_FALLEN}",
        "first_rewind_at": f"min(at) {_FALLEN}",
        "last_rewind_at": f"max(at) {_FALLEN}",
    }
    columns = (sql.expr(each).alias(name) for name, each in aggregates.items())
    return conform(commits.groupBy(*_BY).agg(*columns), COMMIT_RUNS)
