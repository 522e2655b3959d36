"""Produce and fetch, measured by Kafka's own tools such as kafka-producer-perf-test.

A tool is a Java process on one core; the broker has another. Throughput is measured at full speed,
latency at a steady 10 MB/s, because a full buffer hides it. Records are in the page cache on both
sides, which is Kafka's default. If the tool's core is busier than the broker's, the result is the
tool's limit; the rows per CPU second of the broker still compare the brokers.
"""

import os
import re
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bench.beside_kafka.contest import Quantity, Sample, both, contest, tell_beside
from bench.kit.brokers import LOAD_CORE, Broker, CannotDo
from bench.kit.client import Client
from bench.kit.figures import Figure, at_least
from bench.kit.harness import Effort
from bench.kit.load_driver import held
from kohort.types import Millis, Topic
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.apache import java
from tests.apache.jars import find_classpath

SIZES: Final = {"100 B": 100, "1 KB": 1_000}
CODECS: Final = ("none", "lz4")
ACKS: Final = ("1", "all")
PARTITIONS: Final = 10
GROWTH: Final = (1, 100)
"""Numbers of partitions of additional rows; all other rows have 10."""

BYTES: Final = 400_000_000
"""Bytes per run: some seconds. One eighth of it is warm-up."""
STEADY_BYTES_PER_S: Final = 10_000_000
STEADY_S: Final = 5
ROUND_TRIPS: Final = 3_000
PATIENCE_S: Final = 300

