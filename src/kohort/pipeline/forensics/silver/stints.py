"""Stints: what one member committed of one partition in one generation, as one row.

The one reading of all commits. Commits are millions; whoever asks how long somebody was silent,
where a partition was left or whether an offset ever fell needs no more of them than this.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.tables import STINTS

_BY: Final = ["group_id", "generation", "owner", "topic", "partition"]

_KEPT: Final = "FILTER (WHERE NOT is_removed)"
_FALLEN: Final = "FILTER (WHERE step < 0)"


def build(commits: DataFrame) -> DataFrame:
    figures = {
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
    summed = (sql.expr(figure).alias(name) for name, figure in figures.items())
    return conform(commits.groupBy(*_BY).agg(*summed), STINTS)
