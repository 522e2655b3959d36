"""kafka-dump-log reads every file in a Kohort data directory."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import commit
from tests.contract.tools.conftest import SETTINGS
from tests.contract.tools.tool_runner import Tools
from tests.node.served_node import ServedNode

RECORDS = 30_000
"""Of 100 bytes each: four segments of 1 MB, the smallest segment size."""

GROUP = "readers"

_BATCH = re.compile(
    r"^baseOffset: (?P<first>\d+) lastOffset: (?P<last>\d+) count: (?P<count>\d+) .*"
    r" position: (?P<position>\d+) .* isvalid: (?P<valid>\w+)$",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def data(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a stopped broker, with records in `numbers` and a group."""
    settings = {**SETTINGS, "offsets.topic.num.partitions": 1}
    with ServedNode(tmp_path_factory.mktemp("dumped"), settings) as served:
        cluster = Cluster(name="kohort", bootstrap_servers=served.bootstrap_servers, tools=tools)
        config = ("--config", "segment.bytes=1048576")
        cluster.run("kafka-topics", "--create", "--topic", "numbers", *config)
        arguments = ("--num-records", f"{RECORDS}", "--record-size", "100", "--throughput", "-1")
        cluster.run("kafka-producer-perf-test", "--topic", "numbers", *arguments)
        reading = ("--topic", "numbers", "--from-beginning", "--max-messages", "10")
        cluster.run("kafka-console-consumer", *reading, "--group", GROUP)
        commit(cluster, "gone", {("numbers", 0): 5})
        cluster.run("kafka-consumer-groups", "--delete", "--group", "gone")
        assert served.stop() == 0
    return served.data


def files(directory: Path, *endings: str) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix in endings)


def dump(tools: Tools, paths: Sequence[Path], *options: str) -> str:
    ended = tools.run("kafka-dump-log", "--files", ",".join(map(str, paths)), *options)
    assert (ended.code, ended.err) == (0, ""), ended
    return ended.out


def test_batches_are_contiguous_and_valid(tools: Tools, data: Path) -> None:
    logs = files(data / "numbers-0", ".log")

    batches = list(_BATCH.finditer(dump(tools, logs)))

    assert len(logs) > 2
    assert {batch["valid"] for batch in batches} == {"true"}
    ends = [int(batch["last"]) + 1 for batch in batches]
    assert [int(batch["first"]) for batch in batches] == [0, *ends[:-1]]
    assert ends[-1] == sum(int(batch["count"]) for batch in batches) == RECORDS


def test_records_are_contiguous(tools: Tools, data: Path) -> None:
    first, second, *_ = files(data / "numbers-0", ".log")

    # The tool reports offsets that are not contiguous.
    output = dump(tools, [first], "--deep-iteration")

    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", output, re.MULTILINE)]
    assert offsets == list(range(int(second.stem)))


def test_every_index_passes_the_sanity_check(tools: Tools, data: Path) -> None:
    indexes = files(data / "numbers-0", ".index", ".timeindex")
    indexes += files(data / "__consumer_offsets-0", ".index", ".timeindex")

    output = dump(tools, indexes, "--index-sanity-check")

    assert len(indexes) > 4
    for path in indexes:
        verdict = "passed sanity check." if path.stat().st_size else "is empty."
        assert f"{path} {verdict}" in output


def test_every_index_entry_points_to_its_batch(tools: Tools, data: Path) -> None:
    indexes = files(data / "numbers-0", ".index", ".timeindex")

    output = dump(tools, indexes, "--verify-index-only")

    # The tool prints the file name, and then the errors.
    assert [line for line in output.splitlines() if line.strip()] == [
        f"Dumping {path}" for path in indexes
    ]


def test_index_entries_match_the_log(tools: Tools, data: Path) -> None:
    log, *_ = files(data / "numbers-0", ".log")
    index, *_ = files(data / "numbers-0", ".index")

    batches = {
        (int(batch["last"]), int(batch["position"]))
        for batch in _BATCH.finditer(dump(tools, [log]))
    }
    entries = re.findall(r"^offset: (\d+) position: (\d+)$", dump(tools, [index]), re.MULTILINE)

    assert len(entries) > 10
    assert {(int(offset), int(position)) for offset, position in entries} <= batches


def test_a_producer_snapshot_has_the_last_sequence(tools: Tools, data: Path) -> None:
    *_, newest = files(data / "numbers-0", ".snapshot")

    *_, last = [line for line in dump(tools, [newest]).splitlines() if line.strip()]

    assert f"lastSequence: {RECORDS - 1} lastOffset: {RECORDS - 1} " in last
    assert "producerEpoch: 0 " in last


def test_group_records_can_be_read(tools: Tools, data: Path) -> None:
    logs = files(data / "__consumer_offsets-0", ".log")

    records = list(pairs(dump(tools, logs, "--offsets-decoder")))

    kept = dict(records)
    assert kept[f"2 {GROUP} None None"]["members"] == []
    assert kept[f"2 {GROUP} None None"]["generation"] == 2
    assert kept[f"1 {GROUP} numbers 0"]["offset"] == 10
    assert kept["1 gone numbers 0"] is None
    (formed,) = [
        content for key, content in records if content and len(content.get("members", ())) == 1
    ]
    (member,) = formed["members"]
    assert member["subscription"]["topics"] == ["numbers"]
    assert member["assignment"]["assignedPartitions"] == [{"topic": "numbers", "partitions": [0]}]


def pairs(text: str) -> Iterator[tuple[str, Any]]:
    """Keys as text and decoded values; None for tombstones."""
    line = re.compile(r"^\| .* key: (\{.*?\}\}) payload: (.*)$", re.MULTILINE)
    for key_text, value_text in line.findall(text):
        key = json.loads(key_text)
        name = key["data"]
        arguments = (key["type"], name["group"], name.get("topic"), name.get("partition"))
        content = None if value_text == "<DELETE>" else json.loads(value_text)["data"]
        yield " ".join(map(str, arguments)), content
