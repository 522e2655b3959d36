"""Reading a topic: our consumer compared with kafka-python, and with aiokafka, which decodes in C.

All read the same topics from the same node by turns, each in a separate process. The node has its
own core. CPU time is the reader's cost per record. Wall-clock time includes the node and other
processes. The peer is the other library: a ratio of at most the target meets it.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from random import Random

from confluent_kafka import Producer

from bench.kit.harness import Effort, Result, tell
from bench.kit.topic_reader import PARTITIONS, READERS
from bench.node import NODE_CORE, Served, serve

READER_CORE = "1" if NODE_CORE != "-" else "-"

TARGETS = {"kafka-python": 0.333, "aiokafka": 0.833}
"""Three times as fast, and 1.2 times."""

WORKLOADS = {
    "100 B": (400_000, 100, 100),
    "20 to 180 B": (400_000, 20, 180),
    "1 KB": (100_000, 1000, 1000),
}
"""How many records, and of which size at least and at most."""


def produce(served: Served, topic: str, count: int, least: int, most: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{served.port}",
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "acks": 1,
        }
    )
    dice = Random(7)  # noqa: S311  # the same sizes every time
    content = dice.randbytes(most)
    for number in range(count):
        producer.produce(
            topic,
            content[: dice.randint(least, most)],
            b"key-%07d" % number,
            partition=number % PARTITIONS,
        )
        producer.poll(0)
    assert producer.flush(120) == 0


def read(library: str, served: Served, topic: str, count: int) -> dict[str, float]:
    words = (library, str(served.port), topic, str(count), READER_CORE)
    done = subprocess.run(
        [sys.executable, "-m", "bench.kit.topic_reader", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    report: dict[str, float] = json.loads(done.stdout)
    return report


def measure(effort: Effort) -> Iterator[Result]:
    """A round takes seconds, so a fifth of the usual number of rounds is enough."""
    settings = ("kohort.durability=os", f"num.partitions={PARTITIONS}")
    with (
        tempfile.TemporaryDirectory(prefix="kohort-bench-") as data,
        serve(data, *settings) as node,
    ):
        for workload, (full, least, most) in WORKLOADS.items():
            count = effort.pick(full, full // 20)
            topic = workload.replace(" ", "-")
            produce(node, topic, count, least, most)
            costs: dict[tuple[str, str], list[float]] = defaultdict(list)
            sums = set()
            for number in range(max(1, effort.rounds // 5)):
                libraries = list(READERS)
                for library in libraries if number % 2 else reversed(libraries):
                    report = read(library, node, topic, count)
                    sums.add(report["sum"])
                    for clock in ("cpu_s", "wall_s"):
                        costs[library, clock].append(report[clock] / count * 1e6)
            assert len(sums) == 1, "the libraries have read different records"
            yield from compare(workload, costs)


def compare(workload: str, costs: dict[tuple[str, str], list[float]]) -> Iterator[Result]:
    """The cost of one record in CPU time and in wall-clock time."""
    medians = {key: statistics.median(each) for key, each in costs.items()}
    for peer, target in TARGETS.items():
        for clock, name in (("cpu_s", "CPU"), ("wall_s", "wall")):
            ours = medians["kohort", clock]
            yield Result(
                metric=f"{workload}, {name}, {peer} ({1e6 / ours:,.0f}/s)",
                kohort=ours,
                peer=medians[peer, clock],
                target=target if clock == "cpu_s" else None,
            )


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    tell(__doc__ or "", "peer", measure)
