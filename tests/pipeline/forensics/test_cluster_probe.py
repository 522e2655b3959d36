"""The command with a part of the history, and with a missing log."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.store import Store
from tests.pipeline.forensics.forensics_process import (
    error_in,
    forensics_in_process,
    generate_history,
)


@pytest.mark.full
def test_since_and_group_restrict_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    history = generate_history(tmp_path / "history", "crash-loop", "steady", "scaling")
    target, group = tmp_path / "tables", history.group_of("crash-loop")
    since = "2026-01-05T08:30"

    finished = forensics_in_process(
        *history.arguments, "--to", f"{target}", "--since", since, "--group", group
    )

    assert finished.code == 0, finished.stderr
    generations = Store(spark, f"{target}").read(tables.GENERATIONS).cache()
    assert {row.group_id for row in generations.collect()} == {group}
    assert generations.where(f"at < '{since}'").isEmpty()
    first, *others = finished.stdout.splitlines()
    assert f" {generations.count()} generations, " in first
    assert f"tables: {target}" in others
    assert any(line.startswith("critical") and group in line for line in others)


def test_a_missing_log_is_reported_with_its_path(
    spark: SparkSession,  # noqa: ARG001  # the command uses the one that runs
    tmp_path: Path,
) -> None:
    missing = f"{tmp_path / 'missing'}"

    finished = forensics_in_process("--from-log", missing, "--to", f"{tmp_path / 'tables'}")

    assert (finished.code, finished.stdout) == (1, "")
    assert missing in error_in(finished.stderr)
