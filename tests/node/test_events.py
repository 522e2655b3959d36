"""The topic of events: every note becomes JSON that says what it said, and none is too large."""

import dataclasses
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

import kohort
from kohort.coordinator.notes import (
    MemberJoined,
    Note,
    NotKept,
    OffsetsExpired,
    Participant,
    Party,
    RebalanceEnded,
    RebalanceStarted,
)
from kohort.log.osdisk import OsDisk
from kohort.node.broker import Address, Broker
from kohort.node.config import Settings
from kohort.node.events import EventsTopic, batches, json_of, records_of
from kohort.node.events_example import play
from kohort.node.events_table import ALWAYS, FIELDS, KINDS
from kohort.node.topics import EVENTS
from kohort.types import GroupId, MemberId, Offset, Partition, Topic
from kohort.wire.batch import NewRecord, split
from tests.log.disks import FullDisk
from tests.node import calling
from tests.node.asking import Scene, fetch_request, values_in
from tests.node.grouping import AT_ONCE, commit, join_alone, leave, share
from tests.node.serving import Served

NOTES = play()
A_MONTH_MS = 30 * 24 * 60 * 60_000
MEGABYTE = 1_048_588


def event_of(note: Note) -> Any:
    return json.loads(json_of(note))


def first(kind: type) -> Any:
    return next(note for note in NOTES if isinstance(note, kind))


def crowded(members: int, assignment: bytes = b"") -> RebalanceEnded:
    """The end of a rebalance with so many in it."""
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


# What is written


@pytest.mark.parametrize("note", NOTES, ids=lambda note: KINDS[type(note)])
def test_an_event_has_the_fields_that_are_documented_and_no_other(note: Note) -> None:
    always = [name for name in ALWAYS if name in ("event", "at") or hasattr(note, name)]

    assert list(event_of(note)) == [*always, *FIELDS[type(note)]]


def test_a_rebalance_tells_what_each_member_had_and_got() -> None:
    ended = [note for note in NOTES if isinstance(note, RebalanceEnded)][1]

    shares = [(each["had"], each["got"]) for each in event_of(ended)["participants"]]

    assert shares == [
        ({"orders": [0, 1]}, {"orders": [0, 1]}),
        ({"orders": [2, 3]}, {"orders": [2]}),
        ({}, {"orders": [3]}),
    ]


def test_an_assignment_that_cannot_be_read_is_null() -> None:
    event = event_of(crowded(1, b"\0\1garbage"))

    assert event["participants"][0]["got"] is None


def test_an_assignment_of_another_kind_of_group_is_null_and_none_at_all_is_empty() -> None:
    workers = dataclasses.replace(crowded(1, share("t", 0)), protocol_type="connect")
    idle = dataclasses.replace(crowded(1), protocol_type="connect")

    assert event_of(workers)["participants"][0]["got"] is None
    assert event_of(idle)["participants"][0]["got"] == {}


def test_words_and_errors_are_told_by_their_names() -> None:
    events = {event["event"]: event for event in map(event_of, NOTES)}

    assert events["commit-refused"]["error"] == "ILLEGAL_GENERATION"
    assert events["state-changed"]["after"] == "Empty"
    assert events["member-gone"]["departure"] == "session-expired"


def test_expired_offsets_are_told_by_topic() -> None:
    partitions = tuple(
        (Topic(topic), Partition(index)) for topic, index in (("a", 0), ("b", 0), ("a", 2))
    )
    note = dataclasses.replace(first(OffsetsExpired), partitions=partitions)

    assert event_of(note)["partitions"] == {"a": [0, 2], "b": [0]}


def test_a_record_is_keyed_by_its_group_and_has_the_time_of_its_event() -> None:
    (record,) = records_of(first(MemberJoined), MEGABYTE)

    assert record.key == b"billing"
    assert record.timestamp == first(MemberJoined).at


def test_what_concerns_several_groups_has_no_key() -> None:
    note = first(NotKept)
    several = dataclasses.replace(note, group_ids=(GroupId("a"), GroupId("b")))

    assert records_of(note, MEGABYTE)[0].key == b"billing"
    assert records_of(several, MEGABYTE)[0].key is None


# What is too large


def test_a_large_rebalance_becomes_parts_that_make_up_the_whole() -> None:
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
def test_no_part_is_larger_than_a_record_may_be(bytes_max: int) -> None:
    waited_for = tuple(MemberId(f"{number:036}") for number in range(3_000))
    started = dataclasses.replace(first(RebalanceStarted), waited_for=waited_for)

    for note in (started, crowded(2_000, share("orders", 1, 2)), first(MemberJoined)):
        sizes = [len(record.value or b"") for record in records_of(note, bytes_max)]
        assert sizes
        assert max(sizes) < bytes_max


