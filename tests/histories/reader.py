"""Reads a generated history back, group by group: its records, events and labels."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kohort.client.member.leader_assignment import flatten
from kohort.coordinator.record_codec import Skipped
from kohort.coordinator.records import (
    ClassicGroupMember,
    ClassicGroupMetadata,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    TransactionEnded,
    UnknownRecord,
)
from kohort.node.group_loader import read_batches
from kohort.types import TopicPartition
from kohort.wire.batch import decode, split
from kohort.wire.consumer_protocol import decode_assignment, decode_subscription


@dataclass(slots=True)
class GroupHistory:
    """One group: its records with their timestamps, its events and its labels."""

    group: str
    scenario: str = ""
    generations: list[tuple[int, ClassicGroupMetadata]] = field(default_factory=list)
    commits: list[tuple[int, OffsetCommitted]] = field(default_factory=list)
    removals: list[tuple[int, OffsetRemoved | GroupRemoved]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    rebalances: list[dict[str, Any]] = field(default_factory=list)
    pathologies: list[dict[str, Any]] = field(default_factory=list)
    look_alikes: list[dict[str, Any]] = field(default_factory=list)

    def events_named(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each["event"] == event]

    def steps(self) -> list[tuple[int, int]]:
        """The time of each commit and its distance to the previous offset of the partition."""
        last: dict[TopicPartition, int] = {}
        found: list[tuple[int, int]] = []
        for at, commit in self.commits:
            name = TopicPartition(commit.topic, commit.partition)
            found.append((at, commit.offset - last.get(name, commit.offset)))
            last[name] = commit.offset
        return found


def read_histories(directory: Path) -> dict[str, GroupHistory]:
    histories: dict[str, GroupHistory] = {}
    for label in read_lines(directory / "truth.jsonl"):
        history = histories.setdefault(label["group"], GroupHistory(label["group"]))
        match label["what"]:
            case "group":
                history.scenario = label["kind"]
            case "rebalance":
                history.rebalances.append(label)
            case "pathology":
                history.pathologies.append(label)
            case other:
                assert other == "look-alike"
                history.look_alikes.append(label)
    for event in read_events(directory):
        for group in event.get("group_ids") or [event["group_id"]]:
            histories[group].events.append(event)
    for partition in sorted((directory / "log").glob("__consumer_offsets-*")):
        for at, record in read_records(partition):
            _add(histories[record.group_id], at, record)
    return histories


def _add(history: GroupHistory, at: int, record: Any) -> None:
    match record:
        case ClassicGroupMetadata():
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
                assert "part" not in event, "every event fits into one record"
                yield event


def read_records(
    partition: Path,
) -> Iterator[tuple[int, ClassicGroupMetadata | GroupRemoved | OffsetCommitted | OffsetRemoved]]:
    for content in read_segments(partition):
        for position, header in split(content):
            batch = content[position : position + header.size_in_bytes]
            for record in read_batches(batch):
                assert not isinstance(record, Skipped | UnknownRecord | TransactionEnded), record
                yield header.max_timestamp, record


def read_segments(partition: Path) -> Iterator[bytes]:
    for segment in sorted(partition.glob("*.log")):
        yield segment.read_bytes()


def assigned_to(member: ClassicGroupMember) -> list[TopicPartition]:
    return flatten(decode_assignment(member.assignment).assigned_partitions)


def subscribed_topics(member: ClassicGroupMember) -> set[str]:
    return set(decode_subscription(member.subscription).topics)
