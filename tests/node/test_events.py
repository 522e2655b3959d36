"""Events in `__kohort_events`: JSON fields, splitting into parts, and lost events."""

import dataclasses
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

import kohort
from kohort.coordinator.events import (
    AppendFailed,
    GroupEvent,
    MemberInfo,
    MemberJoined,
    OffsetsExpired,
    RebalanceEnded,
    RebalanceParticipant,
    RebalanceStarted,
)
from kohort.events.fields import ALWAYS, FIELDS
from kohort.events.internal_topics import KOHORT_EVENTS
from kohort.events.parser import parse_event
from kohort.events.schema import EVENTS
from kohort.log.os_disk import OsDisk
from kohort.node.broker import Address
from kohort.node.config import BrokerConfig
from kohort.node.events_topic import EVENT_NAMES, EventWriter, batches, json_of, records_of
from kohort.types import GroupId, MemberId, Offset, Partition, Topic
from kohort.wire.batch import NewRecord, split
from tests.log.faulty_disks import FullDisk
from tests.node import raw_client
from tests.node.broker_harness import BrokerHarness, fetch_request, values_in
from tests.node.group_setup import AT_ONCE, commit, join_alone, leave, share
from tests.node.served_node import ServedNode
from tools.docgen.events_example import example_events

EXAMPLE_EVENTS = example_events()
A_MONTH_MS = 30 * 24 * 60 * 60_000
MEGABYTE = 1_048_588


def event_of(note: GroupEvent) -> Any:
    return json.loads(json_of(note))


def first(kind: type) -> Any:
    return next(note for note in EXAMPLE_EVENTS if isinstance(note, kind))


def crowded(members: int, assignment: bytes = b"") -> RebalanceEnded:
    """The end of a rebalance with this number of members."""
    participant = first(RebalanceEnded).participants[0]
    participants = tuple(
        dataclasses.replace(
            participant,
            party=dataclasses.replace(participant.party, member_id=MemberId(f"{number:036}")),
            had=assignment,
            got=assignment,
        )
        for number in range(members)
    )
    ended: RebalanceEnded = dataclasses.replace(first(RebalanceEnded), participants=participants)
    return ended


# JSON


@pytest.mark.parametrize("note", EXAMPLE_EVENTS, ids=lambda note: EVENT_NAMES[type(note)])
def test_event_has_exactly_the_documented_fields(note: GroupEvent) -> None:
    always = [name for name in ALWAYS if name in ("event", "at") or hasattr(note, name)]

    assert list(event_of(note)) == [*always, *FIELDS[EVENTS[EVENT_NAMES[type(note)]]]]


@pytest.mark.parametrize("note", EXAMPLE_EVENTS, ids=lambda note: EVENT_NAMES[type(note)])
def test_parser_accepts_every_written_event(note: GroupEvent) -> None:
    event = parse_event([json_of(note)])

    assert type(event.details) is EVENTS[EVENT_NAMES[type(note)]]
    assert event.at == note.at


def test_rebalance_event_has_assignments_before_and_after() -> None:
    ended = [note for note in EXAMPLE_EVENTS if isinstance(note, RebalanceEnded)][1]

    shares = [(each["had"], each["got"]) for each in event_of(ended)["participants"]]

    assert shares == [
        ({"orders": [0, 1]}, {"orders": [0, 1]}),
        ({"orders": [2, 3]}, {"orders": [2]}),
        ({}, {"orders": [3]}),
    ]


def test_malformed_assignment_is_null() -> None:
    event = event_of(crowded(1, b"\0\1garbage"))

    assert event["participants"][0]["got"] is None


def test_assignment_of_another_protocol_type_is_null_and_no_assignment_is_empty() -> None:
    workers = dataclasses.replace(crowded(1, share("t", 0)), protocol_type="connect")
    idle = dataclasses.replace(crowded(1), protocol_type="connect")

    assert event_of(workers)["participants"][0]["got"] is None
    assert event_of(idle)["participants"][0]["got"] == {}


def test_enums_and_errors_are_written_as_names() -> None:
    events = {event["event"]: event for event in map(event_of, EXAMPLE_EVENTS)}

    assert events["commit-refused"]["error"] == "ILLEGAL_GENERATION"
    assert events["state-changed"]["after"] == "Empty"
    assert events["member-gone"]["departure"] == "session-expired"


def test_expired_offsets_are_grouped_by_topic() -> None:
    partitions = tuple(
        (Topic(topic), Partition(index)) for topic, index in (("a", 0), ("b", 0), ("a", 2))
    )
    note = dataclasses.replace(first(OffsetsExpired), partitions=partitions)

    assert event_of(note)["partitions"] == {"a": [0, 2], "b": [0]}


