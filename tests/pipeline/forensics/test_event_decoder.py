"""Events are decoded into columns, in one record or in several parts."""

import json
from typing import Any

import pyarrow as pa
import pytest

from kohort.coordinator.events import (
    AppendFailed,
    Departure,
    GroupEvent,
    JoinEnd,
    MemberGone,
    MemberRemoval,
    OffsetsExpired,
    RebalanceEnded,
    RebalanceParticipant,
    RebalanceResult,
    Trigger,
)
from kohort.coordinator.groups.classic.states import GroupState
from kohort.events.parser import BadEvent, parse_event
from kohort.node.events_topic import json_of, records_of
from kohort.pipeline.forensics.decoders.event_decoder import decode_events, find_problems
from kohort.types import ErrorCode, Generation, GroupId, MemberId, Millis, Partition, Topic
from kohort.wire.consumer_protocol import Assignment, encode_assignment
from tests.pipeline.forensics.history_bytes import party, places

GROUP = GroupId("g")
SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("values", pa.list_(pa.binary())),
    ]
)


def batch_of(*events: list[bytes | None]) -> pa.RecordBatch:
    rows = [{"partition": 0, "offset": at, "values": each} for at, each in enumerate(events)]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def rows_of(*events: list[bytes | None]) -> list[dict[str, Any]]:
    batch = decode_events(batch_of(*events))
    batch.validate(full=True)
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def reason_of(*values: bytes | None) -> str:
    batch = batch_of(list(values))
    assert decode_events(batch).num_rows == 0
    (problem,) = find_problems(batch)
    return problem.reason


def pieces_of(note: GroupEvent, bytes_max: int) -> list[bytes | None]:
    return [each.value for each in records_of(note, bytes_max)]


def rebalance(members: int) -> RebalanceEnded:
    return RebalanceEnded(
        at=Millis(9_000),
        group_id=GROUP,
        ending=RebalanceResult.STABLE,
        trigger=Trigger.MEMBER_LEFT,
        initiator=party("gone"),
        client_reason="closed",
        state_before=GroupState.STABLE,
        generation_before=Generation(1),
        generation=Generation(2),
        started_ms=Millis(5_000),
        join_ended_ms=Millis(8_000),
        join_ended_by=JoinEnd.ALL_JOINED,
        protocol_type="consumer",
        protocol="range",
        leader=MemberId("m0"),
        participants=tuple(
            RebalanceParticipant(
                party=party(f"m{number}", "i" if number else None),
                join_took_ms=Millis(number),
                sync_took_ms=None,
                had=b"",
                got=encode_assignment(Assignment(assigned_partitions=places(f"t{number}"))),
            )
            for number in range(members)
        ),
        removals=(MemberRemoval(party=party("gone"), departure=Departure.LEFT),),
    )


def test_an_ended_rebalance_has_all_columns() -> None:
    (row,) = rows_of([json_of(rebalance(2))])

    assert {name: row[name] for name in ("group_id", "event", "ending", "trigger")} == {
        "group_id": "g",
        "event": "rebalance-ended",
        "ending": "stable",
        "trigger": "member-left",
    }
    assert (row["generation_before"], row["generation"]) == (1, 2)
    assert [row[name].timestamp() for name in ("started_at", "join_ended_at", "at")] == [5, 8, 9]
    assert (row["join_ended_by"], row["protocol"], row["leader"]) == ("all-joined", "range", "m0")
    assert row["initiator"]["client_id"] == "client of gone"
    assert row["removals"][0]["departure"] == "left"
    first, second = row["participants"]
    assert (first["party"]["member_id"], first["party"]["instance_id"]) == ("m0", None)
    assert (second["join_took_ms"], second["sync_took_ms"]) == (1, None)
    assert (second["had"], second["got"]) == ([], [{"topic": "t", "partition": 1}])
    assert json.loads(row["body"])["event"] == "rebalance-ended"


def test_an_event_in_parts_equals_the_whole_event() -> None:
    whole = rebalance(40)
    pieces = pieces_of(whole, 2_000)
    assert len(pieces) > 3

    (from_pieces,), (from_one,) = rows_of(pieces), rows_of([json_of(whole)])

    assert json.loads(from_pieces.pop("body")) == json.loads(from_one.pop("body"))
    assert from_pieces == from_one


def test_expired_offsets_in_parts_are_merged_by_topic() -> None:
    partitions = tuple((Topic(f"t{each % 3}"), Partition(each)) for each in range(200))
    note = OffsetsExpired(at=Millis(1), group_id=GROUP, partitions=partitions)
    pieces = pieces_of(note, 400)
    assert len(pieces) > 3

    (row,) = rows_of(pieces)

    assert json.loads(row["body"]) == json.loads(json_of(note))


def test_an_event_about_several_groups_has_a_row_for_each() -> None:
    note = AppendFailed(
        at=Millis(1),
        group_ids=(GROUP, GroupId("h")),
        error=ErrorCode.KAFKA_STORAGE_ERROR,
    )

    assert [(row["group_id"], row["event"]) for row in rows_of([json_of(note)])] == [
        ("g", "not-kept"),
        ("h", "not-kept"),
    ]


def test_a_departure_has_the_member_and_the_cause() -> None:
    note = MemberGone(
        at=Millis(1), group_id=GROUP, party=party("a"), departure=Departure.SESSION_EXPIRED
    )

    (row,) = rows_of([json_of(note)])

    assert (row["party"]["member_id"], row["departure"]) == ("a", "session-expired")


def test_unknown_events_and_fields_stay_in_the_body() -> None:
    body = b'{"event":"comet-seen","at":1,"group_id":"g","tail":{"long":true}}'

    (row,) = rows_of([body])

    assert (row["event"], row["group_id"], row["body"]) == ("comet-seen", "g", body.decode())


@pytest.mark.parametrize("value", [None, b"[1]", b'{"event":"member-gone","at":1,"group_id":"g"}'])
def test_an_invalid_event_is_reported_with_the_reason(value: bytes | None) -> None:
    with pytest.raises(BadEvent) as refused:
        parse_event([value])

    assert reason_of(value) == str(refused.value)
