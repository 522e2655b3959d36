"""The events of `__kohort_events` as Arrow columns.

Fields and events that this version does not know stay in the column `body`.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from kohort.events.parser import BadEvent, parse_event
from kohort.events.schema import Event, EventMember, EventParticipant, RemovedMember
from kohort.pipeline.decode import timestamps
from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.decoders.batches import Problem, schema_of
from kohort.types import TopicPartition

T = TypeVar("T")

EVENTS: Final = schema_of(tables.GROUP_EVENTS)

_IDENTITY: Final = EVENTS.field("party").type

_SAME: Final = (
    "generation",
    "generation_before",
    "trigger",
    "ending",
    "client_reason",
    "departure",
    "state_before",
    "join_ended_by",
    "protocol",
    "leader",
)
"""Columns with the value of the field of the same name."""


def decode_events(records: pa.RecordBatch) -> pa.RecordBatch:
    """One row per event and group; the values of a record are the parts of one event in order."""
    return _read_all(records)[0]


def find_problems(records: pa.RecordBatch) -> list[Problem]:
    """The records that `decode_events` leaves out, with the reasons."""
    return _read_all(records)[1]


def _read_all(records: pa.RecordBatch) -> tuple[pa.RecordBatch, list[Problem]]:
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for index, record in enumerate(records.select(["partition", "offset", "values"]).to_pylist()):
        name = {"partition": record["partition"], "offset": record["offset"]}
        values = record["values"]
        try:
            event = parse_event(values)
        except BadEvent as error:
            problems.append(Problem(index=index, reason=str(error)))
            continue
        if len(values) == 1:
            body = values[0].decode()
        else:
            body = json.dumps(event.body, separators=(",", ":"))
        row = {**name, **_columns_of(event), "body": body}
        rows += [{**row, "group_id": each} for each in event.group_ids]
    return pa.RecordBatch.from_pylist(rows, schema=EVENTS), problems


def _columns_of(event: Event) -> dict[str, Any]:
    """The fields of an event that have a column. Unknown fields are only in the body."""
    details: Any = event.details
    row: dict[str, Any] = {name: getattr(details, name, None) for name in _SAME}
    return row | {
        "event": event.name,
        "at": _moment(event.at),
        "initiator": _party(getattr(details, "initiator", None)),
        "party": _party(getattr(details, "party", None)),
        "started_at": _moment(getattr(details, "started_ms", None)),
        "join_ended_at": _moment(getattr(details, "join_ended_ms", None)),
        "participants": _rows(getattr(details, "participants", None), _participant),
        "removals": _rows(getattr(details, "removals", None), _removal),
    }


def _rows(items: Sequence[T] | None, row_of: Callable[[T], object]) -> list[object] | None:
    return None if items is None else [row_of(each) for each in items]


def _moment(ms: int | None) -> Any:
    return None if ms is None else timestamps(np.array([ms]))[0]


def _participant(each: EventParticipant) -> dict[str, Any]:
    return {
        "party": _party(each.party),
        "join_took_ms": each.join_took_ms,
        "sync_took_ms": each.sync_took_ms,
        "had": _rows(each.had, TopicPartition._asdict),
        "got": _rows(each.got, TopicPartition._asdict),
    }


def _removal(each: RemovedMember) -> dict[str, Any]:
    return {"party": _party(each.party), "departure": each.departure}


def _party(party: EventMember | None) -> dict[str, Any] | None:
    return None if party is None else {each.name: getattr(party, each.name) for each in _IDENTITY}
