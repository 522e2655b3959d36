"""The events that Kohort notes about its groups, from JSON to columns.

An event that was too large for one record comes as several, whose lists are put together here. What
is not known is left alone: it stays in the body, and later versions of Kohort may add to it.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from kohort.pipeline.decode import moments
from kohort.pipeline.forensics.decoding.batches import Problem
from kohort.pipeline.forensics.decoding.generations import PARTITION

_MOMENT: Final = pa.timestamp("us", tz="UTC")

_PARTY: Final = pa.struct(
    [
        pa.field("member_id", pa.string()),
        pa.field("instance_id", pa.string()),
        pa.field("client_id", pa.string()),
        pa.field("client_host", pa.string()),
    ]
)
_PARTICIPANT: Final = pa.struct(
    [
        pa.field("party", _PARTY),
        pa.field("join_took_ms", pa.int64()),
        pa.field("sync_took_ms", pa.int64()),
        pa.field("had", pa.list_(PARTITION)),
        pa.field("got", pa.list_(PARTITION)),
    ]
)
_REMOVAL: Final = pa.struct([pa.field("party", _PARTY), pa.field("departure", pa.string())])

EVENTS: Final = pa.schema(
    [
        pa.field("group_id", pa.string()),
        pa.field("at", _MOMENT),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("event", pa.string()),
        pa.field("generation", pa.int32()),
        pa.field("generation_before", pa.int32()),
        pa.field("trigger", pa.string()),
        pa.field("ending", pa.string()),
        pa.field("culprit", _PARTY),
        pa.field("party", _PARTY),
        pa.field("client_reason", pa.string()),
        pa.field("departure", pa.string()),
        pa.field("state_before", pa.string()),
        pa.field("started_at", _MOMENT),
        pa.field("join_ended_at", _MOMENT),
        pa.field("join_ended_by", pa.string()),
        pa.field("protocol", pa.string()),
        pa.field("leader", pa.string()),
        pa.field("participants", pa.list_(_PARTICIPANT)),
        pa.field("removals", pa.list_(_REMOVAL)),
        pa.field("body", pa.string()),
    ]
)

_TEXTS: Final = (
    "event",
    "trigger",
    "ending",
    "client_reason",
    "departure",
    "state_before",
    "join_ended_by",
    "protocol",
    "leader",
)
_GENERATIONS: Final = ("generation", "generation_before")
_INT32_MAX: Final = 2**31 - 1

T = TypeVar("T")


class _Nonsense(Exception):
    """An event that is not what the page on events says."""


def decode_events(records: pa.RecordBatch) -> pa.RecordBatch:
    """Events, each from the values of its parts in their order, under its first part's name."""
    return _read_all(records)[0]


def find_problems(records: pa.RecordBatch) -> list[Problem]:
    """What `decode_events` leaves out of the same records."""
    return _read_all(records)[1]


def _read_all(records: pa.RecordBatch) -> tuple[pa.RecordBatch, list[Problem]]:
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for index, record in enumerate(records.select(["partition", "offset", "values"]).to_pylist()):
        name = {"partition": record["partition"], "offset": record["offset"]}
        try:
            rows += [name | row for row in _read(record["values"])]
        except _Nonsense as error:
            problems.append(Problem(index=index, reason=str(error)))
    return pa.RecordBatch.from_pylist(rows, schema=EVENTS), problems


def _read(values: Sequence[bytes | None]) -> Iterator[dict[str, Any]]:
    """One row for the group; of what befell several groups at once, one row for each."""
    event, body = _put_together(values)
    row: dict[str, Any] = {name: _get(event, name, str) for name in _TEXTS}
    if row["event"] is None:
        raise _Nonsense("an event without a name")
    row |= {name: _generation(event, name) for name in _GENERATIONS}
    row |= {
        "at": _moment(event, "at"),
        "culprit": _party(event, "culprit"),
        "party": _party(event, "party"),
        "started_at": _moment(event, "started_ms"),
        "join_ended_at": _moment(event, "join_ended_ms"),
        "participants": _list(event, "participants", _participant),
        "removals": _list(event, "removals", _removal),
        "body": body,
    }
    if row["at"] is None:
        raise _Nonsense("an event without a time")
    group_id = _get(event, "group_id", str)
    group_ids = _get(event, "group_ids", list) if group_id is None else [group_id]
    if not group_ids or not all(isinstance(each, str) for each in group_ids):
        raise _Nonsense("an event without a group")
    return iter([row | {"group_id": each} for each in group_ids])


