"""Runs all benchmarks one after another, each in a separate process: `python -m bench`.

The results of each are written to bench/results.json as soon as it ends, and
docs/reference/benchmarks.md is generated from it. With --quick nothing is written; the page is
printed instead.

To measure a change before and after, name the directory of another checkout in the environment
variable KOHORT_BENCH_OTHER_CHECKOUT and run one benchmark, such as
`python -m bench.beside_kafka.commits`: a node of that checkout takes Apache Kafka's place.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench.kit.figures import read_report
from bench.kit.harness import exit_when_terminated
from bench.kit.machine import describe_machine, describe_versions
from bench.kit.results import PAGE, STORED, Entry, as_stored, from_stored, merge, render, renew

NAMES = (
    "beside_kafka.starts",
    "beside_kafka.memory",
    "beside_kafka.heartbeats",
    "beside_kafka.commits",
    "beside_kafka.rebalances",
    "beside_kafka.restarts",
    "beside_kafka.topics",
    "beside_kafka.offset_fetches",
    "beside_kafka.records",
    "test_overhead",
    "day",
    "coordinator",
    "wire",
    "node",
    "fast_paths",
    "consumer",
    "assignors",
    "spark_source",
    "forensics",
)


def main() -> int:
    options = _read_options()
    exit_when_terminated()
    measured, failed = [], []
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as directory:
        for name in options.only or NAMES:
            sys.stderr.write(f"== {name}\n")
            file = Path(directory) / f"{name}.json"
            words = [sys.executable, "-m", f"bench.{name}", "--json", f"{file}"]
            words += ["--quick"] if options.quick else []
            words += ["--rounds", f"{options.rounds}"] if options.rounds else []
            if _run(words) or not file.exists():
                failed.append(name)
                continue
            measured.append(_entry(file))
            if not options.quick:
                _keep(measured[-1])
    if options.quick:
        sys.stdout.write(render(measured))
    if failed:
        sys.stderr.write(f"Failed: {' '.join(failed)}\n")
    return 1 if failed else 0


def _run(words: list[str]) -> int:
    """Run a benchmark to its end. If this process is terminated, so is the benchmark."""
    process = subprocess.Popen(words)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="small sizes; nothing is kept")
    parser.add_argument("--rounds", type=int, help="rounds per side; each has its own default")
    return parser.parse_args()


def _entry(file: Path) -> Entry:
    return Entry(
        report=read_report(json.loads(file.read_text("utf-8"))),
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=describe_machine(),
        versions=describe_versions(),
    )


def _keep(measured: Entry) -> None:
    old = from_stored(STORED.read_text("utf-8")) if STORED.exists() else []
    entries = merge(old, [measured], [f"bench.{name}" for name in NAMES])
    STORED.write_text(as_stored(entries), "utf-8")
    PAGE.write_text(renew(PAGE.read_text("utf-8"), entries), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
