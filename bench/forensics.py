"""History into gold: a million and ten million records of `__consumer_offsets`, beside a bare scan.

The corpus makes the log; forensics reads it, decodes it and builds every table up to findings, in
a Spark on two cores. The scan is the same Spark reading the same files, each byte looked at once.
Growth is the time of ten times the records over ten times the time. Memory is the most that the JVM
and its Python workers held together.
"""

import argparse
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
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.kit.harness import Result, as_json, as_table
from kohort.pipeline.forensics.run import run
from kohort.pipeline.forensics.wish import ForensicsWish
from kohort.pipeline.session import SessionWish, open_session

HOURS = {"1 million": 7, "10 million": 70}
"""Of one busy group: 144,000 records an hour."""

TARGET_S = 120.0
GROWTH_MAX = 1.3

MEMORY = "2g"
"""Of the JVM."""


def make_log(hours: int, directory: Path) -> Path:
    words = ["corpus", "--seed", "1", "--kind", "busy", "--groups", "1", "--hours", str(hours)]
    subprocess.run(
        [sys.executable, "-m", "kohort", *words, "--to", f"{directory}"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return directory / "log"


def scan(spark: SparkSession, log: Path) -> int:
    """Read every segment, and look at each of its bytes."""
    paths = [f"{each}" for each in sorted(log.glob("*/*.log"))]

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                content = Path(paths[index]).read_bytes()
                zlib.crc32(content)
                yield pa.RecordBatch.from_pydict({"size": [len(content)]})

    sizes = spark.range(0, len(paths), 1, len(paths)).mapInArrow(look, "size BIGINT")
    return sum(row.size for row in sizes.collect())


class Memory:
    """The most that all processes under this one have held; looked at often."""

    def __init__(self) -> None:
        self.most = 0
        self._ending = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        thread = threading.Thread(target=self._look)
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join()

    def _look(self) -> None:
        while not self._ending.wait(0.5):
            self.most = max(self.most, sum(_resident(pid) for pid in _descendants(os.getpid())))


def _descendants(pid: int) -> Iterator[int]:
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = children.read_text("ascii").split()
        except OSError:
            continue
        for child in map(int, found):
            yield child
            yield from _descendants(child)


def _resident(pid: int) -> int:
    """Its own share of what it has in common with others, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def measure(sizes: list[str]) -> Iterator[Result]:
    wish = SessionWish(app_name="bench forensics", master="local[2]", memory=MEMORY)
    times: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as name, open_session(wish) as spark:
        for size in sizes:
            directory = Path(name) / size.replace(" ", "-")
            log = make_log(HOURS[size], directory)
            scan(spark, log)
            began = time.perf_counter()
            volume = scan(spark, log)
            scanned = time.perf_counter() - began
            memory, target = Memory(), directory / "tables"
            began = time.perf_counter()
            with memory.watched():
                summary = run(spark, ForensicsWish(target=f"{target}", log=f"{log}"))
            times[size] = time.perf_counter() - began
            shutil.rmtree(directory)
            sys.stderr.write(
                f"{summary.records:,} records, {volume / 1e6:,.0f} MB, "
                f"{summary.records / times[size]:,.0f} records/s, "
                f"at most {memory.most / 1e6:,.0f} MB held\n"
            )
            yield Result(
                metric=f"{size} records to gold, beside a bare scan",
                kohort=times[size],
                peer=scanned,
                target=None,
                unit="s",
            )
    if "10 million" in times:
        yield Result(
            metric="10 million records to gold, beside its target",
            kohort=times["10 million"],
            peer=TARGET_S,
            target=1.0,
            unit="s",
        )
    if len(times) == len(HOURS):
        yield Result(
            metric="growth from 1 to 10 million, beside linear",
            kohort=times["10 million"],
            peer=10 * times["1 million"],
            target=GROWTH_MAX,
            unit="s",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    parser.add_argument("--sizes", nargs="+", choices=HOURS, default=list(HOURS))
    options = parser.parse_args()
    results = list(measure(options.sizes))
    sys.stdout.write(as_json(results) if options.json else as_table(results, "scan"))


if __name__ == "__main__":
    main()
