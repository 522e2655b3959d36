"""The silver tables of small histories."""

import json

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kohort.coordinator.events import (
    Departure,
    InstanceReplaced,
    MemberGone,
    MemberJoined,
    OffsetsExpired,
    RebalanceStarted,
    Trigger,
)
from kohort.coordinator.groups.classic.states import GroupState
from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.silver import (
    commits_table,
    generations_table,
    group_events_table,
    memberships_table,
    ownership_table,
    undecodable_table,
)
from kohort.pipeline.forensics.silver.record_kinds import split_by_kind
from kohort.pipeline.forensics.store import conform
from kohort.types import Generation, GroupId, MemberId, Millis, Partition, Topic
from kohort.wire.consumer_offsets import ConsumerGroupMetadataKey, OffsetCommitKey, encode_key
from tests.pipeline.forensics.history_bytes import (
    History,
    member,
    party,
    records,
    repeated,
    tuples,
    without,
)

OWNED = ("group_id", "topic", "partition", "member_id", "from_generation", "to_generation")
HELD = (*OWNED, "from_at", "to_at", "gap_before_ms")
BEEN = ("group_id", "member_id", "from_generation", "to_generation", "from_at", "to_at")
ENDED = (*BEEN, "ending", "is_exact")
MOVED = ("topic", "partition", "log_offset", "committed", "step", "owner", "generation")


