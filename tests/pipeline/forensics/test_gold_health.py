"""The table group_health."""

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.gold import group_health_table
from tests.pipeline.forensics.row_histories import C, G, M, beats, build_silver, listed
from tests.pipeline.forensics.test_gold_rebalances import build

HOUR = 3600
A = M("a", "t0 t1")


def test_health_is_computed_per_hour(spark: SparkSession) -> None:
    told = build_silver(
        spark,
        flapping=[
            G(0, 1, A, M("b1", "t2 t3")),
            G(100, 2, M("a", "t0 t1 t2 t3")),
            G(200, 3, A, M("b2", "t2 t3")),
            *beats(300, HOUR - 10, every=10, of="t0 t1 t2 t3"),
            G(HOUR + 20, 4, M("a", "t0 t1 t2"), M("b2", "t3")),
            G(3 * HOUR, 5),
        ],
        elsewhere=[G(4 * HOUR, 1, A), C(4 * HOUR + 1, "t0", 1)],
    )

    rebalances = build(told).localCheckpoint()
    health = group_health_table.build(rebalances=rebalances, generations=told.generations)
    rows = [row for row in listed(health.orderBy("window_start")) if row["group_id"] == "flapping"]

    schema = StructType.fromDDL(tables.GROUP_HEALTH.ddl)
    assert health.schema.simpleString() == schema.simpleString()
    assert [row["window_start"] / HOUR for row in rows] == [0, 1, 2, 3]
    assert [row["rebalances"] for row in rows] == [3, 1, 0, 1]
    assert [row["rebalancing_ms"] for row in rows] == [10_000, 20_000, 0, 0]
    assert [row["flapping_members"] for row in rows] == [1, 0, 0, 0]
    assert [row["members_max"] for row in rows] == [2, 2, 2, 2]
    assert [row["imbalance"] for row in rows][:3] == [1.0, 1.5, 1.5]
    assert [row["stickiness"] for row in rows][:3] == [1 - 4 / 12, 1 - 1 / 4, 1.0]
