"""What is asked of forensics in words: a part of the history, and one that is not there."""

from pathlib import Path

from pyspark.sql import SparkSession

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.store import Store
from tests.pipeline.forensics.commanding import forensics_here, make_corpus, sentence_in


def test_of_one_group_only_what_is_newer_is_told(spark: SparkSession, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", "crash-loop", "steady", "scaling")
    target, group = tmp_path / "tables", corpus.group_of("crash-loop")
    since = "2026-01-05T08:30"

    ended = forensics_here(*corpus.words, "--to", f"{target}", "--since", since, "--group", group)

    assert ended.code == 0, ended.journal
    generations = Store(spark, f"{target}").read(tables.GENERATIONS).cache()
    assert {row.group_id for row in generations.collect()} == {group}
    assert generations.where(f"at < '{since}'").isEmpty()
    first, *others = ended.said.splitlines()
    assert f" {generations.count()} generations, " in first
    assert f"the tables are in {target}" in others
    assert any(line.startswith("critical") and group in line for line in others)


def test_a_log_that_is_not_there_is_named(
    spark: SparkSession,  # noqa: ARG001  # the command uses the one that runs
    tmp_path: Path,
) -> None:
    nowhere = f"{tmp_path / 'nowhere'}"

    ended = forensics_here("--from-log", nowhere, "--to", f"{tmp_path / 'tables'}")

    assert (ended.code, ended.said) == (1, "")
    assert nowhere in sentence_in(ended.journal)
