"""Kafka's performance tools; the tests check what arrives, not the measured numbers."""

import re

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import create_topic_with_leaders, end_offsets

RECORDS = 5_000


def test_the_producer_test_sends_all_records(cluster: Cluster) -> None:
    topic = create_topic_with_leaders(cluster, 3)

    for acks in ("1", "all"):
        arguments = ("--num-records", f"{RECORDS}", "--record-size", "100", "--throughput", "-1")
        ended = cluster.run(
            "kafka-producer-perf-test",
            "--topic",
            topic,
            *arguments,
            "--command-property",
            f"acks={acks}",
        )
        assert re.search(rf"^{RECORDS} records sent, ", ended.out, re.MULTILINE), ended

    assert sum(end_offsets(cluster, topic)) == 2 * RECORDS


def test_the_consumer_test_reads_all_records(cluster: Cluster) -> None:
    topic = create_topic_with_leaders(cluster, 3)
    arguments = ("--num-records", f"{RECORDS}", "--record-size", "100", "--throughput", "-1")
    cluster.run("kafka-producer-perf-test", "--topic", topic, *arguments)

    options = ("--num-records", f"{RECORDS}", "--hide-header", "--timeout", "30000")
    ended = cluster.run("kafka-consumer-perf-test", "--topic", topic, *options)

    columns = ended.lines[-1].split(", ")
    assert int(columns[4]) == RECORDS


def test_the_end_to_end_latency_test_passes(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    arguments = ("--num-records", "50", "--producer-acks", "all", "--record-size", "100")

    ended = cluster.run("kafka-e2e-latency", "--topic", topic, *arguments)

    assert re.search(r"^Avg latency: [\d.]+ ms$", ended.out, re.MULTILINE)
    assert end_offsets(cluster, topic) == [50]