def test_record_key_is_the_group_and_timestamp_is_that_of_the_event() -> None:
    (record,) = records_of(first(MemberJoined), MEGABYTE)

    assert record.key == b"billing"
    assert record.timestamp == first(MemberJoined).at


def test_event_of_several_groups_has_no_key() -> None:
    note = first(AppendFailed)
    several = dataclasses.replace(note, group_ids=(GroupId("a"), GroupId("b")))

    assert records_of(note, MEGABYTE)[0].key == b"billing"
    assert records_of(several, MEGABYTE)[0].key is None


# Large events


def test_parts_of_a_large_rebalance_contain_all_participants() -> None:
    note = crowded(5_000, share("orders", 1, 2))

    parts = [json.loads(record.value or b"") for record in records_of(note, MEGABYTE)]

    whole = event_of(note)
    assert len(parts) > 1
    assert [(part.pop("part"), part.pop("parts")) for part in parts] == [
        (number + 1, len(parts)) for number in range(len(parts))
    ]
    assert [one for part in parts for one in part.pop("participants")] == whole.pop("participants")
    assert all(part == whole for part in parts)


@pytest.mark.parametrize("bytes_max", [1_000, 5_000, 20_000, MEGABYTE])
def test_no_part_exceeds_the_record_size(bytes_max: int) -> None:
    waited_for = tuple(MemberId(f"{number:036}") for number in range(3_000))
    started = dataclasses.replace(first(RebalanceStarted), waited_for=waited_for)

    for note in (started, crowded(2_000, share("orders", 1, 2)), first(MemberJoined)):
        sizes = [len(record.value or b"") for record in records_of(note, bytes_max)]
        assert sizes
        assert max(sizes) < bytes_max


def test_lists_of_different_length_are_divided_completely() -> None:
    removals = first_with_removals().removals * 3
    note = dataclasses.replace(crowded(400), removals=removals)

    parts = [json.loads(record.value or b"") for record in records_of(note, 10_000)]

    assert sum(len(part["participants"]) for part in parts) == 400
    assert sum(len(part["removals"]) for part in parts) == len(removals)


def first_with_removals() -> RebalanceEnded:
    return next(
        note for note in EXAMPLE_EVENTS if isinstance(note, RebalanceEnded) and note.removals
    )


def test_event_with_an_oversized_item_has_no_parts() -> None:
    huge = share("t", *range(5_000))

    assert records_of(crowded(3, huge), 10_000) == []
    assert records_of(first(MemberJoined), 100) == []


def test_records_share_batches_up_to_the_batch_size() -> None:
    records = [
        NewRecord(key=b"g", value=b"v" * 100, timestamp=EXAMPLE_EVENTS[0].at) for _ in range(10)
    ]

    assert [len(batch) for batch in batches(records, 500)] == [3, 3, 3, 1]
    assert [len(batch) for batch in batches(records, MEGABYTE)] == [10]
    assert [len(batch) for batch in batches(records, 1)] == [1] * 10


# The topic


class Writer:
    """An event writer, and the events that it has written."""

    def __init__(self, harness: BrokerHarness, **settings: str) -> None:
        self.harness = harness
        chosen = BrokerConfig({name.replace("_", "."): text for name, text in settings.items()})
        self.topic = EventWriter(harness.broker.topics, chosen, harness.broker.purgatory)

    @property
    def lost(self) -> int:
        return self.topic.lost_count

    @property
    def batch_count(self) -> int:
        log = self.harness.broker.topics.events_partition()
        return sum(1 for chunk in log.batches(log.start_offset) for _ in split(chunk))

    @property
    def events(self) -> list[Any]:
        return [
            json.loads(value) for value in values_in(self.harness.fetch(name=KOHORT_EVENTS).records)
        ]


def test_events_of_one_write_are_one_batch(harness: BrokerHarness) -> None:
    writer = Writer(harness)

    writer.topic.write(EXAMPLE_EVENTS)

    assert writer.events == [event_of(note) for note in EXAMPLE_EVENTS]
    assert writer.batch_count == 1


def test_disabled_events_are_not_written(harness: BrokerHarness) -> None:
    writer = Writer(harness, kohort_events_enable="false")

    writer.topic.write(EXAMPLE_EVENTS)

    assert harness.broker.topics.find(KOHORT_EVENTS) is None


def test_batches_obey_max_message_bytes_of_the_topic(harness: BrokerHarness) -> None:
    writer = Writer(harness)
    writer.topic.write(EXAMPLE_EVENTS[:1])
    harness.broker.topics.alter(KOHORT_EVENTS, {"max.message.bytes": "2000"})

    writer.topic.write([*EXAMPLE_EVENTS, crowded(200)])

    log = harness.broker.topics.events_partition()
    sizes = [header.size_in_bytes for chunk in log.batches(Offset(1)) for _, header in split(chunk)]
    assert max(sizes) <= 2_000
    assert len(sizes) > 10
    assert log.end_offset > len(EXAMPLE_EVENTS) + 10
    assert writer.lost == 0


