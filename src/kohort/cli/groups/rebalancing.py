"""kohort groups rebalances: what made a group rebalance lately, who did, and how long it took."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.clusters import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    now_ms,
    say_error,
    talking_to,
)
from kohort.cli.groups.options import Group
from kohort.cli.tables import show_json, show_table
from kohort.types import GroupId, Millis

if TYPE_CHECKING:
    from kohort.admin.cluster import Cluster
    from kohort.admin.history import History, PresentGeneration
    from kohort.admin.picture.values import Party, Rebalance

_Since = Annotated[
    str, typer.Option(metavar="TIME", help="How far back: 90m, 6h, 7d, or 2026-11-16T09:00.")
]
_Last = Annotated[int, typer.Option(metavar="N", min=1, help="At most so many, the newest.")]

_UNKNOWN = (
    "this cluster has no events of its groups: it is not Kohort, or nothing has happened yet; so "
    "nobody can tell what made them rebalance, who did, or how long it took, and its own records "
    "tell only the present generation. `kohort pipeline forensics` infers more from their history"
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
    """Show a group's last rebalances: when, why, by whom, and how long each phase took.

    A Kohort node keeps them as events. Any other Kafka does not: there, the present generation is
    all that is known.

    \b
      kohort groups rebalances billing
      kohort groups rebalances billing --since 7d --last 50 --json
    """
    from kohort.admin.errors import NoHistory  # noqa: PLC0415  # other verbs need none of it
    from kohort.admin.history import read_history  # noqa: PLC0415
    from kohort.admin.times import read_since  # noqa: PLC0415

    with talking_to(bootstrap, command_config, timeout) as cluster:
        since_ms = read_since(since, now_ms())
        try:
            history = read_history(cluster, GroupId(group), since_ms, count=last)
        except NoHistory:
            _tell_present(cluster, GroupId(group), as_json=as_json)
            return
        if not history.rebalances:
            _get(cluster, GroupId(group))
    if as_json:
        told = [_rebalance_json(each) for each in history.rebalances]
        show_json({"group": group, "source": "events", "rebalances": told})
    else:
        _show(history)
    if history.unreadable:
        say_error(f"{history.unreadable} events make no sense, and are left out")


def _get(cluster: "Cluster", group_id: GroupId) -> None:
    """A group without rebalances may be one that is not there at all."""
    from kohort.admin.groups import get_groups  # noqa: PLC0415  # as above

    get_groups(cluster, [group_id])


def _show(history: "History") -> None:
    show_table(
        (
            "STARTED",
            "GENERATION",
            "TRIGGER",
            "CULPRIT",
            "HOST",
            "INSTANCE",
            "CLIENT-REASON",
            "TOOK",
            "JOIN",
            "SYNC",
            "#MEMBERS",
            "ENDING",
        ),
        [_row(each) for each in history.rebalances],
    )
    if not history.rebalances:
        typer.echo("there was no rebalance in this time", err=True)


def _row(each: "Rebalance") -> tuple[object, ...]:
    who: Party | None = each.culprit
    took, join, sync = _phases(each)
    return (
        _moment(each.started_ms),
        f"{each.generation_before}->{each.generation}",
        each.trigger,
        None if who is None else who.client_id,
        None if who is None else who.client_host,
        None if who is None else who.instance_id,
        each.client_reason,
        _long(took),
        _long(join),
        _long(sync),
        len(each.participants) if each.ended_ms is not None else None,
        each.ending or "under way",
    )


def _phases(each: "Rebalance") -> tuple[Millis | None, Millis | None, Millis | None]:
    """All of it, until the joins were over, and from then on."""
    return (
        _between(each.started_ms, each.ended_ms),
        _between(each.started_ms, each.joined_ms),
        _between(each.joined_ms, each.ended_ms),
    )


def _between(begin: Millis | None, end: Millis | None) -> Millis | None:
    return None if begin is None or end is None else Millis(end - begin)


def _long(millis: Millis | None) -> str | None:
    if millis is None:
        return None
    return f"{millis} ms" if millis < 10_000 else f"{millis / 1000:.1f} s"


def _moment(moment_ms: Millis | None) -> str | None:
    from kohort.admin.times import write_moment  # noqa: PLC0415  # as above

    return None if moment_ms is None else write_moment(moment_ms)


def _rebalance_json(each: "Rebalance") -> dict[str, Any]:
    who = each.culprit
    took, join, sync = _phases(each)
    return {
        "started": _moment(each.started_ms),
        "ended": _moment(each.ended_ms),
        "generation_before": each.generation_before,
        "generation": each.generation,
        "trigger": each.trigger,
        "culprit": None if who is None else _party_json(who),
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


def _party_json(who: "Party") -> dict[str, Any]:
    return {
        "member_id": who.member_id,
        "instance_id": who.instance_id,
        "client_id": who.client_id,
        "host": who.client_host,
    }


# Where nobody kept events


def _tell_present(cluster: "Cluster", group_id: GroupId, *, as_json: bool) -> None:
    from kohort.admin.groups import get_groups  # noqa: PLC0415  # as above
    from kohort.admin.history import present_generation  # noqa: PLC0415

    state = get_groups(cluster, [group_id])[group_id].state
    present = present_generation(cluster, group_id)
    if as_json:
        show_json(
            {
                "group": group_id,
                "source": "__consumer_offsets",
                "rebalances": None,
                "state": state,
                "present": None if present is None else _present_json(present),
            }
        )
    else:
        show_table(
            ("GROUP", "STATE", "GENERATION", "FORMED", "PROTOCOL", "#MEMBERS"),
            [(group_id, state, *_present_row(present))],
        )
    say_error(_UNKNOWN)


def _present_row(present: "PresentGeneration | None") -> tuple[object, ...]:
    if present is None:
        return (None, None, None, None)
    return (present.generation, _moment(present.formed_ms), present.protocol, present.members)


def _present_json(present: "PresentGeneration") -> dict[str, Any]:
    return {
        "generation": present.generation,
        "formed": _moment(present.formed_ms),
        "protocol": present.protocol,
        "leader": present.leader,
        "members": present.members,
    }
