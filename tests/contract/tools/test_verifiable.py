"""The programs of Kafka's system tests, which generate load and verify the result."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import (
    committed,
    create_topic_with_leaders,
    describe,
    end_offsets,
    write,
)
from tests.contract.tools.tool_runner import Running, Tools, own_process
from tests.node.served_node import ServedNode
from tests.wait import wait_until

COMPACTED = 100_000
"""A few megabytes of records, so that there are segments to compact."""


@pytest.fixture(scope="module", autouse=True)
def compacting(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Starts before all other tests of this file, because it mostly waits."""
    settings = {"log.segment.bytes": 1 << 20, "log.retention.check.interval.ms": 50}
    with ServedNode(tmp_path_factory.mktemp("compacting"), settings) as served:
        yield tools.start(
            "LogCompactionTester",
            *("--bootstrap-server", served.bootstrap_servers, "--messages", f"{COMPACTED}"),
            *("--duplicates", "20", "--percent-deletes", "10", "--sleep", "2"),
        )


class Program:
    """It prints one event per line."""

    def __init__(self, process: "subprocess.Popen[bytes]", output: Path) -> None:
        self.process = process
        self._output = output

    @property
    def output(self) -> str:
        return self._output.read_text("utf-8")

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = self.output.splitlines()
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in events if event["name"] == name]

    def terminate(self) -> None:
        self.process.terminate()
        self.process.wait(20)


@contextmanager
def started(folder: Path, tool: str, *arguments: str) -> Iterator[Program]:
    output = folder / f"{tool}.{len(list(folder.iterdir()))}"
    with output.open("wb") as out:
        process = subprocess.Popen(own_process(tool, *arguments), stdout=out, stderr=out)
    try:
        yield Program(process, output)
    finally:
        process.kill()
        process.wait()


def test_every_record_is_acknowledged_with_its_offset(cluster: Cluster, tmp_path: Path) -> None:
    topic = create_topic_with_leaders(cluster, 2)
    arguments = ("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic, "--acks", "-1")

    with started(
        tmp_path, "kafka-verifiable-producer", *arguments, "--max-messages", "200"
    ) as program:
        program.process.wait(60)
        sent = program.events("producer_send_success")
        errors = program.events("producer_send_error")
        (data,) = program.events("tool_data")

    places = {(event["partition"], event["offset"]) for event in sent}
    assert errors == []
    assert (data["sent"], data["acked"]) == (200, 200)
    assert len(places) == 200
    assert sum(end_offsets(cluster, topic)) == 200


@pytest.mark.parametrize("strategy", ["RangeAssignor", "CooperativeStickyAssignor"])
def test_a_member_takes_over_all_partitions_when_the_other_stops(
    cluster: Cluster, tmp_path: Path, strategy: str
) -> None:
    topic, group = cluster.create_topic(4), cluster.unique_name("group")
    hasty = tmp_path / "hasty"
    hasty.write_text("heartbeat.interval.ms=100\n", "utf-8")
    arguments = ["--bootstrap-server", cluster.bootstrap_servers, "--topic", topic]
    arguments += ["--group-id", group, "--session-timeout", "6000", "--reset-policy", "earliest"]
    arguments += ["--assignment-strategy", f"org.apache.kafka.clients.consumer.{strategy}"]
    arguments += ["--command-config", f"{hasty}"]
    tool = "kafka-verifiable-consumer"

    with (
        started(tmp_path, tool, *arguments) as first,
        started(tmp_path, tool, *arguments) as second,
    ):
        wait_until(lambda: shares(cluster, group) == [2, 2], 60, "they share")
        for partition in range(4):
            write(cluster, topic, 5, partition=partition)
        ends = {(topic, partition): 5 for partition in range(4)}
        wait_until(lambda: committed(cluster, group) == ends, 30, "all is committed")
        first.terminate()
        wait_until(lambda: shares(cluster, group) == [4], 30, "one has all")
        second.terminate()
        programs = (first, second)

    assert all(program.events("shutdown_complete") for program in programs)
    commits = [event for program in programs for event in program.events("offsets_committed")]
    assert commits
    assert all(event["success"] for event in commits)
    consumed = [event for program in programs for event in program.events("records_consumed")]
    assert sum(event["count"] for event in consumed) == 20


def shares(cluster: Cluster, group: str) -> list[int]:
    """How many partitions each member has in a stable group."""
    if group not in cluster.run("kafka-consumer-groups", "--list", "--state", "stable").out:
        return []
    rows = describe(cluster, group, "--members")
    return sorted(int(row["#PARTITIONS"]) for row in rows)


def test_the_replica_verification_tool_passes(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic(2)
    write(cluster, topic, 50, partition=1)
    arguments = ["--broker-list", cluster.bootstrap_servers, "--topics-include", topic]
    arguments += ["--report-interval-ms", "200", "--time", "-2"]

    with started(tmp_path, "kafka-replica-verification", *arguments) as program:
        wait_until(lambda: "max lag is 0" in program.output, 60, "it has caught up")

    assert "doesn't match" not in program.output


@pytest.mark.full
def test_compaction_keeps_the_last_value_of_every_key(compacting: Running) -> None:
    """Every key is written 20 times or deleted, and read during compaction."""
    ended = compacting.wait()

    assert ended.code == 0, ended
    rows = re.search(r"(\d+) rows of data produced, (\d+) rows of data consumed", ended.out)
    assert rows is not None
    produced, consumed = map(int, rows.groups())
    assert produced == COMPACTED
    assert consumed < produced / 2
    assert re.search(r"^Validated [1-9]\d* values, 0 mismatches\.$", ended.out, re.MULTILINE)