def read(spark: SparkSession, *histories: History) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Records, generations and events of some histories, built once."""
    came = records(spark, *histories)
    kept, events = generations_table.build(came), group_events_table.build(came)
    return came, settled(kept), settled(events)


def settled(frame: DataFrame) -> DataFrame:
    return frame.sparkSession.createDataFrame(frame.collect(), frame.schema)


def started(generation: int, at: int, group: str = "g") -> RebalanceStarted:
    return RebalanceStarted(
        at=Millis(at),
        group_id=GroupId(group),
        generation=Generation(generation),
        trigger=Trigger.MEMBER_JOINED,
        initiator=None,
        client_reason=None,
        state_before=GroupState.STABLE,
        waited_for=(),
    )


def gone(member_id: str, at: int, departure: Departure = Departure.LEFT) -> MemberGone:
    return MemberGone(
        at=Millis(at), group_id=GroupId("g"), party=party(member_id), departure=departure
    )


def scaled_up_and_down() -> History:
    """One member, two, the other one, none, then the group is deleted."""
    history = History()
    history.formed("g", 1, {"a": "t0 t1"}, at=1_000)
    history.committed("g", "t0", 10, at=1_100)
    history.committed("g", "t1", 5, at=1_200)
    history.formed("g", 2, {"a": "t0", "b": "t1"}, at=2_000)
    history.committed("g", "t1", 9, at=2_100)
    history.formed("g", 3, {"b": "t0 t1"}, at=3_000)
    history.committed("g", "t0", 8, at=3_100)
    history.emptied("g", 4, at=4_000)
    history.committed("g", "t0", 20, at=4_100)
    history.removed("g", "t0", at=4_200)
    history.deleted("g", at=5_000)
    history.committed("g", "t0", 30, at=5_100)
    return history


def test_generations_are_in_log_order(spark: SparkSession) -> None:
    _, kept, _ = read(spark, scaled_up_and_down(), History())

    assert tuples(kept, "offset", "generation", "kind", "at", "leader", "size(members)") == [
        (0, 1, "formed", 1_000, "a", 1),
        (10, None, "deleted", 5_000, None, 0),
        (3, 2, "formed", 2_000, "a", 2),
        (5, 3, "formed", 3_000, "b", 1),
        (7, 4, "emptied", 4_000, None, 0),
    ]


def test_memberships_end_with_the_first_generation_without_them(spark: SparkSession) -> None:
    _, kept, events = read(spark, scaled_up_and_down())

    assert tuples(memberships_table.build(kept, events), *ENDED) == [
        ("g", "a", 1, 2, 1_000, 3_000, "gone", False),
        ("g", "b", 2, 3, 2_000, 4_000, "gone", False),
    ]


def test_ownership_lasts_until_the_next_generation(spark: SparkSession) -> None:
    _, kept, events = read(spark, scaled_up_and_down())

    assert tuples(ownership_table.build(kept, events), *HELD) == [
        ("g", "t", 0, "a", 1, 2, 1_000, 3_000, None),
        ("g", "t", 0, "b", 3, 3, 3_000, 4_000, 0),
        ("g", "t", 1, "a", 1, 1, 1_000, 2_000, None),
        ("g", "t", 1, "b", 2, 3, 2_000, 4_000, 0),
    ]


def test_commits_have_step_owner_and_generation(spark: SparkSession) -> None:
    came, kept, _ = read(spark, scaled_up_and_down())

    assert tuples(commits_table.build(split_by_kind(came), kept), *MOVED) == [
        ("t", 0, 1, 10, None, "a", 1),
        ("t", 0, 11, 30, None, None, None),
        ("t", 0, 6, 8, -2, "b", 3),
        ("t", 0, 8, 20, 12, None, 4),
        ("t", 0, 9, None, None, None, 4),
        ("t", 1, 2, 5, None, "a", 1),
        ("t", 1, 4, 9, 4, "b", 2),
    ]


def test_duplicates_of_records_change_nothing(spark: SparkSession) -> None:
    history = scaled_up_and_down()
    history.noted(gone("b", 3_900))
    twice = repeated(history, *range(12), 4, 4)
    came, kept, events = read(spark, history)
    came_twice, kept_twice, events_twice = read(spark, twice)

    assert tuples(commits_table.build(split_by_kind(came_twice), kept_twice), *MOVED) == tuples(
        commits_table.build(split_by_kind(came), kept), *MOVED
    )
    assert tuples(ownership_table.build(kept_twice, events_twice), *HELD) == tuples(
        ownership_table.build(kept, events), *HELD
    )
    assert events_twice.count() == 1


def test_compacted_records_are_ignored(spark: SparkSession) -> None:
    came, kept, events = read(spark, without(scaled_up_and_down(), 0, 1, 3, 4))

    assert tuples(ownership_table.build(kept, events), *OWNED) == [
        ("g", "t", 0, "b", 3, 3),
        ("g", "t", 1, "b", 3, 3),
    ]
    assert tuples(commits_table.build(split_by_kind(came), kept), *MOVED)[-1] == (
        "t",
        1,
        2,
        5,
        None,
        None,
        None,
    )


def test_the_same_group_in_two_logs_is_two_groups(spark: SparkSession) -> None:
    first, second = History(0), History(1)
    first.formed("g", 1, {"a": "t0"}, at=1_000)
    second.formed("g", 7, {"b": "t0"}, at=1_500)
    second.committed("g", "t0", 3, at=1_600)
    first.committed("g", "t0", 5, at=2_000)
    came, kept, _ = read(spark, first, second)

    assert tuples(
        commits_table.build(split_by_kind(came), kept),
        "log_partition",
        "committed",
        "step",
        "owner",
    ) == [
        (0, 5, None, "a"),
        (1, 3, None, "b"),
    ]


def test_a_clock_that_steps_back_does_not_change_the_order(spark: SparkSession) -> None:
    history = History()
    history.formed("g", 1, {"a": "t0"}, at=9_000)
    history.formed("g", 2, {"b": "t0"}, at=8_000)
    history.committed("g", "t0", 5, at=9_500)
    history.committed("g", "t0", 7, at=8_500)
    came, kept, events = read(spark, history)

    assert tuples(
        commits_table.build(split_by_kind(came), kept), "log_offset", "step", "owner"
    ) == [
        (2, None, "b"),
        (3, 2, "b"),
    ]
    assert tuples(ownership_table.build(kept, events), *HELD) == [
        ("g", "t", 0, "a", 1, 1, 9_000, 8_000, None),
        ("g", "t", 0, "b", 2, 2, 8_000, None, 0),
    ]


def test_an_eager_group_owns_nothing_from_the_start_of_a_rebalance(
    spark: SparkSession,
) -> None:
    history = History()
    history.formed("g", 1, {"a": "t0 t1"}, at=1_000)
    history.noted(started(1, 1_700))
    history.formed("g", 2, {"a": "t0", "b": "t1"}, at=2_000)
    history.noted(started(2, 2_400))
    history.noted(started(3, 2_500))
    history.formed("g", 4, {"a": "t0", "b": "t1"}, at=3_000)
    history.noted(started(4, 3_900))
    _, kept, events = read(spark, history)

    assert tuples(ownership_table.build(kept, events), *HELD) == [
        ("g", "t", 0, "a", 1, 1, 1_000, 1_700, None),
        ("g", "t", 0, "a", 2, 2, 2_000, 2_400, 300),
        ("g", "t", 0, "a", 4, 4, 3_000, 3_900, 600),
        ("g", "t", 1, "a", 1, 1, 1_000, 1_700, None),
        ("g", "t", 1, "b", 2, 2, 2_000, 2_400, 300),
        ("g", "t", 1, "b", 4, 4, 3_000, 3_900, 600),
    ]


def test_a_cooperative_group_keeps_its_partitions_during_a_rebalance(spark: SparkSession) -> None:
    history = History()
    history.formed("g", 1, {"a": "t0 t1"}, at=1_000, protocol="cooperative-sticky")
    history.noted(started(1, 1_700))
    # Only what is owned shows that this assignor of one's own is cooperative.
    mine = [member("a", "t0", owned="t0 t1"), member("b", "")]
    history.formed("g", 2, mine, at=2_000, protocol="mine")
    history.noted(started(2, 2_400))
    history.formed("g", 3, {"a": "t0", "b": "t1"}, at=3_000, protocol="cooperative-sticky")
    _, kept, events = read(spark, history)

    assert tuples(ownership_table.build(kept, events), *HELD) == [
        ("g", "t", 0, "a", 1, 3, 1_000, None, None),
        ("g", "t", 1, "a", 1, 1, 1_000, 2_000, None),
        ("g", "t", 1, "b", 3, 3, 3_000, None, 1_000),
    ]


def test_a_removed_member_owns_nothing(spark: SparkSession) -> None:
    history = History()
    history.formed("g", 1, {"a": "t0", "b": "t1"}, at=1_000, protocol="cooperative-sticky")
    history.noted(gone("b", 1_400, Departure.SESSION_EXPIRED))
    history.formed("g", 2, {"a": "t0 t1"}, at=2_000, protocol="cooperative-sticky")
    history.noted(gone("a", 2_900))
    _, kept, events = read(spark, history)

    assert tuples(ownership_table.build(kept, events), *HELD) == [
        ("g", "t", 0, "a", 1, 2, 1_000, 2_900, None),
        ("g", "t", 1, "a", 2, 2, 2_000, 2_900, 600),
        ("g", "t", 1, "b", 1, 1, 1_000, 1_400, None),
    ]
    assert tuples(memberships_table.build(kept, events), *ENDED) == [
        ("g", "a", 1, 2, 1_000, 2_900, "left", True),
        ("g", "b", 1, 1, 1_000, 1_400, "session-expired", True),
    ]


def test_an_event_of_an_earlier_group_with_the_same_name_is_ignored(spark: SparkSession) -> None:
    history = History()
    history.formed("g", 1, {"a": "t0"}, at=1_000)
    history.noted(started(1, 1_500))
    history.emptied("g", 2, at=2_000)
    history.deleted("g", at=3_000)
    history.formed("g", 1, {"z": "t0"}, at=4_000)
    _, kept, events = read(spark, history)

    assert tuples(ownership_table.build(kept, events), *HELD) == [
        ("g", "t", 0, "a", 1, 1, 1_000, 1_500, None),
        ("g", "t", 0, "z", 1, 1, 4_000, None, 2_500),
    ]


@pytest.mark.parametrize("has_event", [False, True])
def test_a_static_member_that_restarts_is_replaced(
    spark: SparkSession,
    has_event: bool,  # noqa: FBT001 - pytest gives parameters by name
) -> None:
    history = History()
    others = [member("b", "t1")]
    history.formed("g", 1, [member("a", "t0", instance_id="i"), *others], at=1_000)
    if has_event:
        note = InstanceReplaced(
            at=Millis(1_900),
            group_id=GroupId("g"),
            old_member_id=MemberId("a"),
            party=party("z", "i"),
            is_quiet=True,
        )
        history.noted(note)
    history.formed("g", 1, [member("z", "t0", instance_id="i"), *others], at=2_000)
    _, kept, events = read(spark, history)

    when = 1_900 if has_event else 2_000
    assert tuples(memberships_table.build(kept, events), *ENDED) == [
        ("g", "a", 1, 1, 1_000, when, "replaced", has_event),
        ("g", "b", 1, 1, 1_000, None, None, False),
        ("g", "z", 1, 1, when, None, None, False),
    ]
    assert tuples(ownership_table.build(kept, events), *HELD) == [
        ("g", "t", 0, "a", 1, 1, 1_000, when, None),
        ("g", "t", 0, "z", 1, 1, 2_000, None, 2_000 - when),
        ("g", "t", 1, "b", 1, 1, 1_000, None, None),
    ]


def test_a_membership_starts_with_its_join_event(
    spark: SparkSession,
) -> None:
    history = History()
    note = MemberJoined(at=Millis(400), group_id=GroupId("g"), party=party("a"), client_reason=None)
    history.noted(note)
    history.formed("g", 1, {"a": "t0"}, at=1_000)
    _, kept, events = read(spark, history)

    assert tuples(memberships_table.build(kept, events), *BEEN) == [("g", "a", 1, 1, 400, None)]


def test_an_event_in_parts_is_one_event_and_an_incomplete_one_is_undecodable(
    spark: SparkSession,
) -> None:
    history = History()
    history.noted(gone("a", 10))
    partitions = tuple((Topic("t"), Partition(each)) for each in range(200))
    note = OffsetsExpired(at=Millis(20), group_id=GroupId("g"), partitions=partitions)
    history.noted(note, 400)
    history.noted(note, 400)
    history.kept.pop(-3)
    came, _, events = read(spark, history)
    pieces = len(history.kept) // 2

    assert tuples(events, "offset", "event", "at") == [
        (0, "member-gone", 10),
        (1, "offsets-expired", 20),
    ]
    (body,) = events.where("offset = 1").select("body").collect()
    assert json.loads(body[0])["partitions"]["t"] == list(range(200))
    bad = tuples(undecodable_table.build(split_by_kind(came)), "topic", "offset", "reason")
    assert len(bad) == pieces - 1
    assert {reason for _, _, reason in bad} == {f"found {pieces - 1} of {pieces} parts"}


def test_undecodable_records_are_reported_and_the_others_are_read(spark: SparkSession) -> None:
    history = History()
    history.formed("g", 1, {"a": "t0"}, at=1_000)
    history.committed("g", "t0", 5, at=1_100)
    key = encode_key(OffsetCommitKey(group=GroupId("g"), topic=Topic("t"), partition=Partition(0)))
    history.raw(key, b"\0\4", at=1_200)
    history.raw(b"\0\2\0\1g", b"\0\3", at=1_300)
    history.raw(None, b"", at=1_400)
    history.raw(b"\0", b"", at=1_500)
    history.raw(b"\x12\x34rest", b"", at=1_600)
    history.event(b"not an event", at=1_700)
    history.raw(encode_key(ConsumerGroupMetadataKey(group_id=GroupId("new"))), b"", at=1_800)
    history.raw(b"\0\x0b share", None, at=1_900)
    sound = b"\0\4" + bytes(8) + b"\xff" * 4 + b"\1" + bytes(9)
    history.raw(b"\0\1\0\1g\0\1\xff\0\0\0\0", sound, at=2_000)
    came, kept, events = read(spark, repeated(history, 2))

    bad = tuples(
        undecodable_table.build(split_by_kind(came)), "topic", "offset", "timestamp", "reason"
    )
    assert [row[:3] for row in bad] == [
        ("__consumer_offsets", 2, 1_200),
        ("__consumer_offsets", 3, 1_300),
        ("__consumer_offsets", 4, 1_400),
        ("__consumer_offsets", 5, 1_500),
        ("__consumer_offsets", 6, 1_600),
        ("__consumer_offsets", 9, 2_000),
        ("__kohort_events", 0, 1_700),
    ]
    reasons = [row[3] for row in bad]
    assert "OffsetCommitValue v4" in reasons[0]
    assert "GroupMetadataValue v3" in reasons[1]
    assert reasons[2:5] == [
        "no key",
        "the key is shorter than 2 bytes",
        "unknown record type 4660",
    ]
    assert "topic at byte 7: not UTF-8" in reasons[5]
    assert "not JSON" in reasons[6]
    assert tuples(undecodable_table.count_skipped(split_by_kind(came)), "kind", "records") == [
        ("ConsumerGroupMetadata", 1),
        ("ShareGroupMetadata", 1),
    ]
    assert tuples(commits_table.build(split_by_kind(came), kept), *MOVED) == [
        ("t", 0, 1, 5, None, "a", 1)
    ]
    assert events.count() == 0


def test_every_table_has_exactly_its_columns_even_when_it_is_empty(spark: SparkSession) -> None:
    came, kept, events = read(spark, History())
    built = [
        (tables.GENERATIONS, kept),
        (tables.GROUP_EVENTS, events),
        (tables.MEMBERSHIPS, memberships_table.build(kept, events)),
        (tables.OWNERSHIP, ownership_table.build(kept, events)),
        (tables.COMMITS, commits_table.build(split_by_kind(came), kept)),
        (tables.UNDECODABLE, undecodable_table.build(split_by_kind(came))),
    ]

    for table, frame in built:
        assert frame.dtypes == spark.createDataFrame([], table.ddl).dtypes, table.name
        assert frame.count() == 0


def test_a_frame_with_other_columns_is_refused(spark: SparkSession) -> None:
    ends = spark.sql(
        "SELECT 1 AS more, now() AS at, 't' AS topic, CAST(1 AS SMALLINT) AS partition, "
        "1 AS log_start, 2L AS log_end"
    )

    assert conform(ends, tables.ENDS).dtypes == spark.createDataFrame([], tables.ENDS.ddl).dtypes
    with pytest.raises(ValueError, match=r"bronze\.ends lacks at, log_end"):
        conform(ends.drop("at", "log_end"), tables.ENDS)
    with pytest.raises(AnalysisException, match="log_end"):
        conform(ends.selectExpr("* EXCEPT (log_end)", "'2' AS log_end"), tables.ENDS)
