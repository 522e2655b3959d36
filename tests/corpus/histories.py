"""A corpus read back the plain way: group by group, what is in its log and what is true of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kohort.client.member.leading import flat
from kohort.client.topic_partition import TopicPartition
from kohort.coordinator.recordcodec import Skipped
from kohort.coordinator.records import (
    FormedMember,
    GenerationFormed,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    TransactionEnded,
)
from kohort.node.history import read_back
from kohort.wire.batch import decode, split
from kohort.wire.embedded import decode_assignment, decode_subscription


@dataclass(slots=True)
class History:
    """One group: its records in their order with their times, its events, and its truth."""

    group: str
    kind: str = ""
    generations: list[tuple[int, GenerationFormed]] = field(default_factory=list)
    commits: list[tuple[int, OffsetCommitted]] = field(default_factory=list)
    removals: list[tuple[int, OffsetRemoved | GroupRemoved]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    rebalances: list[dict[str, Any]] = field(default_factory=list)
    pathologies: list[dict[str, Any]] = field(default_factory=list)
    look_alikes: list[dict[str, Any]] = field(default_factory=list)

    def named(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each["event"] == event]

    def steps(self) -> list[tuple[int, int]]:
        """By how much each commit goes beyond the one before it, and when."""
        last: dict[TopicPartition, int] = {}
        found: list[tuple[int, int]] = []
        for at, commit in self.commits:
            name = TopicPartition(commit.topic, commit.partition)
            found.append((at, commit.offset - last.get(name, commit.offset)))
            last[name] = commit.offset
        return found


def read_corpus(directory: Path) -> dict[str, History]:
    histories: dict[str, History] = {}
    for truth in read_lines(directory / "truth.jsonl"):
        history = histories.setdefault(truth["group"], History(truth["group"]))
        match truth["what"]:
            case "group":
                history.kind = truth["kind"]
            case "rebalance":
                history.rebalances.append(truth)
            case "pathology":
                history.pathologies.append(truth)
            case other:
                assert other == "look-alike"
                history.look_alikes.append(truth)
    for event in read_events(directory):
        for group in event.get("group_ids") or [event["group_id"]]:
            histories[group].events.append(event)
    for partition in sorted((directory / "log").glob("__consumer_offsets-*")):
        for at, record in read_records(partition):
            _add(histories[record.group_id], at, record)
    return histories


def _add(history: History, at: int, record: Any) -> None:
    match record:
        case GenerationFormed():
            history.generations.append((at, record))
        case OffsetCommitted():
            history.commits.append((at, record))
        case other:
            assert isinstance(other, OffsetRemoved | GroupRemoved)
            history.removals.append((at, other))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def read_events(directory: Path) -> Iterator[dict[str, Any]]:
    for content in read_segments(directory / "log" / "__kohort_events-0"):
        for position, _ in split(content):
            for record in decode(content, position).records:
                event = json.loads(record.value or b"")
                assert "part" not in event, "no event here is too large for one record"
                yield event


def read_records(
    partition: Path,
) -> Iterator[tuple[int, GenerationFormed | GroupRemoved | OffsetCommitted | OffsetRemoved]]:
    for content in read_segments(partition):
        for position, header in split(content):
            batch = content[position : position + header.size_in_bytes]
            for record in read_back(batch):
                assert not isinstance(record, Skipped | TransactionEnded), record
                yield header.max_timestamp, record


def read_segments(partition: Path) -> Iterator[bytes]:
    for segment in sorted(partition.glob("*.log")):
        yield segment.read_bytes()


def share_of(member: FormedMember) -> list[TopicPartition]:
    return flat(decode_assignment(member.assignment).assigned_partitions)


def topics_of(member: FormedMember) -> set[str]:
    return set(decode_subscription(member.subscription).topics)
