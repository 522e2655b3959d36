"""kohort events: prints the events of a Kohort node's `__kohort_events` topic.

Each event is one line of text, or the event itself as JSON.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final

import typer

from kohort.cli.cluster_options import Bootstrap, Config
from kohort.cli.messages import fail, print_stderr
from kohort.cli.record_options import (
    Kafka,
    check_reachable,
    forward_consumer_warnings,
    read_options,
    read_start_time,
    report_errors,
    stop_on_signal,
)
from kohort.client.consumer import Consumer
from kohort.client.errors import ConfigurationError, ConsumerError
from kohort.events.internal_topics import EVENTS_PARTITION, KOHORT_EVENTS
from kohort.events.parser import BadEvent, EventReader
from kohort.events.schema import EVENTS, Event
from kohort.settings.readers import did_you_mean
from kohort.text.event_lines import event_line
from kohort.types import Millis, Offset

_Group = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="Print only events of this group. May be repeated."),
]
_Kind = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND", help="Print only this event, e.g. rebalance-ended. May be repeated."
    ),
]
_Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Start time: 2026-11-16T09:00, or 90m, 6h, 7d ago (default: all events).",
    ),
]
_Follow = Annotated[
    bool,
    typer.Option(
        "--follow/--until-end", help="Wait for new events until Ctrl-C, or stop at the current end."
    ),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print each event as one line of JSON.")]

_POLL_MS: Final = 200


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
    """Print the group events of a Kohort node: joins, departures, rebalances.

    Apache Kafka writes no such events; the exit code is then 1.

    \b
      kohort events --group billing --since 6h
      kohort events --kind rebalance-ended --follow
      kohort events --json | jq .trigger
    """
    _check_kinds(kind or ())
    start = read_start_time(since)
    event_filter = _EventFilter(
        groups=frozenset(group or ()), kinds=frozenset(kind or ()), since=start
    )
    options: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": "kohort-events",
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": False,
        "exclude.internal.topics": False,
        **read_options(kafka, command_config),
    }
    format_event = _format_json if as_json else event_line
    check_reachable(bootstrap)
    with (
        report_errors(ConsumerError),
        forward_consumer_warnings(print_stderr if follow else None),
        stop_on_signal() as is_stopping,
        _open(options) as consumer,
    ):
        if not _wait_for_topic(consumer, is_stopping, is_following=follow):
            return
        for event in _read_events(consumer, start, is_stopping, is_following=follow):
            if event_filter.matches(event):
                sys.stdout.write(format_event(event) + "\n")
                sys.stdout.flush()


def _open(options: dict[str, Any]) -> Consumer:
    try:
        return Consumer(options)
    except ConfigurationError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--kafka") from None


def _check_kinds(kinds: Any) -> None:
    for kind in kinds:
        if kind not in EVENTS:
            hint = did_you_mean(kind, EVENTS) or f"; the events are {', '.join(EVENTS)}."
            raise typer.BadParameter(f"unknown event {kind!r}{hint}", param_hint="--kind")


class _EventFilter:
    def __init__(
        self, *, groups: frozenset[str], kinds: frozenset[str], since: Millis | None
    ) -> None:
        self._groups, self._kinds, self._since = groups, kinds, since

    def matches(self, event: Event) -> bool:
        return (
            (not self._groups or not self._groups.isdisjoint(event.group_ids))
            and (not self._kinds or event.name in self._kinds)
            and (self._since is None or event.at >= self._since)
        )


# The topic


def _wait_for_topic(
    consumer: Consumer, is_stopping: Callable[[], bool], *, is_following: bool
) -> bool:
    """Return False if stopped meanwhile. A Kohort node creates the topic with its first event."""
    is_announced = False
    while not consumer.partitions_for_topic(KOHORT_EVENTS):
        if not is_following:
            fail(
                f"topic {KOHORT_EVENTS} does not exist: Apache Kafka writes no group events, and a "
                "Kohort node creates the topic with its first one"
            )
        if not is_announced:
            print_stderr(f"topic {KOHORT_EVENTS} does not exist yet; waiting for it")
            is_announced = True
        if is_stopping():
            return False
        time.sleep(_POLL_MS / 1000)
    return True


def _read_events(
    consumer: Consumer, since: Millis | None, is_stopping: Callable[[], bool], *, is_following: bool
) -> Iterator[Event]:
    partition = EVENTS_PARTITION
    end = consumer.end_offsets([partition])[partition]
    consumer.assign([partition])
    consumer.seek(partition, _find_start(consumer, partition, since, end))
    reader = EventReader()
    while not is_stopping() and (is_following or consumer.position(partition) < end):
        for record in consumer.poll(_POLL_MS).get(partition, ()):
            if is_following or record.offset < end:
                try:
                    event = reader.read(record.value)
                except BadEvent as error:
                    print_stderr(f"skipped offset {record.offset}, not a valid event: {error}")
                else:
                    if event is not None:
                        yield event


def _find_start(consumer: Consumer, partition: Any, since: Millis | None, end: Offset) -> Offset:
    if since is None:
        return consumer.beginning_offsets([partition])[partition]
    found = consumer.offsets_for_times({partition: since})[partition]
    return end if found is None else found.offset


def _format_json(event: Event) -> str:
    return json.dumps(event.body, separators=(",", ":"))
