"""The events of `__kohort_events` as values: what one JSON object tells of a rebalance. Pure.

Kohort's node writes them, but anybody may have a topic of that name: what makes no sense is refused
with `BadEvent`, and the picture goes on without it.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from kohort.admin.picture.values import Participant, Party, Rebalance, Removal
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, GroupId, InstanceId, MemberId, Millis, Partition, Topic

PARTS_MAX: Final = 1_000
"""Of one event: a gigabyte of it. Nobody makes us wait for more."""


class BadEvent(Exception):
    """This is no event of a Kohort node."""


def read_event(value: bytes | None) -> dict[str, Any]:
    try:
        event = json.loads(value or b"")
    except (ValueError, RecursionError) as error:
        raise BadEvent(f"no JSON: {error}") from None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise BadEvent("an event says which one it is")
    if not isinstance(event.get("at"), int):
        raise BadEvent("an event says when it was")
    return event


class PartJoiner:
    """Puts together the events that were too large for one record."""

    def __init__(self) -> None:
        self._begun: dict[GroupId, list[dict[str, Any]]] = {}

    def take(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """The event, once it is whole. Its parts follow one another; a stray one is dropped."""
        group = event.get("group_id", "")
        part, parts = event.get("part"), event.get("parts")
        if part is None:
            return event
        if not isinstance(part, int) or not isinstance(parts, int) or not 0 < part <= parts:
            raise BadEvent("a part has its number")
        begun = self._begun.pop(group, [])
        if len(begun) != part - 1 or parts > PARTS_MAX:
            return None
        begun.append(event)
        if part < parts:
            self._begun[group] = begun
            return None
        whole = dict(begun[0])
        for name, first in begun[0].items():
            if isinstance(first, list):
                whole[name] = [each for some in begun for each in some.get(name, ())]
        return whole


def read_started(event: Mapping[str, Any]) -> Rebalance:
    try:
        at = Millis(int(event["at"]))
        return Rebalance(
            key=str(at),
            is_exact=True,
            generation_before=Generation(int(event["generation"])),
            generation=Generation(int(event["generation"])),
            started_ms=at,
            joined_ms=None,
            ended_ms=None,
            trigger=_text(event["trigger"]),
            culprit=_find_party(event["culprit"]),
            client_reason=_text(event["client_reason"]),
            state_before=_text(event["state_before"]),
            join_ended_by=None,
            ending=None,
            protocol=None,
            leader=None,
            waited_for=tuple(MemberId(str(each)) for each in event["waited_for"]),
            participants=(),
            removals=(),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadEvent(f"rebalance-started: {error!r}") from None


def read_ended(event: Mapping[str, Any]) -> Rebalance:
    try:
        leader, joined = _text(event["leader"]), event["join_ended_ms"]
        return Rebalance(
            key=str(int(event["started_ms"])),
            is_exact=True,
            generation_before=Generation(int(event["generation_before"])),
            generation=Generation(int(event["generation"])),
            started_ms=Millis(int(event["started_ms"])),
            joined_ms=None if joined is None else Millis(int(joined)),
            ended_ms=Millis(int(event["at"])),
            trigger=_text(event["trigger"]),
            culprit=_find_party(event["culprit"]),
            client_reason=_text(event["client_reason"]),
            state_before=_text(event["state_before"]),
            join_ended_by=_text(event["join_ended_by"]),
            ending=_text(event["ending"]),
            protocol=_text(event["protocol"]),
            leader=None if leader is None else MemberId(leader),
            waited_for=(),
            participants=tuple(_participant(each) for each in event["participants"]),
            removals=tuple(
                Removal(party=read_party(each["party"]), departure=_text(each["departure"]))
                for each in event["removals"]
            ),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadEvent(f"rebalance-ended: {error!r}") from None


def read_party(told: Mapping[str, Any]) -> Party:
    instance = _text(told["instance_id"])
    return Party(
        member_id=MemberId(str(told["member_id"])),
        instance_id=None if instance is None else InstanceId(instance),
        client_id=str(told["client_id"]),
        client_host=str(told["client_host"]),
    )


def _find_party(told: Mapping[str, Any] | None) -> Party | None:
    return None if told is None else read_party(told)


def _participant(told: Mapping[str, Any]) -> Participant:
    return Participant(
        party=read_party(told["party"]),
        join_took_ms=_millis(told["join_took_ms"]),
        sync_took_ms=_millis(told["sync_took_ms"]),
        had=_partitions(told["had"]),
        got=_partitions(told["got"]),
    )


def _partitions(told: Mapping[str, Any] | None) -> tuple[TopicPartition, ...] | None:
    if told is None:
        return None
    return tuple(
        sorted(
            TopicPartition(Topic(str(topic)), Partition(int(number)))
            for topic, numbers in told.items()
            for number in numbers
        )
    )


def _millis(told: Any) -> Millis | None:
    return None if told is None else Millis(int(told))


def _text(told: Any) -> str | None:
    return None if told is None else str(told)
