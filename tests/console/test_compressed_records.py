"""The page of records when small compressed batches hold very much."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kohort.console.url_encoding import topic_path
from kohort.types import Millis, Topic
from kohort.wire.batch import NewBatch, NewRecord, encode
from kohort.wire.compression import Codec
from tests.client.node_cluster import Cluster
from tests.console.http_client import HttpClient
from tests.node.broker_harness import produce_request

MEGABYTE = 1024 * 1024


def compressed_batch(*sizes: int, codec: Codec = Codec.ZSTD) -> bytes:
    """A batch with one record per size, whose value has that many zero bytes."""
    records = tuple(
        NewRecord(key=b"k", value=bytes(size), timestamp=Millis(1_700_000_000_000))
        for size in sizes
    )
    return encode(NewBatch(records=records, codec=codec))


def produce(node: Cluster, topic: Topic, *batches: bytes) -> None:
    for batch in batches:
        response = node.ask(produce_request(batch, topic, acks=-1), 9)
        assert response.responses[0].partition_responses[0].error_code == 0


def test_a_batch_with_a_huge_expansion_is_not_shown(node: Cluster, client: HttpClient) -> None:
    topic = node.create_topic()
    huge = compressed_batch(10 * MEGABYTE, 10 * MEGABYTE)
    produce(node, topic, compressed_batch(3), huge, compressed_batch(4))
    path = f"{topic_path(topic)}/records"

    page = client.get(path)
    data = client.json(path)["page"]

    sizes = [each["value"] and each["value"]["size"] for each in data["records"]]
    assert sizes == [3, None, 4]
    assert [each["offset"] for each in data["records"]] == [0, 1, 3]
    assert data["records"][1]["too_large"] == {
        "last_offset": 2,
        "compressed_bytes": len(huge) - 61,
    }
    assert (data["next"], data["error"]) == (4, "")
    assert "Offsets 1 to 2 are too large to show" in page.text


def test_a_single_record_can_be_too_large(node: Cluster, client: HttpClient) -> None:
    topic = node.create_topic()
    produce(node, topic, compressed_batch(20 * MEGABYTE))

    page = client.get(f"{topic_path(topic)}/records")

    assert re.search(r"Too large to show: [0-9.]+ \w?B compressed", page.text)


def test_a_page_stops_when_it_would_decompress_too_much(node: Cluster, client: HttpClient) -> None:
    topic = node.create_topic()
    produce(node, topic, *[compressed_batch(20 * MEGABYTE)] * 18)
    path = f"{topic_path(topic)}/records"

    first = client.json(f"{path}?offset=0")["page"]
    second = client.json(f"{path}?offset={first['next']}")["page"]

    assert "the page is incomplete" in first["error"]
    assert first["next"] == len(first["records"]) == 16
    assert (second["next"], second["error"]) == (18, "")


def test_any_record_of_a_batch_of_very_many_is_found(node: Cluster, client: HttpClient) -> None:
    topic = node.create_topic()
    produce(node, topic, compressed_batch(*[0] * 100_000))

    data = client.json(f"{topic_path(topic)}/records?offset=99998")["page"]

    assert [each["offset"] for each in data["records"]] == [99_998, 99_999]


def test_memory_does_not_grow_with_the_size_of_the_records(node: Cluster) -> None:
    topic = node.create_topic()
    produce(node, topic, *[compressed_batch(15 * MEGABYTE)] * 40)
    words = ("console", "--bootstrap", node.bootstrap_servers, "--listen", "127.0.0.1:0")
    with subprocess.Popen(
        [sys.executable, "-m", "kohort", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            client = HttpClient(process.stdout.readline().split()[-1])
            client.json(f"{topic_path(topic)}/records?count=1")
            before = peak_bytes(process.pid)

            with ThreadPoolExecutor(8) as askers:
                path = f"{topic_path(topic)}/records?count=200"
                statuses = {each.status for each in askers.map(client.get, [path] * 8)}

            grown = peak_bytes(process.pid) - before
        finally:
            process.kill()

    assert 200 in statuses
    assert statuses <= {200, 503}
    assert grown < 300 * MEGABYTE


def peak_bytes(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("utf-8"))
    assert found is not None
    return int(found[1]) * 1024
