"""Runs `kohort pipeline forensics` on labelled histories."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from typer.testing import CliRunner

from kohort.cli.app import app
from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.store import Store
from tests.pipeline.spark_settings import spark_arguments
from tools.histories.generator import HistoryOptions, generate

TIMEOUT_S = 600
"""Spark takes ten seconds to start, and minutes on a busy machine."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    code: int
    stdout: str
    stderr: str


def forensics(*arguments: str) -> Finished:
    """Run the command as a process."""
    finished = subprocess.run(
        [sys.executable, "-m", "kohort", "pipeline", "forensics", *arguments, *spark_arguments()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return Finished(code=finished.returncode, stdout=finished.stdout, stderr=finished.stderr)


def forensics_in_process(*arguments: str) -> Finished:
    """Run the command in this process, with its running Spark."""
    finished = CliRunner().invoke(app, ["pipeline", "forensics", *arguments], terminal_width=200)
    return Finished(code=finished.exit_code, stdout=finished.stdout, stderr=finished.stderr)


def error_in(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.startswith("kohort: ")]
    assert len(lines) == 1, stderr
    return lines[0].removeprefix("kohort: ")


@dataclass(frozen=True, kw_only=True)
class HistoryFiles:
    directory: Path

    @property
    def log(self) -> str:
        return f"{self.directory / 'log'}"

    @property
    def ends(self) -> str:
        return f"{self.directory / 'ends.jsonl'}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the command that name the history."""
        return "--from-log", self.log, "--ends", self.ends

    @property
    def groups(self) -> dict[str, str]:
        """The scenarios by group id."""
        return {each["group"]: each["kind"] for each in self._labels() if each["what"] == "group"}

    def group_of(self, scenario: str) -> str:
        return next(group for group, played in self.groups.items() if played == scenario)

    @property
    def triggers(self) -> dict[tuple[str, int], str]:
        """The labelled trigger of each rebalance that led to a generation."""
        return {
            (each["group"], each["generation"]): each["trigger"]
            for each in self._labels()
            if each["what"] == "rebalance" and each["ending"] == "stable"
        }

    def _labels(self) -> list[dict[str, Any]]:
        lines = (self.directory / "truth.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]


def generate_history(directory: Path, *scenarios: str, seed: int = 11) -> HistoryFiles:
    generate(HistoryOptions(seed=seed, scenarios=scenarios, hours=1), directory)
    return HistoryFiles(directory=directory)


def triggers_in(spark: SparkSession, target: Path) -> dict[tuple[str, int], str]:
    """The trigger of each rebalance in the tables."""
    rows = Store(spark, f"{target}").read(tables.REBALANCES).where("ending = 'stable'").collect()
    return {(row.group_id, row.generation): row.trigger for row in rows}
