"""Runs the test suites: `python -m tests.suite quick|test|full`, three pytest processes at a time.

`quick` is everything that is pure or in-process. `test` is everything without the marker `full`.
`full` is what `test` leaves out: tests with the marker `full`, and Hypothesis tests with more
examples. One Apache Kafka broker serves all processes of a run.

Tests that fail run once more, alone, when all other tests have ended. Those that pass then are
listed as unstable: they depend on the load of the machine or have a race, and must be repaired.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tests.apache.shared import ADDRESS, shared_kafka
from tests.apache.unavailable import Unavailable

LANES = 3
"""For two cores: tests often wait for brokers, timers and JVMs."""

SLOWEST = 20

NO_TESTS_COLLECTED = 5

TESTS_FAILED = 1

RERUN_MAX = 5
"""Failed tests of one shard that are run again; more failures are no coincidence."""

QUICK = (
    (
        "tests/wire",
        "tests/assignors",
        "tests/conditions",
        "tests/events",
        "tests/settings",
        "tests/text",
        "tests/types",
        "tests/virtual_time",
    ),
    (
        "tests/log",
        # Thousands of states of a disk.
        "--ignore=tests/log/test_damage.py",
        "--ignore=tests/log/test_power_cut.py",
        "tests/sim",
        # Starts processes, and shrinks failures.
        "--ignore=tests/sim/test_determinism.py",
        "--ignore=tests/sim/test_plans.py",
    ),
    (
        "tests/node",
        # Real sockets, processes and disks.
        "--ignore-glob=tests/node/test_*_disk.py",
        "--ignore=tests/node/clients",
        "--ignore=tests/node/test_attacks.py",
        "--ignore=tests/node/test_descriptor_limit.py",
        "--ignore=tests/node/test_hostile.py",
        "--ignore=tests/node/test_kill.py",
        "--ignore=tests/node/test_loading.py",
        "--ignore=tests/node/test_node_pages.py",
        "--ignore=tests/node/test_server_clock.py",
        "--ignore=tests/node/test_sockets.py",
        "--ignore=tests/node/test_suspended_process.py",
    ),
    (
        "tests/coordinator",
        "tests/protocol",
        "tests/client",
        "--ignore-glob=tests/client/test_consumer_*",
        "--ignore=tests/client/test_member_cluster.py",
    ),
)
"""The longest first, so that both lanes end at about the same time."""

SHARDS = (
    ("tests/pipeline", "--ignore=tests/pipeline/forensics"),
    ("tests/pipeline/forensics",),
    ("tests/cli", "tests/demo"),
    ("tests/contract", "--ignore=tests/contract/behaviours"),
    ("tests/node", "tests/client", "--ignore=tests/client/test_member_stateful.py"),
    ("tests/testing", "tests/examples", "tests/package"),
    ("tests/log", "tests/histories"),
    # Native tracebacks: ast.parse of Python 3.11 can fail if several threads use it.
    ("tests/contract/behaviours", "--tb=native"),
    ("tests/sim", "tests/coordinator", "tests/client/test_member_stateful.py"),
)
"""All other tests are one more shard. The longest come first, so that no lane ends much later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    shards: Sequence[Sequence[str]]
    options: Sequence[str]
    has_kafka: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    title: str
    status: int
    output: str
    seconds: float
    durations: Mapping[str, float]
    failed: Sequence[str]
    """Node ids."""

    @property
    def may_rerun(self) -> bool:
        return self.status == TESTS_FAILED and 0 < len(self.failed) <= RERUN_MAX


def rest_of(shards: Sequence[Sequence[str]]) -> list[str]:
    """The pytest arguments for every test outside of these shards."""
    paths = [word for shard in shards for word in shard if not word.startswith("-")]
    return ["tests", *(f"--ignore={path}" for path in paths)]


# `make check` runs the repository rules.
EVERYTHING = (*SHARDS[:2], [*rest_of(SHARDS), "--ignore=tests/tidy"], *SHARDS[2:])

SUITES = {
    "quick": Suite(
        shards=QUICK, options=("-m", "not full", "--hypothesis-profile=quick"), has_kafka=False
    ),
    "test": Suite(shards=EVERYTHING, options=("-m", "not full"), has_kafka=True),
    "full": Suite(
        shards=EVERYTHING,
        options=("-m", "full or hypothesis", "--hypothesis-profile=full"),
        has_kafka=True,
    ),
}


