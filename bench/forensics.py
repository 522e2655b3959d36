"""Forensics on one million and ten million records of `__consumer_offsets`, compared with a scan.

A labelled history provides the log. Forensics decodes it and builds every table up to the findings,
in a Spark on two cores. The scan is the same Spark reading every byte of the same files. Growth is
the time for ten times the records divided by ten times the time. Memory is the peak of the JVM and
its Python workers together.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.kit.figures import Figure, Taken, at_most
from bench.kit.harness import Effort, tell
from kohort.pipeline.forensics.options import ForensicsOptions
from kohort.pipeline.forensics.run import run
from kohort.pipeline.forensics.tuning import SESSION_SETTINGS
from kohort.pipeline.session import SessionOptions, open_session

HOURS = {"1 million": 7, "10 million": 70}
"""Hours of one busy group: 144,000 records per hour."""

ROUNDS = 1
"""One round takes minutes, so few are enough."""

TARGET_S = 120.0
GROWTH_MAX = 1.3
MEMORY_GROWTH_MAX = 1.5


@dataclass(kw_only=True)
class Taking:
    """The samples of one size, one per round."""

    records: int = 0
    scans: list[float] = field(default_factory=list)
    runs: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)


def make_corpus(hours: int, directory: Path) -> None:
    words = ["--seed", "1", "--kind", "busy", "--groups", "1", "--hours", str(hours)]
    subprocess.run(
        [sys.executable, "-m", "tools.histories", *words, "--to", f"{directory}"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def scan(spark: SparkSession, log: Path) -> int:
    """Read every byte of every segment."""
    paths = [f"{each}" for each in sorted(log.glob("*/*.log"))]

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                content = Path(paths[index]).read_bytes()
                zlib.crc32(content)
                yield pa.RecordBatch.from_pydict({"size": [len(content)]})

    sizes = spark.range(0, len(paths), 1, len(paths)).mapInArrow(look, "size BIGINT")
    return sum(row.size for row in sizes.collect())


class Watched:
    """Peak memory and CPU of all child processes."""

    def __init__(self) -> None:
        self.bytes_most = 0
        self.cpu_s = 0.0
        self._ending = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._look)
        before = _cpu_seconds()
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join()
            self.cpu_s = _cpu_seconds() - before

    def _look(self) -> None:
        while not self._ending.wait(0.5):
            # A child that has not become another program yet has its parent's memory, not its own.
            shares = {_layout(pid): _resident(pid) for pid in _descendants(os.getpid())}
            held = sum(shares.values())
            self.bytes_most = max(self.bytes_most, held)


def _descendants(pid: int) -> Iterator[int]:
    try:
        paths = list(Path(f"/proc/{pid}/task").glob("*/children"))
        found = [child for path in paths for child in path.read_text("ascii").split()]
    except OSError:
        # It has ended while it was looked at.
        return
    for child in map(int, found):
        yield child
        yield from _descendants(child)


def _layout(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/statm").read_text("ascii")
    except OSError:
        return ""


def _resident(pid: int) -> int:
    """Proportional set size in bytes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _cpu_seconds() -> float:
    """CPU of this process and its children, including ended ones."""
    return sum(_ticks(pid) for pid in (os.getpid(), *_descendants(os.getpid()))) / os.sysconf(
        "SC_CLK_TCK"
    )


def _ticks(pid: int) -> int:
    try:
        words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, words[11:15]))


def take(spark: SparkSession, corpus: Path, taking: Taking) -> None:
    """One round."""
    log, target, watched = corpus / "log", corpus / "tables", Watched()
    began = time.perf_counter()
    volume = scan(spark, log)
    taking.scans.append(time.perf_counter() - began)
    options = ForensicsOptions(target=f"{target}", log=f"{log}", ends=f"{corpus / 'ends.jsonl'}")
    began = time.perf_counter()
    with watched.watching():
        summary = run(spark, options)
    taking.runs.append(time.perf_counter() - began)
    taking.megabytes.append(watched.bytes_most / 1e6)
    taking.records = summary.records
    shutil.rmtree(target)
    sys.stderr.write(
        f"{summary.records:,} records, {volume / 1e6:,.0f} MB: {taking.runs[-1]:,.1f} s, "
        f"{watched.cpu_s:,.0f} s of CPU, {summary.records / taking.runs[-1]:,.0f} records/s, "
        f"at most {taking.megabytes[-1]:,.0f} MB held\n"
    )


def measure(effort: Effort) -> Iterator[Figure]:
    options = SessionOptions(
        app_name="bench forensics", master="local[2]", settings=SESSION_SETTINGS
    )
    takings: dict[str, Taking] = {}
    with (
        tempfile.TemporaryDirectory(prefix="kohort-bench-") as name,
        open_session(options) as spark,
    ):
        for size in effort.pick(tuple(HOURS), tuple(HOURS)[:1]):
            corpus, taking = Path(name) / size.replace(" ", "-"), Taking()
            make_corpus(effort.pick(HOURS[size], 1), corpus)
            # Workers start, and compile, when they are first asked.
            scan(spark, corpus / "log")
            for _ in range(effort.rounds):
                take(spark, corpus, taking)
            shutil.rmtree(corpus)
            takings[size] = taking
            label = effort.pick(size, f"{taking.records:_}")
            yield Figure(
                metric=f"{label} records to gold, vs a bare scan",
                unit="s",
                kohort=Taken(samples=tuple(taking.runs)),
                peer=Taken(samples=tuple(taking.scans)),
            )
    if len(takings) == len(HOURS):
        yield from compare(takings["1 million"], takings["10 million"])


def compare(one: Taking, ten: Taking) -> Iterator[Figure]:
    yield Figure(
        metric="10 million records to gold, vs its target",
        unit="s",
        kohort=Taken(samples=tuple(ten.runs)),
        peer=Taken(samples=(TARGET_S,)),
        target=at_most(1.0),
    )
    yield Figure(
        metric="time from 1 to 10 million, vs linear",
        unit="s",
        kohort=Taken(samples=tuple(ten.runs)),
        peer=Taken(samples=tuple(10 * each for each in one.runs)),
        target=at_most(GROWTH_MAX),
    )
    yield Figure(
        metric="memory at 10 million, vs that at 1 million",
        unit="MB",
        kohort=Taken(samples=tuple(ten.megabytes)),
        peer=Taken(samples=tuple(one.megabytes)),
        target=at_most(MEMORY_GROWTH_MAX),
    )


if __name__ == "__main__":
    tell(__doc__ or "", "scan", measure, rounds=ROUNDS)