def test_lists_of_unequal_length_are_shared_out_whole() -> None:
    removals = first_with_removals().removals * 3
    note = dataclasses.replace(crowded(400), removals=removals)

    parts = [json.loads(record.value or b"") for record in records_of(note, 10_000)]

    assert sum(len(part["participants"]) for part in parts) == 400
    assert sum(len(part["removals"]) for part in parts) == len(removals)


def first_with_removals() -> RebalanceEnded:
    return next(note for note in NOTES if isinstance(note, RebalanceEnded) and note.removals)


def test_an_event_with_one_item_too_large_has_no_parts() -> None:
    huge = share("t", *range(5_000))

    assert records_of(crowded(3, huge), 10_000) == []
    assert records_of(first(MemberJoined), 100) == []


def test_records_share_batches_as_far_as_these_may_grow() -> None:
    records = [NewRecord(key=b"g", value=b"v" * 100, timestamp=NOTES[0].at) for _ in range(10)]

    assert [len(batch) for batch in batches(records, 500)] == [3, 3, 3, 1]
    assert [len(batch) for batch in batches(records, MEGABYTE)] == [10]
    assert [len(batch) for batch in batches(records, 1)] == [1] * 10


# Where it is written


class Writer:
    """The topic on a scene, and what becomes of it."""

    def __init__(self, scene: Scene, turns: "Turns | None" = None, **settings: str) -> None:
        self.scene = scene
        self.appended: Counter[Topic] = Counter()
        self.lost = 0
        chosen = Settings({name.replace("_", "."): text for name, text in settings.items()})
        call_soon = turns.call_soon if turns is not None else None
        self.topic = EventsTopic(scene.broker.topics, chosen, self._append, self._lose, call_soon)

    def _append(self, topic: Topic, partition: Partition, size: int) -> None:
        assert (partition, size > 0) == (0, True)
        self.appended[topic] += 1

    def _lose(self, count: int) -> None:
        self.lost += count

    @property
    def events(self) -> list[Any]:
        return [json.loads(value) for value in values_in(self.scene.fetch(name=EVENTS).records)]


def test_all_notes_of_a_moment_are_one_batch(scene: Scene) -> None:
    writer = Writer(scene)

    writer.topic.write(NOTES)

    assert writer.events == [event_of(note) for note in NOTES]
    assert writer.appended == {EVENTS: 1}


def test_nothing_is_written_where_events_are_turned_off(scene: Scene) -> None:
    writer = Writer(scene, kohort_events_enable="false")

    writer.topic.write(NOTES)

    assert scene.broker.topics.find(EVENTS) is None


def test_batches_follow_the_size_that_the_topic_allows(scene: Scene) -> None:
    writer = Writer(scene)
    writer.topic.write(NOTES[:1])
    scene.broker.topics.alter(EVENTS, {"max.message.bytes": "2000"})

    writer.topic.write([*NOTES, crowded(200)])

    log = scene.broker.topics.events_partition(scene.now)
    sizes = [header.size_in_bytes for chunk in log.batches(Offset(1)) for _, header in split(chunk)]
    assert max(sizes) <= 2_000
    assert len(sizes) > 10
    assert log.end_offset > len(NOTES) + 10
    assert writer.lost == 0