class Runner:
    def __init__(self, options: Sequence[str], environment: Mapping[str, str]) -> None:
        self._options = options
        self._environment = environment
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._is_stopped = False

    def run(self, shard: Sequence[str]) -> Result:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            report = Path(name) / "report.xml"
            cache = Path(name) / "cache"
            words = [sys.executable, "-m", "pytest", *shard, *self._options]
            words += [f"--junitxml={report}", "-o", f"cache_dir={cache}"]
            status, output = self._call(words)
            return Result(
                title=" ".join(word for word in shard if not word.startswith("-")),
                status=0 if status == NO_TESTS_COLLECTED else status,
                output=output,
                seconds=time.monotonic() - started,
                durations=read_durations(report) if report.exists() else {},
                failed=read_failed(cache),
            )

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            for process in self._running:
                process.terminate()

    def _call(self, words: Sequence[str]) -> tuple[int, str]:
        with self._lock:
            if self._is_stopped:
                return 1, ""
            process = subprocess.Popen(
                words,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=self._environment,
            )
            self._running.add(process)
        output, _ = process.communicate()
        with self._lock:
            self._running.discard(process)
        return process.returncode, output


def read_durations(report: Path) -> dict[str, float]:
    """The seconds of every test, from a JUnit report that pytest has written."""
    return {
        f"{case.get('classname')}::{case.get('name')}": float(case.get("time") or 0)
        for case in ET.parse(report).iter("testcase")  # noqa: S314  # pytest wrote it
    }


def read_failed(cache: Path) -> list[str]:
    """The node ids of the failed tests, from the cache of pytest."""
    path = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(path.read_text())) if path.exists() else []


def slowest(results: Sequence[Result], count: int) -> list[tuple[float, str]]:
    every = ((seconds, name) for each in results for name, seconds in each.durations.items())
    return sorted(every, reverse=True)[:count]


def run_shards(runner: Runner, shards: Sequence[Sequence[str]]) -> list[Result]:
    """Prints the output of each shard when it ends."""
    results = []
    with ThreadPoolExecutor(LANES) as pool:
        running = [pool.submit(runner.run, shard) for shard in shards]
        try:
            for ended in as_completed(running):
                result = ended.result()
                print(f"== {result.title} ({result.seconds:.0f} s)\n{result.output}", flush=True)
                results.append(result)
        except BaseException:
            runner.stop()
            raise
    return results


def rerun(runner: Runner, results: Sequence[Result]) -> list[Result]:
    """Run the failed tests again, one shard after the other; the results of the shards then."""
    final = []
    for result in results:
        if not result.may_rerun:
            final.append(result)
            continue
        again = runner.run(result.failed)
        print(f"== Second run of failed tests of {result.title}\n{again.output}", flush=True)
        final.append(replace(result, status=again.status))
    return final


def print_verdict(results: Sequence[Result], final: Sequence[Result], seconds: float) -> bool:
    """Whether all tests passed, at least in their second run."""
    print(f"== The {SLOWEST} slowest tests")
    for duration, test in slowest(results, SLOWEST):
        print(f"{duration:7.1f} s  {test}")
    for first, second in zip(results, final, strict=True):
        if first.status != 0 and second.status == 0:
            print(f"== UNSTABLE, passed in the second run: {', '.join(first.failed)}")
    failed = [result.title for result in final if result.status != 0]
    verdict = f"FAILED: {', '.join(failed)}" if failed else "All passed"
    print(f"== {verdict} in {seconds:.0f} s")
    return not failed


def main(name: str) -> int:
    suite = SUITES[name]
    started = time.monotonic()
    environment = dict(os.environ)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tests-")))
        if suite.has_kafka:
            try:
                kafka = stack.enter_context(shared_kafka(directory))
                environment[ADDRESS] = kafka.bootstrap_servers
            except Unavailable as reason:
                # Tests that need it are skipped, or fail with CI=true.
                print(reason)
        runner = Runner(suite.options, environment)
        results = run_shards(runner, suite.shards)
        # Pure tests have no excuse.
        final = rerun(runner, results) if suite.has_kafka else results
    return 0 if print_verdict(results, final, time.monotonic() - started) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
