"""SQL formats numbers and durations as kohort.text.numbers does."""

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.pipeline.forensics.sql_text import count, duration, format_text, number
from kohort.text import numbers as words

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def spans() -> list[int]:
    """Around every bound, at halves, and random."""
    rng = random.Random(5)  # noqa: S311  # not for secrets
    edges = (0, SECOND, 59_950, MINUTE, 3_599_500, HOUR, 86_370_000, DAY, 400 * DAY)
    near = [max(0, each + step) for each in edges for step in (-51, -50, -1, 0, 1, 49, 50, 51)]
    halves = [
        4_250,
        4_350,
        90_500,
        91_500,
        2 * HOUR + 30_000,
        2 * HOUR + 90_000,
        2 * DAY + 1_800_000,
    ]
    return near + halves + [rng.randrange(10 ** rng.randrange(1, 12)) for _ in range(500)]


def formatted(spark: SparkSession, expression: str, values: list[Any]) -> list[str]:
    rows = spark.createDataFrame([(each,) for each in values], "x BIGINT")
    return [row[0] for row in rows.coalesce(1).selectExpr(expression).collect()]


def test_durations_are_formatted_as_in_the_report(spark: SparkSession) -> None:
    some = spans()

    assert formatted(spark, duration("x"), some) == [words.duration(each) for each in some]


def test_counts_are_formatted_as_in_the_report(spark: SparkSession) -> None:
    some = [0, 1, 2, 999, 1_000, 1_204, 87_491, 10**9]

    assert formatted(spark, count("x", "record"), some) == [words.count(n, "record") for n in some]
    assert formatted(spark, number("x / 2"), [1, 2, 2_409]) == ["0.5", "1", "1,204.5"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{who} began {n:rebalance} in {ms:duration}.", "a at /b began 1,204 rebalances in 12 s."),
        ("{n:number} of them; {none:duration}, {none:number}", "1,204 of them; unknown, unknown"),
        ("no values", "no values"),
    ],
)
def test_a_template_has_the_values_of_its_row(
    spark: SparkSession, text: str, expected: str
) -> None:
    schema = "who STRING, n BIGINT, ms BIGINT, none BIGINT"
    row = spark.createDataFrame([("a at /b", 1_204, 12_000, None)], schema)

    assert [each[0] for each in row.select(format_text(text)).collect()] == [expected]
