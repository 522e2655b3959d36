"""The generated files are complete, ordered, and readable by Kohort and by Kafka's tools."""

import json
import re
import shutil
from pathlib import Path

from kohort.coordinator.coordinator import Coordinator
from kohort.events.internal_topics import partition_of
from kohort.log.catalog import Catalog
from kohort.types import Millis, Partition, Topic, TopicPartition
from kohort.wire.batch import split, verify_crc
from tests.apache.unavailable import Unavailable, skip
from tests.contract.tools.tool_runner import Tools
from tests.histories.conftest import OPTIONS, GeneratedHistories
from tests.histories.reader import read_lines, read_records, read_segments
from tools.histories.generator import BEGIN, HistoryOptions, generate

OFFSETS = Topic("__consumer_offsets")
END = BEGIN + OPTIONS.hours * 3_600_000


def partitions(generated: GeneratedHistories) -> list[Path]:
    return sorted((generated.directory / "log").glob("__*-*"))


def test_batches_are_valid_and_their_offsets_are_contiguous(generated: GeneratedHistories) -> None:
    for partition in partitions(generated):
        next_offset, last_at = 0, int(BEGIN)
        for content in read_segments(partition):
            for position, header in split(content):
                verify_crc(content, position, header)
                assert header.base_offset == next_offset
                assert last_at <= header.max_timestamp <= END
                next_offset = header.base_offset + header.last_offset_delta + 1
                last_at = header.max_timestamp

    assert len(partitions(generated)) == OPTIONS.partitions + 1


def test_the_log_opens_without_recovery(generated: GeneratedHistories, tmp_path: Path) -> None:
    directory = shutil.copytree(generated.directory / "log", tmp_path / "log")

    catalog, recovered = Catalog.open(directory, Millis(END))
    logs = [catalog.partition(OFFSETS, number) for number in range(OPTIONS.partitions)]
    ends = sum(log.end_offset for log in logs if log is not None)
    catalog.close(Millis(END))

    assert recovered == ()
    assert ends == generated.counts.records


def test_groups_are_in_the_partitions_that_kafka_chooses(generated: GeneratedHistories) -> None:
    for number in range(OPTIONS.partitions):
        records = read_records(generated.directory / "log" / f"{OFFSETS}-{number}")
        groups = {record.group_id for _, record in records}

        assert {partition_of(group, OPTIONS.partitions) for group in groups} <= {number}


def test_a_coordinator_loads_the_records(generated: GeneratedHistories) -> None:
    coordinator = Coordinator()
    coordinator.start()

    for number in range(OPTIONS.partitions):
        for _, record in read_records(generated.directory / "log" / f"{OFFSETS}-{number}"):
            coordinator.apply(record)
    coordinator.resume(Millis(END))

    deleted = generated.of_scenario("deleted-group").group
    assert deleted not in coordinator.groups
    kept = {group for group in coordinator.groups if generated.groups[group].scenario != "simple"}
    assert kept == {
        history.group
        for history in generated.groups.values()
        if history.scenario not in ("deleted-group", "simple")
    }


def test_committed_offsets_are_not_beyond_the_log_end(generated: GeneratedHistories) -> None:
    """Compared with the next recorded end offset of the partition."""
    end_offsets: dict[TopicPartition, list[tuple[int, int]]] = {}
    for line in read_lines(generated.directory / "ends.jsonl"):
        name = TopicPartition(Topic(line["topic"]), Partition(line["partition"]))
        assert 0 <= line["log_start"] <= line["log_end"]
        end_offsets.setdefault(name, []).append((line["at_ms"], line["log_end"]))

    for history in generated.groups.values():
        for at, commit in history.commits:
            seen = end_offsets[TopicPartition(commit.topic, commit.partition)]
            index = (at - seen[0][0]) // 300_000 + 1
            assert 0 <= commit.offset <= seen[min(index, len(seen) - 1)][1]
            assert commit.commit_ms == at


def test_end_offsets_grow_and_are_recorded_every_five_minutes(
    generated: GeneratedHistories,
) -> None:
    end_offsets = list(read_lines(generated.directory / "ends.jsonl"))

    ends: dict[tuple[str, int], int] = {}
    for line in end_offsets:
        name = (line["topic"], line["partition"])
        assert line["log_end"] >= ends.get(name, 0)
        ends[name] = line["log_end"]

    assert sorted({line["at_ms"] for line in end_offsets}) == list(range(BEGIN, END + 1, 300_000))


def test_the_readme_has_the_command_that_generates_the_history(
    generated: GeneratedHistories,
) -> None:
    page = (generated.directory / "README.md").read_text("utf-8")

    assert "python -m tools.histories --seed 7 --to DIR --hours 2 --partitions 4" in page
    assert f"records of `__consumer_offsets`: {generated.counts.records}" in page


def test_the_busy_scenario_writes_144_000_records_per_hour(tmp_path: Path) -> None:
    counts = generate(HistoryOptions(seed=1, scenarios=("busy",), hours=1), tmp_path / "history")

    assert 140_000 < counts.records < 150_000


def test_kafka_dump_log_reads_the_records(tmp_path: Path) -> None:
    generate(
        HistoryOptions(seed=1, scenarios=("scaling",), hours=1, partitions=1), tmp_path / "history"
    )
    (log,) = (tmp_path / "history" / "log" / f"{OFFSETS}-0").glob("*.log")
    try:
        tools = Tools()
    except Unavailable as reason:
        skip(reason)

    with tools:
        ended = tools.run("kafka-dump-log", "--files", f"{log}", "--offsets-decoder")

    assert (ended.code, ended.err) == (0, "")
    payloads = re.findall(r" payload: (\{.*\})$", ended.out, re.MULTILINE)
    contents = [json.loads(each)["data"] for each in payloads]
    generations = [each for each in contents if "members" in each]
    assert len(payloads) == sum(1 for _ in read_records(log.parent))
    assert {len(each["members"]) for each in generations} >= {3, 5}
    assigned = [
        topic["partitions"]
        for member in generations[-1]["members"]
        for topic in member["assignment"]["assignedPartitions"]
    ]
    assert sorted(number for topic in assigned for number in topic) == list(range(12))
