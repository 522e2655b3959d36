"""The same options generate the same bytes, in any process and with any hash seed."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.histories.reader import GroupHistory, read_histories
from tools.histories.generator import HistoryOptions, generate

_OPTIONS = ("--seed", "5", "--hours", "1")


def digests(directory: Path) -> dict[str, str]:
    return {
        path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def generate_in_process(directory: Path, hash_seed: str) -> dict[str, str]:
    command = [sys.executable, "-m", "tools.histories", *_OPTIONS, "--to", f"{directory}"]
    subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": hash_seed}, check=True)
    return digests(directory)


@pytest.mark.full
def test_two_processes_with_different_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    first = generate_in_process(tmp_path / "first", "1")
    second = generate_in_process(tmp_path / "second", "2")

    assert {"README.md", "ends.jsonl", "truth.jsonl"} < set(first)
    assert first == second


def test_another_seed_generates_another_history(tmp_path: Path) -> None:
    for seed in (1, 2):
        generate(HistoryOptions(seed=seed, scenarios=("steady",), hours=1), tmp_path / f"{seed}")

    (first,) = read_histories(tmp_path / "1").values()
    (second,) = read_histories(tmp_path / "2").values()

    assert first.group != second.group
    assert first.commits != second.commits


def test_a_groups_history_does_not_depend_on_other_groups(tmp_path: Path) -> None:
    generate(HistoryOptions(seed=3, scenarios=("batch",), hours=1), tmp_path / "alone")
    generate(
        HistoryOptions(seed=3, scenarios=("batch", "scaling", "crash-loop"), hours=1),
        tmp_path / "with-others",
    )

    (alone,) = read_histories(tmp_path / "alone").values()
    with_others: dict[str, GroupHistory] = read_histories(tmp_path / "with-others")

    assert len(with_others) == 3
    assert with_others[alone.group] == alone


def test_leaving_out_events_changes_nothing_else(tmp_path: Path) -> None:
    generate(HistoryOptions(seed=3, scenarios=("scaling",), hours=1), tmp_path / "with")
    generate(
        HistoryOptions(seed=3, scenarios=("scaling",), hours=1, has_events=False),
        tmp_path / "without",
    )

    with_events, without = digests(tmp_path / "with"), digests(tmp_path / "without")

    assert any(name.startswith("log/__kohort_events-0/") for name in with_events)
    assert not any("events" in name for name in without)
    for name, digest in without.items():
        if name.endswith((".log", ".index", ".timeindex", ".jsonl")):
            assert with_events[name] == digest
