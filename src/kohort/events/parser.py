"""Parses the records of `__kohort_events`, and joins events that were written in several parts.

Any client may write to a topic of that name on another cluster, so the parser trusts nothing: a
record that is not an event raises `BadEvent`. Unknown events and unknown fields are accepted.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from kohort.events.schema import EVENTS, Event
from kohort.types import Generation, GroupId, Millis, Partition, Topic, TopicPartition

PARTS_MAX: Final = 1_000
"""Of one event; about a gigabyte. Limits the memory that unfinished events can use."""

_INT32_MAX: Final = 2**31 - 1

_Json: TypeAlias = dict[str, Any]
_Reader: TypeAlias = Callable[[Any, str], Any]
"""Turns the JSON value of a field into the attribute's value; the text is the field's name."""


class BadEvent(Exception):
    """The record is not an event of a Kohort node."""


def parse_event(values: Sequence[bytes | None]) -> Event:
    """Parse the event whose parts are in these records; most events have one part."""
    return _to_event(_join([_parse_object(each) for each in values]))


class EventReader:
    """Parses records in the order of the topic, and joins the parts of large events."""

    def __init__(self) -> None:
        self._parts: dict[str | None, list[_Json]] = {}
        """Of unfinished events, by group."""

    def read(self, value: bytes | None) -> Event | None:
        """Return the event that this record completes, or None.

        The parts of an event follow each other. A part whose predecessors are missing is dropped.
        """
        found = _parse_object(value)
        if "part" not in found:
            return _to_event(found)
        group_id, part, parts = _text_or_none(found, "group_id"), found["part"], found.get("parts")
        if type(part) is not int or type(parts) is not int or not 0 < part <= parts:
            raise BadEvent(f"part {part!r:.20} of {parts!r:.20}")
        known = self._parts.pop(group_id, [])
        if len(known) != part - 1 or parts > PARTS_MAX:
            return None
        known.append(found)
        if part == parts:
            return _to_event(_join(known))
        self._parts[group_id] = known
        return None


# From bytes to a JSON object


def _parse_object(value: bytes | None) -> _Json:
    if value is None:
        raise BadEvent("an event without a value")
    try:
        found = json.loads(value.decode())
    except (ValueError, RecursionError) as error:
        raise BadEvent(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadEvent(f"a JSON {type(found).__name__}, not an object")
    return found


def _join(parts: Sequence[_Json]) -> _Json:
    """The whole event: each part repeats the plain fields and has a share of the lists."""
    first = parts[0]
    if len(parts) == 1 and "parts" not in first:
        return first
    if first.get("parts") != len(parts):
        raise BadEvent(f"found {len(parts)} of {first.get('parts')} parts")
    whole = {name: each for name, each in first.items() if name not in ("part", "parts")}
    for number, part in enumerate(parts[1:], start=2):
        if (part.get("part"), part.get("event")) != (number, first.get("event")):
            raise BadEvent(f"part {number} belongs to another event")
        for name, more in part.items():
            known = whole.get(name)
            if isinstance(known, list) and isinstance(more, list):
                whole[name] = known + more
            elif isinstance(known, dict) and isinstance(more, dict) and name == "partitions":
                whole[name] = _join_topics(known, more)
    return whole


def _join_topics(known: _Json, more: _Json) -> _Json:
    """Expired offsets are lists of partitions by topic."""
    joined = dict(known)
    for topic, partitions in more.items():
        if not isinstance(partitions, list) or not isinstance(joined.get(topic, []), list):
            raise BadEvent(f"partitions of {topic!r:.80} are not a list")
        joined[topic] = joined.get(topic, []) + partitions
    return joined


# From a JSON object to values


def _to_event(found: _Json) -> Event:
    name, at = _text_or_none(found, "event"), found.get("at")
    if name is None:
        raise BadEvent("an event without a name")
    if at is None:
        raise BadEvent("an event without a time")
    group_id = _text_or_none(found, "group_id")
    group_ids = found.get("group_ids") if group_id is None else [group_id]
    if not group_ids or not isinstance(group_ids, list):
        raise BadEvent("an event without a group")
    kind: Any = EVENTS.get(name)
    return Event(
        name=name,
        at=_read_millis(at, "at"),
        group_ids=tuple(GroupId(_read_text(each, "group_ids")) for each in group_ids),
        details=None if kind is None else _reader_of(kind)(found, name),
        body=found,
    )


def _text_or_none(found: _Json, name: str) -> str | None:
    text = found.get(name)
    return None if text is None else _read_text(text, name)


def _bad(name: str, found: object) -> BadEvent:
    return BadEvent(f"{name} is missing" if found is None else f"{name} is {found!r:.80}")


def _read_text(found: Any, name: str) -> str:
    if type(found) is not str:
        raise _bad(name, found)
    return found


def _read_flag(found: Any, name: str) -> bool:
    if type(found) is not bool:
        raise _bad(name, found)
    return found


def _read_generation(found: Any, name: str) -> Generation:
    if type(found) is not int or not -1 <= found <= _INT32_MAX:
        raise _bad(name, found)
    return Generation(found)


def _read_millis(found: Any, name: str) -> Millis:
    if type(found) is not int or not -(2**63) <= found < 2**63:
        raise _bad(name, found)
    return Millis(found)


def _read_partitions(found: Any, name: str) -> tuple[TopicPartition, ...]:
    """An object of topics with their partition numbers, as sorted pairs."""
    if type(found) is not dict:
        raise _bad(name, found)
    pairs = []
    for topic, numbers in found.items():
        if type(numbers) is not list:
            raise _bad(name, found)
        for number in numbers:
            if type(number) is not int or not 0 <= number <= _INT32_MAX:
                raise _bad(name, found)
            pairs.append(TopicPartition(Topic(topic), Partition(number)))
    return tuple(sorted(pairs))


@cache
def _reader_of(hint: Any) -> _Reader:
    """The reader of an attribute, or of a whole object, by its type."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (_reader_of(each) for each in get_args(hint) if each is not NoneType)
        return lambda found, name: None if found is None else inner(found, name)
    if get_origin(hint) is tuple:
        return _list_reader(_reader_of(get_args(hint)[0]))
    if is_dataclass(hint):
        return _object_reader(hint)
    assert hint.__supertype__ is str, f"no reader for {hint}"
    return _read_text


def _list_reader(read_item: _Reader) -> _Reader:
    def read(found: Any, name: str) -> Any:
        if type(found) is not list:
            raise _bad(name, found)
        return tuple([read_item(each, name) for each in found])

    return read


def _object_reader(kind: Any) -> _Reader:
    hints = get_type_hints(kind)
    readers = [(each.name, _reader_of(hints[each.name])) for each in fields(kind)]

    def read(found: Any, name: str) -> Any:
        if type(found) is not dict:
            raise _bad(name, found)
        return kind(**{field: reader(found.get(field), field) for field, reader in readers})

    return read


_PLAIN: Final[dict[Any, _Reader]] = {
    str: _read_text,
    bool: _read_flag,
    Generation: _read_generation,
    Millis: _read_millis,
    tuple[TopicPartition, ...]: _read_partitions,
}