def test_an_event_that_fits_nowhere_is_lost_and_told_and_the_others_are_kept(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Writer(scene)
    huge = crowded(1, share("t", *range(200_000)))

    with caplog.at_level(logging.WARNING, "kohort"):
        writer.topic.write([NOTES[0], huge, NOTES[1]])

    assert [event["event"] for event in writer.events] == ["member-id-issued", "member-joined"]
    assert writer.lost == 1
    assert "events-lost count=1" in caplog.text
    assert "rebalance-ended does not fit into max.message.bytes" in caplog.text


@pytest.mark.parametrize("is_made", [True, False])
def test_a_full_disk_costs_the_event_and_nothing_else(tmp_path: Path, *, is_made: bool) -> None:
    disk = FullDisk(OsDisk(tmp_path), 1 << 30)
    scene = Scene(disk)
    writer = Writer(scene)
    if is_made:
        writer.topic.write(NOTES[:1])
    disk.room = 0
    writer.topic.write(NOTES[:2])
    disk.room = 1 << 30
    writer.topic.write(NOTES[2:3])
    events = writer.events
    scene.close()

    assert writer.lost == 2
    assert events[-1]["event"] == "rebalance-started"


# When it is written


class Turns:
    """Stands for the loop: what is to be done soon is done when the test says so."""

    def __init__(self) -> None:
        self._soon: list[Callable[[], None]] = []

    def call_soon(self, then: Callable[[], None]) -> None:
        self._soon.append(then)

    def end(self) -> None:
        soon, self._soon = self._soon, []
        for then in soon:
            then()


def test_what_is_noted_in_one_turn_is_one_batch_at_its_end(scene: Scene) -> None:
    turns = Turns()
    writer = Writer(scene, turns=turns)

    for note in NOTES[:3]:
        writer.topic.note([note])
    assert writer.appended == {}
    turns.end()
    writer.topic.note(NOTES[3:6])
    turns.end()

    assert writer.events == [event_of(note) for note in NOTES[:6]]
    assert writer.appended == {EVENTS: 2}


def test_where_there_are_no_turns_a_note_is_written_at_once(scene: Scene) -> None:
    writer = Writer(scene)

    writer.topic.note(NOTES[:1])

    assert writer.events == [event_of(NOTES[0])]


def test_more_than_may_wait_is_written_before_the_turn_ends(scene: Scene) -> None:
    writer = Writer(scene, turns=Turns())

    for _ in range(2_500):
        writer.topic.note(NOTES[:1])

    assert writer.appended == {EVENTS: 2}


@pytest.fixture
def unturned(scene: Scene) -> Scene:
    """A group that has rebalanced, in a turn that does not end."""
    topics = scene.broker.topics
    scene.broker = Broker(Settings(AT_ONCE), topics, None, call_soon=Turns().call_soon)
    for _ in scene.broker.load_groups(lambda: scene.now):
        pass
    join_alone(scene, "g")
    assert topics.find(EVENTS) is None
    return scene


def kinds_in(scene: Scene) -> list[str]:
    records = scene.fetch(name=EVENTS).records
    return [json.loads(value)["event"] for value in values_in(records)]


def test_what_was_noted_is_written_before_a_sync(unturned: Scene) -> None:
    unsynced = unturned.broker.take_unsynced()

    assert kinds_in(unturned)[-1] == "rebalance-ended"
    assert len(unsynced) > 1


def test_a_node_that_stops_in_good_order_loses_nothing_that_was_noted(unturned: Scene) -> None:
    unturned.broker.shut_down(unturned.now)

    assert kinds_in(unturned)[-2:] == ["rebalance-ended", "state-changed"]


def test_what_a_member_was_told_of_is_among_the_events_when_the_node_is_killed(
    tmp_path: Path,
) -> None:
    settings = {**AT_ONCE, "kohort.durability": "fsync"}
    with Served(tmp_path, settings) as served, calling.Caller(served.address) as caller:
        calling.join_alone(caller, "readers")
        served.kill()

    with Served(tmp_path, settings) as served, calling.Caller(served.address) as caller:
        fetched = caller.ask(fetch_request(0, EVENTS), 12)
        records = fetched.responses[0].partitions[0].records

    assert json.loads(values_in(records)[-1])["event"] == "rebalance-ended"


# The whole way


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, AT_ONCE)
    yield scene
    scene.close()


def test_a_groups_life_can_be_read_from_the_topic(quick: Scene) -> None:
    quick.create("t")
    member = join_alone(quick, "g", share("t", 0))
    assert commit(quick, "g", "t", 0, member=member) == "NONE"
    leave(quick, member)
    assert commit(quick, "g", "t", 0, member=member) == "UNKNOWN_MEMBER_ID"

    records = quick.fetch(name=EVENTS).records
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


def test_kafka_python_reads_the_events_and_sees_that_they_stay_for_a_month() -> None:
    with kohort.Node(settings=AT_ONCE) as node:
        host, _, port = node.bootstrap_servers.rpartition(":")
        with calling.Caller(Address(host=host, port=int(port))) as caller:
            calling.join_alone(caller, "readers")

        consumer = KafkaConsumer(bootstrap_servers=node.bootstrap_servers, group_id=None)
        consumer.assign([TopicPartition(EVENTS, 0)])
        consumer.seek_to_beginning()
        read: list[Any] = []
        while not read or json.loads(read[-1].value)["event"] != "rebalance-ended":
            polled = consumer.poll(timeout_ms=10_000)
            assert polled, "no more events, and the rebalance has not ended"
            read += [record for records in polled.values() for record in records]
        consumer.close()
        admin = KafkaAdminClient(bootstrap_servers=node.bootstrap_servers)
        topic = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, EVENTS)])
        admin.close()

    assert {record.key for record in read} == {b"readers"}
    assert all(record.timestamp == json.loads(record.value)["at"] for record in read)
    assert int(topic["topic"][EVENTS]["retention.ms"]["value"]) == A_MONTH_MS


def test_a_party_is_told_in_full_wherever_it_occurs() -> None:
    names = {field.name for field in dataclasses.fields(Party)}
    participant = event_of(crowded(1))["participants"][0]

    assert set(participant["party"]) == names
    assert set(participant) == {field.name for field in dataclasses.fields(Participant)}
