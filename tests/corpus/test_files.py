"""The files of a corpus: whole, in order, and readable by Kohort's log and by Kafka's own tool."""

import json
import re
import shutil
from pathlib import Path

from kohort.client.topic_partition import TopicPartition
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.partitioner import partition_of
from kohort.corpus.making import BEGIN, Plan, make
from kohort.log.catalog import Catalog
from kohort.types import Millis, Partition, Topic
from kohort.wire.batch import split, verify_crc
from tests.apache.unavailable import Unavailable, skip
from tests.contract.tools.running import Tools
from tests.corpus.conftest import PLAN, Corpus
from tests.corpus.histories import read_lines, read_records, read_segments

OFFSETS = Topic("__consumer_offsets")
END = BEGIN + PLAN.hours * 3_600_000


def partitions(corpus: Corpus) -> list[Path]:
    return sorted((corpus.directory / "log").glob("__*-*"))


def test_every_batch_is_whole_and_follows_on_the_one_before(corpus: Corpus) -> None:
    for partition in partitions(corpus):
        next_offset, last_at = 0, int(BEGIN)
        for content in read_segments(partition):
            for position, header in split(content):
                verify_crc(content, position, header)
                assert header.base_offset == next_offset
                assert last_at <= header.max_timestamp <= END
                next_offset = header.base_offset + header.last_offset_delta + 1
                last_at = header.max_timestamp

    assert len(partitions(corpus)) == PLAN.partitions + 1


def test_the_log_opens_without_anything_to_mend(corpus: Corpus, tmp_path: Path) -> None:
    directory = shutil.copytree(corpus.directory / "log", tmp_path / "log")

    catalog, mended = Catalog.open(directory, Millis(END))
    logs = [catalog.partition(OFFSETS, number) for number in range(PLAN.partitions)]
    ends = sum(log.end_offset for log in logs if log is not None)
    catalog.close(Millis(END))

    assert mended == ()
    assert ends == corpus.made.records


def test_every_group_lives_in_the_partition_kafka_would_choose(corpus: Corpus) -> None:
    for number in range(PLAN.partitions):
        records = read_records(corpus.directory / "log" / f"{OFFSETS}-{number}")
        groups = {record.group_id for _, record in records}

        assert {partition_of(group, PLAN.partitions) for group in groups} <= {number}


def test_a_coordinator_can_be_loaded_from_it(corpus: Corpus) -> None:
    coordinator = Coordinator()
    coordinator.start()

    for number in range(PLAN.partitions):
        for _, record in read_records(corpus.directory / "log" / f"{OFFSETS}-{number}"):
            coordinator.apply(record)
    coordinator.resume(Millis(END))

    deleted = corpus.of_kind("deleted-group").group
    assert deleted not in coordinator.groups
    kept = {group for group in coordinator.groups if corpus.histories[group].kind != "simple"}
    assert kept == {
        history.group
        for history in corpus.histories.values()
        if history.kind not in ("deleted-group", "simple")
    }


def test_nobody_commits_beyond_what_was_written(corpus: Corpus) -> None:
    """A commit is no further than its log's end at the next look."""
    looks: dict[TopicPartition, list[tuple[int, int]]] = {}
    for look in read_lines(corpus.directory / "ends.jsonl"):
        name = TopicPartition(Topic(look["topic"]), Partition(look["partition"]))
        assert 0 <= look["log_start"] <= look["log_end"]
        looks.setdefault(name, []).append((look["at_ms"], look["log_end"]))

    for history in corpus.histories.values():
        for at, commit in history.commits:
            seen = looks[TopicPartition(commit.topic, commit.partition)]
            place = (at - seen[0][0]) // 300_000 + 1
            assert 0 <= commit.offset <= seen[min(place, len(seen) - 1)][1]
            assert commit.commit_ms == at


def test_logs_never_shrink_and_are_looked_at_regularly(corpus: Corpus) -> None:
    looks = list(read_lines(corpus.directory / "ends.jsonl"))

    ends: dict[tuple[str, int], int] = {}
    for look in looks:
        name = (look["topic"], look["partition"])
        assert look["log_end"] >= ends.get(name, 0)
        ends[name] = look["log_end"]

    assert sorted({look["at_ms"] for look in looks}) == list(range(BEGIN, END + 1, 300_000))


def test_the_page_beside_it_says_how_to_make_it_again(corpus: Corpus) -> None:
    page = (corpus.directory / "README.md").read_text("utf-8")

    assert "kohort corpus --seed 7 --to DIR --hours 2 --partitions 4" in page
    assert f"records of `__consumer_offsets`: {corpus.made.records}" in page


def test_a_busy_group_is_for_size(tmp_path: Path) -> None:
    made = make(Plan(seed=1, kinds=("busy",), hours=1), tmp_path / "made")

    assert 140_000 < made.records < 150_000


def test_kafkas_own_tool_reads_it(tmp_path: Path) -> None:
    make(Plan(seed=1, kinds=("scaling",), hours=1, partitions=1), tmp_path / "made")
    (log,) = (tmp_path / "made" / "log" / f"{OFFSETS}-0").glob("*.log")
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
    shares = [
        share["partitions"]
        for member in generations[-1]["members"]
        for share in member["assignment"]["assignedPartitions"]
    ]
    assert sorted(number for share in shares for number in share) == list(range(12))
