"""Every file here has a HISTORY: groups by name, with and without the problem.

The rebalances of all histories of a test run are built once. All other tables are built for the
groups of one file, because a history ends where its last group does. `found` returns the findings.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession

from kohort.pipeline.forensics.findings import Evidence, FindingRule, apply_rule
from kohort.pipeline.forensics.gold import (
    groups_table,
    lag_status_table,
    lag_table,
    rebalances_table,
)
from tests.pipeline.forensics.row_histories import SilverTables, build_silver, listed

Findings: TypeAlias = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="session")
def all_rebalances(spark: SparkSession, request: pytest.FixtureRequest) -> DataFrame:
    modules = {item.module for item in request.session.items if hasattr(item, "module")}
    histories = {
        f"{module.__name__}/{name}": rows
        for module in modules
        for name, rows in getattr(module, "HISTORY", {}).items()
    }
    return _rebalances(build_silver(spark, histories)).localCheckpoint()


@pytest.fixture
def found(
    spark: SparkSession, request: pytest.FixtureRequest, all_rebalances: DataFrame
) -> Callable[[FindingRule], Findings]:
    module = request.module

    def find(rule: FindingRule) -> Findings:
        told = build_silver(spark, {f"{module.__name__}/{k}": v for k, v in module.HISTORY.items()})
        recent_lag = lag_status_table.recent_lag(
            lag_table.build(commits=told.commits, ends=told.ends)
        )
        own = all_rebalances.where(all_rebalances.group_id.startswith(f"{module.__name__}/"))
        evidence = Evidence(
            generations=told.generations,
            memberships=told.memberships,
            commits=told.commits,
            commit_runs=told.commit_runs,
            ends=told.ends,
            group_events=told.group_events,
            rebalances=own,
            lag_status=lag_status_table.build(
                recent_lag=recent_lag,
                ownership=told.ownership,
                generations=told.generations,
                ends=told.ends,
            ),
            groups=groups_table.build(
                generations=told.generations,
                rebalances=own,
                group_events=told.group_events,
                recent_lag=recent_lag,
            ),
        )
        rows = listed(apply_rule(rule, evidence))
        names = {name: f"{module.__name__}/{name}" for name in module.HISTORY}
        return {
            name: [row for row in rows if row["group_id"] == group]
            for name, group in names.items()
            if any(row["group_id"] == group for row in rows)
        }

    return find


def _rebalances(told: SilverTables) -> DataFrame:
    return rebalances_table.build(
        generations=told.generations,
        ownership=told.ownership,
        commit_runs=told.commit_runs,
        group_events=told.group_events,
    )
