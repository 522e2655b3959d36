"""What Kohort adds to a test: the fixture of the pytest plugin, its helpers, and a fresh node.

The fixture is measured with test functions that create one topic in their own namespace, beside
the same number of empty functions, each in a pytest process; the start of the node is a part of it.
A fresh node is started and stopped in this process. The other side is the wanted time.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import kohort
from bench.kit.brokers import compiled_python
from bench.kit.figures import Figure, Taken, at_most
from bench.kit.harness import Effort, tell
from kohort.testing.namespace import Namespace
from kohort.testing.real_cluster import RealCluster

_EMPTY = "import pytest\n@pytest.mark.parametrize('n', range({count}))\ndef test_(n):\n    pass\n"
_USED = _EMPTY.replace("(n)", "(n, kohort_cluster)").replace("pass", "kohort_cluster.topic()")

_PLUGIN = "kohort.testing.pytest_plugin"


def measure(effort: Effort) -> Iterator[Figure]:
    tests, nodes = effort.pick(1000, 50), effort.pick(50, 5)
    yield _figure("namespace and topic of one test", _fixture_ms(effort.rounds, tests), 5)
    yield _figure("start and stop of a fresh node", [_node_ms() for _ in range(nodes)], 50)
    yield from _helpers(effort.pick(500, 20))


def _figure(metric: str, samples: list[float], wanted_ms: float) -> Figure:
    return Figure(
        metric=metric,
        unit="ms",
        kohort=Taken(samples=tuple(samples)),
        peer=Taken(samples=(wanted_ms,)),
        target=at_most(1),
    )


def _fixture_ms(rounds: int, tests: int) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as directory:
        files = [Path(directory) / "test_empty.py", Path(directory) / "test_used.py"]
        for file, text in zip(files, (_EMPTY, _USED), strict=True):
            file.write_text(text.format(count=tests), "utf-8")
        empty, used = files
        # The first run compiles the modules.
        _pytest_ms(used)
        return [(_pytest_ms(used) - _pytest_ms(empty)) / tests for _ in range(rounds)]


def _pytest_ms(file: Path) -> float:
    words = ["-p", _PLUGIN, "-p", "no:cacheprovider", "-q", f"--rootdir={file.parent}", f"{file}"]
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **compiled_python()},
    )
    return (time.perf_counter() - start) * 1000


def _node_ms() -> float:
    return _call_ms(lambda: kohort.Node().__enter__().__exit__(None, None, None))


def _helpers(count: int) -> Iterator[Figure]:
    with kohort.Node() as node:
        cluster = RealCluster(node.bootstrap_servers)
        topics = [f"topic-{number}" for number in range(count)]
        cluster.create_topic("all")
        creations = [_call_ms(partial(cluster.create_topic, name)) for name in topics]
        yield _figure("create_topic", creations, 1)
        appends = [_call_ms(partial(cluster.produce, name, ["1"])) for name in topics]
        yield _figure("produce of one record", appends, 1)
        reads = [_call_ms(partial(cluster.records, name)) for name in topics]
        yield _figure("records of a topic with one", reads, 1)
        namespaces = [_call_ms(lambda: Namespace(cluster).close()) for _ in topics]
        yield _figure("empty namespace", namespaces, 1)
        cluster.disconnect()


def _call_ms(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    tell(__doc__, "wanted", measure, rounds=3)
