"""kohort groups rebalances: cause, initiator and duration of a group's last rebalances."""

from typing import Annotated, Any

import typer

from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import NoHistory
from kohort.admin.group_monitor.views import ObservedRebalance
from kohort.admin.groups import get_groups
from kohort.admin.rebalance_history import (
    CurrentGeneration,
    RebalanceHistory,
    find_current_generation,
    read_history,
)
from kohort.cli.cluster_options import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    connect,
    now_ms,
)
from kohort.cli.groups.options import Group
from kohort.cli.messages import print_stderr
from kohort.cli.tables import print_json, print_table
from kohort.events.internal_topics import CONSUMER_OFFSETS
from kohort.events.schema import EventMember
from kohort.settings.times import read_since
from kohort.text.numbers import duration
from kohort.text.times import timestamp
from kohort.types import GroupId, Millis

_Since = Annotated[
    str, typer.Option(metavar="TIME", help="Start time: 90m, 6h, 7d ago, or 2026-11-16T09:00.")
]
_Last = Annotated[int, typer.Option(metavar="N", min=1, help="Show at most the last N rebalances.")]

_NO_EVENTS = (
    "this cluster has no group events: it is not a Kohort node, or nothing has happened yet. Only "
    "the current generation is known, not the cause and duration of rebalances. "
    "`kohort pipeline forensics` infers more from __consumer_offsets"
)


def run(
    group: Group,
    *,
    bootstrap: Bootstrap,
    since: _Since = "24h",
    last: _Last = 10,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Show the last rebalances: when, why, started by whom, and the duration of each phase.

    A Kohort node records rebalances as events. Apache Kafka does not, so there only the current
    generation is known.

    \b
      kohort groups rebalances billing
      kohort groups rebalances billing --since 7d --last 50 --json
    """
    with connect(bootstrap, command_config, timeout) as cluster:
        since_ms = read_since(since, now_ms())
        try:
            history = read_history(cluster, GroupId(group), since_ms, count=last)
        except NoHistory:
            _print_current(cluster, GroupId(group), as_json=as_json)
            return
        if not history.rebalances:
            # Fails if the group does not exist.
            get_groups(cluster, [GroupId(group)])
    if as_json:
        rebalances = [rebalance_json(each) for each in history.rebalances]
        print_json({"group": group, "source": "events", "rebalances": rebalances})
    else:
        _print_history(history)
    if history.unreadable:
        print_stderr(f"skipped {history.unreadable} invalid events")


def _print_history(history: RebalanceHistory) -> None:
    print_table(
        (
            "STARTED",
            "GENERATION",
            "TRIGGER",
            "STARTED-BY",
            "HOST",
            "INSTANCE",
            "CLIENT-REASON",
            "TOOK",
            "JOIN",
            "SYNC",
            "#MEMBERS",
            "RESULT",
        ),
        [_row(each) for each in history.rebalances],
    )
    if not history.rebalances:
        typer.echo("no rebalance in this time", err=True)


def _row(each: ObservedRebalance) -> tuple[object, ...]:
    initiator: EventMember | None = each.initiator
    took, join, sync = _phases(each)
    return (
        _format_time(each.started_ms),
        f"{each.generation_before}->{each.generation}",
        each.trigger,
        None if initiator is None else initiator.client_id,
        None if initiator is None else initiator.client_host,
        None if initiator is None else initiator.instance_id,
        each.client_reason,
        _format_duration(took),
        _format_duration(join),
        _format_duration(sync),
        len(each.participants) if each.ended_ms is not None else None,
        each.ending or "in progress",
    )


def _phases(each: ObservedRebalance) -> tuple[Millis | None, Millis | None, Millis | None]:
    """Return the duration of the rebalance, of its join phase and of its sync phase."""
    return (
        _between(each.started_ms, each.ended_ms),
        _between(each.started_ms, each.joined_ms),
        _between(each.joined_ms, each.ended_ms),
    )


def _between(start: Millis | None, end: Millis | None) -> Millis | None:
    return None if start is None or end is None else Millis(end - start)


def _format_duration(millis: Millis | None) -> str | None:
    return None if millis is None else duration(millis)


def _format_time(timestamp_ms: Millis | None) -> str | None:
    return None if timestamp_ms is None else timestamp(timestamp_ms)


def rebalance_json(each: ObservedRebalance) -> dict[str, Any]:
    initiator = each.initiator
    took, join, sync = _phases(each)
    return {
        "started": _format_time(each.started_ms),
        "ended": _format_time(each.ended_ms),
        "generation_before": each.generation_before,
        "generation": each.generation,
        "trigger": each.trigger,
        "initiator": None if initiator is None else _party_json(initiator),
        "client_reason": each.client_reason,
        "state_before": each.state_before,
        "took_ms": took,
        "join_ms": join,
        "join_ended_by": each.join_ended_by,
        "sync_ms": sync,
        "ending": each.ending,
        "protocol": each.protocol,
        "leader": each.leader,
        "participants": [
            {
                **_party_json(one.party),
                "join_took_ms": one.join_took_ms,
                "sync_took_ms": one.sync_took_ms,
            }
            for one in each.participants
        ],
        "removals": [
            {**_party_json(one.party), "departure": one.departure} for one in each.removals
        ],
    }


def _party_json(who: EventMember) -> dict[str, Any]:
    return {
        "member_id": who.member_id,
        "instance_id": who.instance_id,
        "client_id": who.client_id,
        "host": who.client_host,
    }


# Clusters without events


def _print_current(cluster: Cluster, group_id: GroupId, *, as_json: bool) -> None:
    state = get_groups(cluster, [group_id])[group_id].state
    current = find_current_generation(cluster, group_id)
    if as_json:
        print_json(
            {
                "group": group_id,
                "source": CONSUMER_OFFSETS,
                "rebalances": None,
                "state": state,
                "present": None if current is None else _current_json(current),
            }
        )
    else:
        print_table(
            ("GROUP", "STATE", "GENERATION", "FORMED", "PROTOCOL", "#MEMBERS"),
            [(group_id, state, *_current_cells(current))],
        )
    print_stderr(_NO_EVENTS)


def _current_cells(current: CurrentGeneration | None) -> tuple[object, ...]:
    if current is None:
        return (None, None, None, None)
    return (current.generation, _format_time(current.formed_ms), current.protocol, current.members)


def _current_json(current: CurrentGeneration) -> dict[str, Any]:
    return {
        "generation": current.generation,
        "formed": _format_time(current.formed_ms),
        "protocol": current.protocol,
        "leader": current.leader,
        "members": current.members,
    }
