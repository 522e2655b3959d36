"""Forensics on workers in processes of their own, which read the log and write the tables."""

from pathlib import Path

from pyspark.sql import SparkSession

from tests.pipeline.forensics.commanding import forensics, make_corpus, triggers_in
from tests.pipeline.quick import spark_words
from tests.pipeline.standalone import SMALL, standalone_cluster


def test_a_log_is_explained_on_a_standalone_cluster(spark: SparkSession, tmp_path: Path) -> None:
    corpus, target = make_corpus(tmp_path / "corpus", "crash-loop", "steady"), tmp_path / "tables"

    with standalone_cluster(tmp_path / "spark-cluster") as url:
        ended = forensics(*corpus.words, "--to", f"{target}", "--master", url, *spark_words(SMALL))
        workers = list((tmp_path / "spark-cluster").glob("*/*/app-*/*"))

    assert ended.code == 0, ended.journal
    assert triggers_in(spark, target) == corpus.triggers
    assert "crash-loop" in corpus.groups.values()
    assert "started" in ended.said
    assert len({each.parents[2].name for each in workers}) == 2