_HOME: Final = "org.apache.kafka.tools."
_JAVA: Final = ("-server", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
TARGET: Final = at_least(0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    title: str
    size: int
    codec: str
    acks: str
    partitions: int
    total_bytes: int

    @property
    def records(self) -> int:
        return self.total_bytes // self.size

    @property
    def topic(self) -> str:
        return f"perf-{self.size}-{self.codec}-{self.acks}-{self.partitions}"


def measure(effort: Effort) -> Iterator[Figure]:
    total = effort.pick(BYTES, BYTES // 200)
    with both() as brokers:
        for load in loads(total, is_quick=effort.is_quick):
            yield from turn_about(brokers, effort, load)
        yield from round_trips(brokers, effort)


def loads(total_bytes: int, *, is_quick: bool) -> Iterator[Load]:
    """Every size, codec and acks setting; then fewer and more partitions."""
    for title, size in SIZES.items():
        for codec in CODECS:
            for acks in ACKS:
                yield Load(
                    title=f"{title}, {codec}, acks {acks}",
                    size=size,
                    codec=codec,
                    acks=acks,
                    partitions=PARTITIONS,
                    total_bytes=total_bytes,
                )
                if is_quick:
                    return
    for partitions in GROWTH:
        yield Load(
            title=f"1 KB, none, acks 1, {partitions} partitions",
            size=1_000,
            codec="none",
            acks="1",
            partitions=partitions,
            total_bytes=total_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The output of a tool, and its cost. Shares are CPU seconds per second."""

    said: str
    generator: float
    broker: float
    broker_cpu_s: float


def turn_about(brokers: tuple[Broker, ...], effort: Effort, load: Load) -> Iterator[Figure]:
    produced = Quantity(name=f"produce, {load.title}", unit="MB/s", target=TARGET)
    latency = Quantity(name=f"produce, {load.title}, p99 at 10 MB/s", unit="ms")
    fetched = Quantity(name=f"fetch, {load.title}", unit="MB/s", target=TARGET)
    steady = Load(
        title=load.title,
        size=load.size,
        codec=load.codec,
        acks=load.acks,
        partitions=load.partitions,
        total_bytes=STEADY_BYTES_PER_S * effort.pick(STEADY_S, 1),
    )
    # Fetching does not depend on the acks of the producer.
    is_fetched = load.acks == "1"
    for broker in brokers:
        broker.create_topic(load.topic, load.partitions)

    def run(broker: Broker) -> Iterator[Sample]:
        ran = produce(broker, load, -1)
        yield from samples(produced, load, ran, read_produced(ran.said)[0])
        ran = produce(broker, steady, STEADY_BYTES_PER_S // load.size)
        yield Sample(quantity=latency.name, amount=read_produced(ran.said)[1])
        if is_fetched:
            ran = fetch(broker, load)
            yield from samples(fetched, load, ran, read_fetched(ran.said, load.records))

    wanted = [produced, for_cpu(produced), latency]
    wanted += [fetched, for_cpu(fetched)] if is_fetched else []
    yield from contest(brokers, effort.rounds, wanted, run)
    for broker in brokers:
        delete_topic(broker, load.topic)


def for_cpu(rate: Quantity) -> Quantity:
    return Quantity(name=f"{rate.name}, per CPU second", unit="MB")


def samples(rate: Quantity, load: Load, ran: Ran, per_second: float) -> Iterator[Sample]:
    yield Sample(quantity=rate.name, amount=per_second, generator=ran.generator, broker=ran.broker)
    amount = load.total_bytes / 1e6 / ran.broker_cpu_s
    yield Sample(quantity=for_cpu(rate).name, amount=amount)


def produce(broker: Broker, load: Load, throughput: int) -> Ran:
    return run_tool(
        broker,
        "ProducerPerformance",
        *("--topic", load.topic, "--num-records", f"{load.records}"),
        *("--record-size", f"{load.size}", "--throughput", f"{throughput}"),
        *("--warmup-records", f"{load.records // 8}"),
        *("--bootstrap-server", f"127.0.0.1:{broker.port}"),
        *("--command-property", f"acks={load.acks}", f"compression.type={load.codec}"),
    )


def read_produced(said: str) -> tuple[float, float]:
    """MB/s and p99 latency after warm-up, from the last line."""
    found = re.findall(r"\(([\d.,]+) MB/sec\).*?([\d.,]+) ms 99th", said)
    if not found:
        raise CannotDo(f"the producer tool said: {said[-300:]}")
    rate, p99 = found[-1]
    # The tool counts in 1024s.
    return float(rate.replace(",", "")) * 1.048576, float(p99.replace(",", ""))


def fetch(broker: Broker, load: Load) -> Ran:
    return run_tool(
        broker,
        "ConsumerPerformance",
        *("--topic", load.topic, "--num-records", f"{load.records}", "--hide-header"),
        *("--bootstrap-server", f"127.0.0.1:{broker.port}", "--timeout", "60000"),
    )


def read_fetched(said: str, records: int) -> float:
    """MB/s since partitions were assigned, from the last line."""
    lines = [line.split(",") for line in said.splitlines() if line.count(",") == 9]
    if not lines or int(lines[-1][4]) < records:
        raise CannotDo(f"the consumer tool said: {said[-300:]}")
    return float(lines[-1][8]) * 1.048576


def round_trips(brokers: tuple[Broker, ...], effort: Effort) -> Iterator[Figure]:
    """Latency from producer to consumer, one record at a time."""
    count = effort.pick(ROUND_TRIPS, 100)
    median = Quantity(name="producer to consumer, 1 KB, acks 1, p50", unit="ms")
    worst = Quantity(name="producer to consumer, 1 KB, acks 1, p99", unit="ms")

    def run(broker: Broker) -> Iterator[Sample]:
        broker.create_topic("trips", 1)
        words = ["--bootstrap-server", f"127.0.0.1:{broker.port}", "--topic", "trips"]
        words += ["--num-records", f"{count}", "--producer-acks", "1", "--record-size", "1000"]
        p50, p99 = read_round_trips(run_tool(broker, "EndToEndLatency", *words).said)
        yield Sample(quantity=median.name, amount=p50)
        yield Sample(quantity=worst.name, amount=p99)

    yield from contest(brokers, effort.rounds, (median, worst), run)


def read_round_trips(said: str) -> tuple[float, float]:
    found = re.search(r"50th = ([\d.]+), 99th = ([\d.]+)", said)
    if found is None:
        raise CannotDo(f"the latency tool said: {said[-300:]}")
    return float(found[1]), float(found[2])


def run_tool(broker: Broker, name: str, *arguments: str) -> Ran:
    words = java.command(find_classpath(), _HOME + name, *arguments, heap_mb=512, options=_JAVA)
    with held(broker), on_load_core():
        began, cpu_before, tools_before = time.monotonic(), broker.cpu_s, _children_cpu_s()
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise CannotDo(f"{broker.name}: {name} took more than {PATIENCE_S} s") from None
        seconds, cpu_s = time.monotonic() - began, broker.cpu_s - cpu_before
        generator = (_children_cpu_s() - tools_before) / seconds
    if done.returncode:
        raise CannotDo(f"{broker.name}: {name}: {(done.stderr or done.stdout)[-300:]}")
    return Ran(said=done.stdout, generator=generator, broker=cpu_s / seconds, broker_cpu_s=cpu_s)


def _children_cpu_s() -> float:
    """CPU of ended child processes. Brokers are still running, so only tools count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def on_load_core() -> Iterator[None]:
    """Processes started in this block run on the generator's core, with all their threads."""
    usual = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {LOAD_CORE})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usual)


def delete_topic(broker: Broker, topic: str) -> None:
    """Free the disk space of a finished run."""
    request = DeleteTopicsRequest(
        topics=(DeleteTopicState(name=Topic(topic)),), timeout_ms=Millis(30_000)
    )
    with Client(broker.port) as client:
        client.ask(request, 6)


if __name__ == "__main__":
    tell_beside(__doc__, measure)
