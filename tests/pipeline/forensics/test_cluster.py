"""Forensics on a standalone Spark cluster, whose workers read the log and write the tables."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.forensics.forensics_process import forensics, generate_history, triggers_in
from tests.pipeline.spark_settings import spark_arguments
from tests.pipeline.standalone_spark import SMALL, standalone_cluster


@pytest.mark.full
def test_a_log_is_explained_on_a_standalone_cluster(spark: SparkSession, tmp_path: Path) -> None:
    history, target = (
        generate_history(tmp_path / "history", "crash-loop", "steady"),
        tmp_path / "tables",
    )

    with standalone_cluster(tmp_path / "spark-cluster") as url:
        finished = forensics(
            *history.arguments, "--to", f"{target}", "--master", url, *spark_arguments(SMALL)
        )
        workers = list((tmp_path / "spark-cluster").glob("*/*/app-*/*"))

    assert finished.code == 0, finished.stderr
    assert triggers_in(spark, target) == history.triggers
    assert "crash-loop" in history.groups.values()
    assert "started" in finished.stdout
    assert len({each.parents[2].name for each in workers}) == 2
