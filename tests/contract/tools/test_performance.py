"""Kafka's own measuring tools: what they sent arrives, whatever they measured."""

import re

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.working import create_led_topic, end_offsets

RECORDS = 5_000


def test_the_producer_test_sends_all_it_should(cluster: Cluster) -> None:
    topic = create_led_topic(cluster, 3)

    for acks in ("1", "all"):
        words = ("--num-records", f"{RECORDS}", "--record-size", "100", "--throughput", "-1")
        ended = cluster.run(
            "kafka-producer-perf-test",
            "--topic",
            topic,
            *words,
            "--command-property",
            f"acks={acks}",
        )
        assert re.search(rf"^{RECORDS} records sent, ", ended.out, re.MULTILINE), ended

    assert sum(end_offsets(cluster, topic)) == 2 * RECORDS


def test_the_consumer_test_reads_all_there_is(cluster: Cluster) -> None:
    topic = create_led_topic(cluster, 3)
    words = ("--num-records", f"{RECORDS}", "--record-size", "100", "--throughput", "-1")
    cluster.run("kafka-producer-perf-test", "--topic", topic, *words)

    wishes = ("--num-records", f"{RECORDS}", "--hide-header", "--timeout", "30000")
    ended = cluster.run("kafka-consumer-perf-test", "--topic", topic, *wishes)

    columns = ended.lines[-1].split(", ")
    assert int(columns[4]) == RECORDS


def test_records_go_to_and_fro_one_by_one(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    words = ("--num-records", "50", "--producer-acks", "all", "--record-size", "100")

    ended = cluster.run("kafka-e2e-latency", "--topic", topic, *words)

    assert re.search(r"^Avg latency: [\d.]+ ms$", ended.out, re.MULTILINE)
    assert end_offsets(cluster, topic) == [50]
