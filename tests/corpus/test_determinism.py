"""The same words give the same bytes: in another process, with another hash seed, among others."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from kohort.corpus.making import Plan, make
from tests.corpus.histories import History, read_corpus

_WORDS = ("--seed", "5", "--hours", "1")


def digests(directory: Path) -> dict[str, str]:
    return {
        path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def made_by_command(directory: Path, hash_seed: str) -> dict[str, str]:
    words = [sys.executable, "-m", "kohort", "corpus", *_WORDS, "--to", f"{directory}"]
    subprocess.run(words, env={**os.environ, "PYTHONHASHSEED": hash_seed}, check=True)
    return digests(directory)


def test_two_processes_with_different_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    first = made_by_command(tmp_path / "first", "1")
    second = made_by_command(tmp_path / "second", "2")

    assert {"README.md", "ends.jsonl", "truth.jsonl"} < set(first)
    assert first == second


def test_another_seed_writes_another_history(tmp_path: Path) -> None:
    for seed in (1, 2):
        make(Plan(seed=seed, kinds=("steady",), hours=1), tmp_path / f"{seed}")

    (first,) = read_corpus(tmp_path / "1").values()
    (second,) = read_corpus(tmp_path / "2").values()

    assert first.group != second.group
    assert first.commits != second.commits


def test_a_groups_history_does_not_depend_on_the_groups_beside_it(tmp_path: Path) -> None:
    make(Plan(seed=3, kinds=("batch",), hours=1), tmp_path / "alone")
    make(Plan(seed=3, kinds=("batch", "scaling", "crash-loop"), hours=1), tmp_path / "beside")

    (alone,) = read_corpus(tmp_path / "alone").values()
    beside: dict[str, History] = read_corpus(tmp_path / "beside")

    assert len(beside) == 3
    assert beside[alone.group] == alone


def test_without_events_nothing_else_changes(tmp_path: Path) -> None:
    make(Plan(seed=3, kinds=("scaling",), hours=1), tmp_path / "with")
    make(Plan(seed=3, kinds=("scaling",), hours=1, has_events=False), tmp_path / "without")

    with_events, without = digests(tmp_path / "with"), digests(tmp_path / "without")

    assert any(name.startswith("log/__kohort_events-0/") for name in with_events)
    assert not any("events" in name for name in without)
    for name, digest in without.items():
        if name.endswith((".log", ".index", ".timeindex", ".jsonl")):
            assert with_events[name] == digest