def _put_together(values: Sequence[bytes | None]) -> tuple[dict[str, Any], str]:
    """The event and its text: as it came, if it came in one piece."""
    whole, *others = [_parse(each) for each in values]
    if not others and "parts" not in whole[0]:
        return whole
    event = whole[0]
    if event.get("parts") != len(values):
        raise _Nonsense(f"{len(values)} of {event.get('parts')} parts are here")
    for number, (part, _) in enumerate(others, start=2):
        if (part.get("part"), part.get("event")) != (number, event.get("event")):
            raise _Nonsense(f"part {number} is not of the same event")
        for name, items in part.items():
            if isinstance(items, list) and isinstance(event.get(name), list):
                event[name] += items
            elif isinstance(items, dict) and name == "partitions":
                _add_partitions(event[name], items)
    del event["part"], event["parts"]
    return event, json.dumps(event, separators=(",", ":"))


def _add_partitions(known: dict[str, list[int]], more: dict[str, list[int]]) -> None:
    """Expired offsets are shared out among parts as well, under their topics."""
    for topic, partitions in more.items():
        known.setdefault(topic, []).extend(partitions)


def _parse(value: bytes | None) -> tuple[dict[str, Any], str]:
    if value is None:
        raise _Nonsense("an event without a value")
    try:
        text = value.decode()
        event = json.loads(text)
    except ValueError as error:
        raise _Nonsense(f"no JSON: {error}") from None
    if not isinstance(event, dict):
        raise _Nonsense(f"a JSON {type(event).__name__}, not an object")
    return event, text


def _get(event: dict[str, Any], name: str, kind: type[T]) -> T | None:
    found = event.get(name)
    if found is None or type(found) is kind:
        return found
    raise _Nonsense(f"{name} is {found!r:.80}")


def _generation(event: dict[str, Any], name: str) -> int | None:
    number = _get(event, name, int)
    if number is not None and not -1 <= number <= _INT32_MAX:
        raise _Nonsense(f"{name} is {number}")
    return number


def _millis(event: dict[str, Any], name: str) -> int | None:
    number = _get(event, name, int)
    if number is not None and not -(2**63) <= number < 2**63:
        raise _Nonsense(f"{name} is {number}")
    return number


def _moment(event: dict[str, Any], name: str) -> Any:
    number = _millis(event, name)
    return None if number is None else moments(np.array([number]))[0]


def _list(event: dict[str, Any], name: str, read: Any) -> list[dict[str, Any]] | None:
    items = _get(event, name, list)
    if items is None:
        return None
    if not all(isinstance(each, dict) for each in items):
        raise _Nonsense(f"{name} holds something else than objects")
    return [read(each) for each in items]


def _participant(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "party": _party(item, "party"),
        "join_took_ms": _millis(item, "join_took_ms"),
        "sync_took_ms": _millis(item, "sync_took_ms"),
        "had": _partitions(item, "had"),
        "got": _partitions(item, "got"),
    }


def _removal(item: dict[str, Any]) -> dict[str, Any]:
    return {"party": _party(item, "party"), "departure": _get(item, "departure", str)}


def _party(event: dict[str, Any], name: str) -> dict[str, Any] | None:
    party = _get(event, name, dict)
    if party is None:
        return None
    return {field.name: _get(party, field.name, str) for field in _PARTY}


def _partitions(item: dict[str, Any], name: str) -> list[dict[str, Any]] | None:
    topics = _get(item, name, dict)
    if topics is None:
        return None
    pairs = [(topic, each) for topic in topics for each in _get(topics, topic, list) or []]
    if not all(type(each) is int and 0 <= each <= _INT32_MAX for _, each in pairs):
        raise _Nonsense(f"{name} is {topics!r:.80}")
    return [{"topic": topic, "partition": each} for topic, each in pairs]
