"""kohort events: what a Kohort node noticed about its groups, from the topic it writes it to.

A line for each event, for people, or the event itself in JSON. It decides nothing about groups.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kohort.admin.times import write_moment
from kohort.cli.clusters import Bootstrap, Config
from kohort.cli.streaming import (
    Kafka,
    check_reachable,
    hearing_consumers,
    note,
    one_sentence_about,
    read_moment,
    read_options,
    refuse,
    until_told_to_end,
)
from kohort.types import Millis, Offset, Partition, Topic

if TYPE_CHECKING:
    from kohort.client.consumer import Consumer

TOPIC: Final = Topic("__kohort_events")

KINDS: Final = (
    "rebalance-started",
    "rebalance-ended",
    "state-changed",
    "member-id-issued",
    "member-joined",
    "member-gone",
    "instance-replaced",
    "pending-expired",
    "nobody-rejoined",
    "commit-refused",
    "offsets-expired",
    "group-deleted",
    "not-kept",
)

_Group = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Only of this one; may be repeated.")
]
_Kind = Annotated[
    list[str] | None,
    typer.Option(metavar="KIND", help="Only such as rebalance-ended; may be repeated."),
]
_Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Only what is newer: 2026-11-16T09:00, or 90m, 6h, 7d; else all."
    ),
]
_Follow = Annotated[
    bool, typer.Option("--follow/--until-end", help="Until Ctrl-C, or what there is now.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="The events as they are, one on a line.")]

_POLL_MS: Final = 200

_OF_PARTS: Final = ("part", "parts")
"""They say nothing about an event that has been put together."""


def run(
    *,
    bootstrap: Bootstrap,
    group: _Group = None,
    kind: _Kind = None,
    since: _Since = None,
    follow: _Follow = False,
    as_json: _AsJson = False,
    kafka: Kafka = None,
    command_config: Config = None,
) -> None:
    """Show what a Kohort node noticed about its groups: joins, departures, rebalances.

    A stock Apache Kafka writes no such events; then the exit code is 1.

    \b
      kohort events --group billing --since 6h
      kohort events --kind rebalance-ended --follow
      kohort events --json | jq .trigger
    """
    from kohort.client.errors import BadOption, ConsumerError  # noqa: PLC0415  # others need none

    _check_kinds(kind or ())
    start = read_moment(since)
    wanted = _Wanted(groups=frozenset(group or ()), kinds=frozenset(kind or ()), since=start)
    options: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": "kohort-events",
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": False,
        "exclude.internal.topics": False,
        **read_options(kafka, command_config),
    }
    write = _write_json if as_json else show
    check_reachable(bootstrap)
    with (
        one_sentence_about(ConsumerError),
        hearing_consumers(note if follow else None),
        until_told_to_end() as is_told,
    ):
        try:
            opened = _open(options)
        except BadOption as error:
            raise typer.BadParameter(f"{error}.", param_hint="--kafka") from None
        with opened as consumer:
            if not _wait_for_topic(consumer, is_told, is_following=follow):
                return
            for event in _events(consumer, start, is_told, is_following=follow):
                if wanted.has(event):
                    sys.stdout.write(write(event) + "\n")
                    sys.stdout.flush()


def _open(options: dict[str, Any]) -> "Consumer":
    from kohort.client.consumer import Consumer  # noqa: PLC0415  # as above

    return Consumer(options)


def _check_kinds(kinds: Any) -> None:
    for kind in kinds:
        if kind not in KINDS:
            near = get_close_matches(kind, KINDS, n=1)
            hint = f" Did you mean {near[0]}?" if near else f" There are {', '.join(KINDS)}."
            raise typer.BadParameter(f"no event is called {kind!r}.{hint}", param_hint="--kind")


class _Wanted:
    def __init__(
        self, *, groups: frozenset[str], kinds: frozenset[str], since: Millis | None
    ) -> None:
        self._groups, self._kinds, self._since = groups, kinds, since

    def has(self, event: Mapping[str, Any]) -> bool:
        of = {event.get("group_id"), *event.get("group_ids", ())}
        return (
            (not self._groups or not self._groups.isdisjoint(of))
            and (not self._kinds or event.get("event") in self._kinds)
            and (self._since is None or event.get("at", 0) >= self._since)
        )


# From the topic


def _wait_for_topic(
    consumer: "Consumer", is_told: Callable[[], bool], *, is_following: bool
) -> bool:
    """A node makes the topic with its first event; a stock Kafka never has one."""
    has_said = False
    while not consumer.partitions_for(TOPIC):
        if not is_following:
            refuse(
                f"there is no {TOPIC} here: a stock Kafka keeps no such events, and a Kohort node "
                "makes it with the first one"
            )
        if not has_said:
            note(f"there is no {TOPIC} yet; waiting for it")
            has_said = True
        if is_told():
            return False
        time.sleep(_POLL_MS / 1000)
    return True


def _events(
    consumer: "Consumer", since: Millis | None, is_told: Callable[[], bool], *, is_following: bool
) -> Iterator[dict[str, Any]]:
    from kohort.admin.picture.events import (  # noqa: PLC0415  # as above
        BadEvent,
        PartJoiner,
        read_event,
    )
    from kohort.client.topic_partition import TopicPartition  # noqa: PLC0415  # as above

    partition = TopicPartition(TOPIC, Partition(0))
    end = consumer.end_offsets([partition])[partition]
    consumer.assign([partition])
    consumer.seek(partition, _find_start(consumer, partition, since, end))
    joiner = PartJoiner()
    while not is_told() and (is_following or consumer.position(partition) < end):
        for record in consumer.poll(_POLL_MS).get(partition, ()):
            if is_following or record.offset < end:
                try:
                    whole = joiner.take(read_event(record.value))
                except BadEvent as error:
                    note(f"offset {record.offset} is no event: {error}")
                else:
                    if whole is not None:
                        yield {name: whole[name] for name in whole if name not in _OF_PARTS}


def _find_start(consumer: "Consumer", partition: Any, since: Millis | None, end: Offset) -> Offset:
    if since is None:
        return consumer.beginning_offsets([partition])[partition]
    found = consumer.offsets_for_times({partition: since})[partition]
    return end if found is None else found.offset


# For people


def _write_json(event: Mapping[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":"))


def show(event: Mapping[str, Any]) -> str:
    """One line: when, which group, what, and who. Names are shown so that no terminal obeys them.

    An event or a field that is newer than this is shown as it is.
    """
    tell = _TELLERS.get(event.get("event", ""), _tell_anything)
    group = event.get("group_id") or ",".join(event.get("group_ids", ())) or "-"
    said = tell(event)
    line = f"{write_moment(event.get('at', 0))}  {group}  {event.get('event')}  {said}".rstrip()
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def _who(party: Mapping[str, Any] | None) -> str:
    if party is None:
        return "nobody"
    static = f" ({party['instance_id']})" if party.get("instance_id") else ""
    return f"{party['client_id']}{static} at {party['client_host'].lstrip('/')}"


def _because(event: Mapping[str, Any]) -> str:
    reason = event.get("client_reason")
    return f", saying {reason!r}" if reason else ""


def _by(event: Mapping[str, Any]) -> str:
    culprit = event.get("culprit")
    return f" by {_who(culprit)}" if culprit else ""


def _tell_started(event: Mapping[str, Any]) -> str:
    waits = f"; waits for {len(event['waited_for'])}" if event["waited_for"] else ""
    return f"{event['trigger']}{_by(event)}{_because(event)}{waits}"


def _tell_ended(event: Mapping[str, Any]) -> str:
    took = event["at"] - event["started_ms"]
    joins = event["join_ended_ms"]
    phases = "" if joins is None else f" (joins {joins - event['started_ms']} ms)"
    members = len(event["participants"])
    out = f", {len(event['removals'])} out" if event["removals"] else ""
    return (
        f"{event['ending']}: generation {event['generation_before']} -> {event['generation']}, "
        f"{members} {'member' if members == 1 else 'members'}{out}, took {took} ms{phases}, "
        f"{event['trigger']}{_by(event)}{_because(event)}"
    )


def _tell_refused(event: Mapping[str, Any]) -> str:
    who = event["instance_id"] or event["member_id"] or "somebody outside the group"
    return f"{event['error']} to {who} of generation {event['generation']}"


def _tell_replaced(event: Mapping[str, Any]) -> str:
    how = "and the generation goes on" if event["is_quiet"] else "and a rebalance follows"
    return f"{_who(event['party'])} came back, {how}"


def _tell_expired(event: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{topic}-{','.join(map(str, numbers))}" for topic, numbers in event["partitions"].items()
    )


def _tell_anything(event: Mapping[str, Any]) -> str:
    known = ("event", "at", "group_id", "group_ids")
    rest = {name: said for name, said in event.items() if name not in known}
    return _write_json(rest) if rest else ""


_TELLERS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "rebalance-started": _tell_started,
    "rebalance-ended": _tell_ended,
    "state-changed": lambda event: f"{event['before']} -> {event['after']}",
    "member-id-issued": lambda event: _who(event["party"]),
    "member-joined": lambda event: f"{_who(event['party'])}{_because(event)}",
    "member-gone": lambda event: f"{event['departure']}: {_who(event['party'])}{_because(event)}",
    "instance-replaced": _tell_replaced,
    "pending-expired": lambda event: f"nobody came back as {event['member_id']}",
    "commit-refused": _tell_refused,
    "offsets-expired": _tell_expired,
    "group-deleted": lambda event: "by itself" if event["is_expired"] else "as was asked for",
    "not-kept": lambda event: event["error"],
}