def test_oversized_event_is_lost_and_logged_but_others_are_written(
    harness: BrokerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Writer(harness)
    huge = crowded(1, share("t", *range(200_000)))

    with caplog.at_level(logging.WARNING, "kohort"):
        writer.topic.write([EXAMPLE_EVENTS[0], huge, EXAMPLE_EVENTS[1]])

    assert [event["event"] for event in writer.events] == ["member-id-issued", "member-joined"]
    assert writer.lost == 1
    assert "events-lost count=1" in caplog.text
    assert "rebalance-ended does not fit into max.message.bytes" in caplog.text


@pytest.mark.parametrize("is_made", [True, False])
def test_full_disk_loses_only_the_event(tmp_path: Path, *, is_made: bool) -> None:
    disk = FullDisk(OsDisk(tmp_path), 1 << 30)
    harness = BrokerHarness(disk)
    writer = Writer(harness)
    if is_made:
        writer.topic.write(EXAMPLE_EVENTS[:1])
    disk.free_bytes = 0
    writer.topic.write(EXAMPLE_EVENTS[:2])
    disk.free_bytes = 1 << 30
    writer.topic.write(EXAMPLE_EVENTS[2:3])
    events = writer.events
    harness.close()

    assert writer.lost == 2
    assert events[-1]["event"] == "rebalance-started"


def test_events_of_delivered_responses_survive_a_kill(
    tmp_path: Path,
) -> None:
    settings = {**AT_ONCE, "kohort.durability": "fsync"}
    with ServedNode(tmp_path, settings) as served, raw_client.RawClient(served.address) as client:
        raw_client.join_alone(client, "readers")
        served.kill()

    with ServedNode(tmp_path, settings) as served, raw_client.RawClient(served.address) as client:
        fetched = client.ask(fetch_request(0, KOHORT_EVENTS), 12)
        records = fetched.responses[0].partitions[0].records

    assert json.loads(values_in(records)[-1])["event"] == "rebalance-ended"


# End to end


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[BrokerHarness]:
    harness = BrokerHarness(tmp_path, AT_ONCE)
    yield harness
    harness.close()


def test_topic_has_the_events_of_a_group_in_order(quick: BrokerHarness) -> None:
    quick.create("t")
    member = join_alone(quick, "g", share("t", 0))
    assert commit(quick, "g", "t", 0, member=member) == "NONE"
    leave(quick, member)
    assert commit(quick, "g", "t", 0, member=member) == "UNKNOWN_MEMBER_ID"

    records = quick.fetch(name=KOHORT_EVENTS).records
    kinds = [json.loads(value)["event"] for value in values_in(records)]

    assert [kind for kind in kinds if kind != "state-changed"] == [
        "member-id-issued",
        "member-joined",
        "rebalance-started",
        "rebalance-ended",
        "member-gone",
        "rebalance-started",
        "rebalance-ended",
        "commit-refused",
    ]


def test_kafka_python_reads_the_events_and_their_retention() -> None:
    with kohort.Node(settings=AT_ONCE) as node:
        host, _, port = node.bootstrap_servers.rpartition(":")
        with raw_client.RawClient(Address(host=host, port=int(port))) as client:
            raw_client.join_alone(client, "readers")

        consumer = KafkaConsumer(bootstrap_servers=node.bootstrap_servers, group_id=None)
        consumer.assign([TopicPartition(KOHORT_EVENTS, 0)])
        consumer.seek_to_beginning()
        read: list[Any] = []
        while not read or json.loads(read[-1].value)["event"] != "rebalance-ended":
            polled = consumer.poll(timeout_ms=10_000)
            assert polled, "no more events, and the rebalance has not ended"
            read += [record for records in polled.values() for record in records]
        consumer.close()
        admin = KafkaAdminClient(bootstrap_servers=node.bootstrap_servers)
        topic = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, KOHORT_EVENTS)])
        admin.close()

    assert {record.key for record in read} == {b"readers"}
    assert all(record.timestamp == json.loads(record.value)["at"] for record in read)
    assert int(topic["topic"][KOHORT_EVENTS]["retention.ms"]["value"]) == A_MONTH_MS


def test_member_identity_is_written_in_full_everywhere() -> None:
    names = {field.name for field in dataclasses.fields(MemberInfo)}
    participant = event_of(crowded(1))["participants"][0]

    assert set(participant["party"]) == names
    assert set(participant) == {field.name for field in dataclasses.fields(RebalanceParticipant)}
