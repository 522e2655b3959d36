"""Every file here has a HISTORY: groups by name, guilty and innocent. `found` says who was found.

What is the same for all of them is made once: the rebalances of all histories that take part in a
test run. Everything else is looked at by each file for its own groups alone, since a history ends
where its last group does.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession

from kohort.pipeline.forensics.findings import Evidence, Finding, look
from kohort.pipeline.forensics.gold import groups, lag, lag_status, rebalances
from tests.pipeline.forensics.stories import Told, listed, tell

Found: TypeAlias = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="session")
def all_rebalances(spark: SparkSession, request: pytest.FixtureRequest) -> DataFrame:
    modules = {item.module for item in request.session.items if hasattr(item, "module")}
    histories = {
        f"{module.__name__}/{name}": rows
        for module in modules
        for name, rows in getattr(module, "HISTORY", {}).items()
    }
    return _rebalances(tell(spark, histories)).localCheckpoint()


@pytest.fixture
def found(
    spark: SparkSession, request: pytest.FixtureRequest, all_rebalances: DataFrame
) -> Callable[[Finding], Found]:
    module = request.module

    def find(finding: Finding) -> Found:
        told = tell(spark, {f"{module.__name__}/{k}": v for k, v in module.HISTORY.items()})
        lately = lag_status.lately(lag.build(commits=told.commits, ends=told.ends))
        own = all_rebalances.where(all_rebalances.group_id.startswith(f"{module.__name__}/"))
        evidence = Evidence(
            generations=told.generations,
            memberships=told.memberships,
            commits=told.commits,
            stints=told.stints,
            ends=told.ends,
            group_events=told.group_events,
            rebalances=own,
            lag_status=lag_status.build(
                lately=lately,
                ownership=told.ownership,
                generations=told.generations,
                ends=told.ends,
            ),
            groups=groups.build(
                generations=told.generations,
                rebalances=own,
                group_events=told.group_events,
                lately=lately,
            ),
        )
        rows = listed(look(finding, evidence))
        names = {name: f"{module.__name__}/{name}" for name in module.HISTORY}
        return {
            name: [row for row in rows if row["group_id"] == group]
            for name, group in names.items()
            if any(row["group_id"] == group for row in rows)
        }

    return find


def _rebalances(told: Told) -> DataFrame:
    return rebalances.build(
        generations=told.generations,
        ownership=told.ownership,
        stints=told.stints,
        group_events=told.group_events,
    )
