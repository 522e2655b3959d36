"""kohort pipeline forensics as a process, on corpora whose truth is known."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from typer.testing import CliRunner

from kohort.cli.app import app
from kohort.corpus.making import Plan, make
from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.store import Store
from tests.pipeline.quick import spark_words

PATIENCE_S = 600
"""A Spark takes ten seconds to start, and minutes on a busy machine."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    code: int
    said: str
    journal: str


def forensics(*words: str) -> Ended:
    """How the command ended, what it said, and what it said of its progress or its failure."""
    ended = subprocess.run(
        [sys.executable, "-m", "kohort", "pipeline", "forensics", *words, *spark_words()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Ended(code=ended.returncode, said=ended.stdout, journal=ended.stderr)


def forensics_here(*words: str) -> Ended:
    """The same in this process, on the Spark that runs in it already."""
    ended = CliRunner().invoke(app, ["pipeline", "forensics", *words], terminal_width=200)
    return Ended(code=ended.exit_code, said=ended.stdout, journal=ended.stderr)


def sentence_in(journal: str) -> str:
    lines = [line for line in journal.splitlines() if line.startswith("kohort: ")]
    assert len(lines) == 1, journal
    return lines[0].removeprefix("kohort: ")


@dataclass(frozen=True, kw_only=True)
class Corpus:
    place: Path

    @property
    def log(self) -> str:
        return f"{self.place / 'log'}"

    @property
    def ends(self) -> str:
        return f"{self.place / 'ends.jsonl'}"

    @property
    def words(self) -> tuple[str, ...]:
        """Where the history is, as the command wants it."""
        return "--from-log", self.log, "--ends", self.ends

    @property
    def groups(self) -> dict[str, str]:
        """By their names, the kinds of their histories."""
        return {each["group"]: each["kind"] for each in self._truth() if each["what"] == "group"}

    def group_of(self, kind: str) -> str:
        return next(group for group, its_kind in self.groups.items() if its_kind == kind)

    @property
    def triggers(self) -> dict[tuple[str, int], str]:
        """What really began each rebalance that led to a generation."""
        return {
            (each["group"], each["generation"]): each["trigger"]
            for each in self._truth()
            if each["what"] == "rebalance" and each["ending"] == "stable"
        }

    def _truth(self) -> list[dict[str, Any]]:
        lines = (self.place / "truth.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]


def make_corpus(place: Path, *kinds: str, seed: int = 11) -> Corpus:
    make(Plan(seed=seed, kinds=kinds, hours=1), place)
    return Corpus(place=place)


def triggers_in(spark: SparkSession, target: Path) -> dict[tuple[str, int], str]:
    """What the tables say began each of them."""
    rows = Store(spark, f"{target}").read(tables.REBALANCES).where("ending = 'stable'").collect()
    return {(row.group_id, row.generation): row.trigger for row in rows}
