"""kohort wait: blocks until a consumer group is as expected, for scripts and tests.

Exit codes: 0 if the condition holds, 3 after the timeout, else as for other commands.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, TypedDict

import typer

from kohort.admin.group_monitor.views import ObservedRebalance
from kohort.cli.cluster_options import TIMEOUT_MS, AsJson, Config, connect, usage_error
from kohort.cli.groups.options import Group
from kohort.cli.groups.rebalances import rebalance_json
from kohort.cli.messages import fail
from kohort.cli.tables import print_json
from kohort.conditions.group_snapshot import GroupSnapshot, snapshot_to_json
from kohort.node.control.errors import ControlError
from kohort.settings.readers import INT_MAX, BadValue, read_number
from kohort.settings.times import read_duration
from kohort.testing.group_waits import GroupWaits
from kohort.testing.http_control import HttpControl
from kohort.testing.polled_waits import PolledWaits
from kohort.testing.waits import GroupCommit, Waits, WaitTimeout
from kohort.text.numbers import count, duration
from kohort.text.rebalances import cause, member_name

_TIMED_OUT: Final = 3

_Members = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="The group has exactly N members.")
]
_Stable = Annotated[
    bool,
    typer.Option(
        "--stable", help="All members have their assignment and no rebalance is about to begin."
    ),
]
_State = Annotated[
    str | None, typer.Option(metavar="STATE", help="The group is in this state, e.g. Empty.")
]
_Lag = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="The total lag is at most N records.")
]
_Assigned = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Exactly N partitions are assigned to the members."),
]
_Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", help="Lag is that of this topic. May be repeated."),
]
_Rebalance = Annotated[bool, typer.Option("--rebalance", help="Wait for the end of a rebalance.")]
_After = Annotated[
    int | None,
    typer.Option(
        metavar="GENERATION",
        min=0,
        help="With --rebalance: one to a later generation (default: than the current one).",
    ),
]
_Commit = Annotated[
    str | None,
    typer.Option(
        metavar="TOPIC:PARTITION:OFFSET", help="The committed offset is at least this one."
    ),
]
_WaitTimeout = Annotated[
    str, typer.Option(metavar="TIME", help="How long to wait: 500ms, 10s, 2m.")
]
_Control = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="KOHORT_CONTROL",
        help="Ask the control port of a Kohort node, which answers without delay.",
    ),
]
_OptionalBootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "--bootstrap-server",
        metavar="HOST:PORT",
        envvar="KOHORT_BOOTSTRAP",
        help="Poll this cluster instead: bootstrap servers, comma-separated.",
    ),
]


class _CommitPosition(TypedDict):
    topic: str
    partition: int
    offset: int


def run(
    context: typer.Context,
    group: Group,
    *,
    members: _Members = None,
    stable: _Stable = False,
    state: _State = None,
    lag: _Lag = None,
    assigned: _Assigned = None,
    topic: _Topics = None,
    rebalance: _Rebalance = False,
    after: _After = None,
    commit: _Commit = None,
    timeout: _WaitTimeout = "10s",
    control: _Control = None,
    bootstrap: _OptionalBootstrap = None,
    command_config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Block until a consumer group is as expected; all conditions must hold at the same time.

    The exit code is 0 when they hold, and 3 after the timeout; stderr then says what is missing.
    Without a condition the group must exist.

    \b
      kohort wait billing --members 3 --stable --lag 0
      kohort wait billing --rebalance --timeout 1m
      kohort wait billing --commit orders:0:100
    """
    is_group = any((members is not None, stable, state, lag is not None, assigned is not None))
    _check_exclusive(is_group, rebalance, commit is not None)
    if after is not None and not rebalance:
        usage_error("--after needs --rebalance")
    if topic and lag is None:
        usage_error("--topic needs --lag")
    position = None if commit is None else _read_position(commit)
    timeout_s = _read_timeout(timeout)
    if _is_preferred(context, bootstrap):
        control = None
    with _open(control, bootstrap, command_config) as waits, _report_failures():
        if rebalance:
            ended = waits.wait_for_rebalance(group, after=after, timeout=timeout_s)
            _print_rebalance(ended, group, as_json=as_json)
        elif position is not None:
            committed = waits.wait_for_commit(group, timeout=timeout_s, **position)
            _print_commit(committed, as_json=as_json)
        else:
            found = waits.wait_for(
                group,
                members=members,
                stable=stable,
                state=state,
                lag=lag,
                assigned=assigned,
                topics=topic or None,
                timeout=timeout_s,
            )
            _print_group(found, as_json=as_json)


# Options


def _check_exclusive(*kinds: bool) -> None:
    if sum(kinds) > 1:
        usage_error("--rebalance and --commit exclude each other and all other conditions")


def _is_preferred(context: typer.Context, bootstrap: str | None) -> bool:
    """A cluster on the command line has priority over a control port of the environment."""
    if bootstrap is None or not _is_on_command_line(context, "bootstrap"):
        return False
    if _is_on_command_line(context, "control"):
        usage_error("--control and --bootstrap exclude each other")
    return True


def _is_on_command_line(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _read_position(text: str) -> _CommitPosition:
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    try:
        return _CommitPosition(
            topic=topic,
            partition=read_number(partition, 0, INT_MAX),
            offset=read_number(offset, 0),
        )
    except ValueError:
        usage_error(f"--commit {text!r} is not TOPIC:PARTITION:OFFSET")


def _read_timeout(text: str) -> float:
    try:
        return read_duration(text, "s") / 1000
    except BadValue as error:
        usage_error(f"--timeout: {error}")


@contextmanager
def _open(control: str | None, bootstrap: str | None, config: Path | None) -> Iterator[GroupWaits]:
    if control is not None:
        try:
            channel = HttpControl(control)
        except ValueError as error:
            usage_error(f"--control: {error}")
        yield Waits(channel)
    elif bootstrap is not None:
        with connect(bootstrap, config, TIMEOUT_MS) as cluster:
            yield PolledWaits(cluster)
    else:
        usage_error("name a cluster with --bootstrap, or the control port of a node with --control")


@contextmanager
def _report_failures() -> Iterator[None]:
    try:
        yield
    except WaitTimeout as error:
        fail(error, _TIMED_OUT)
    except BadValue as error:
        fail(error, 2)
    except ControlError as error:
        fail(error)


# Output


def _print_group(group: GroupSnapshot, *, as_json: bool) -> None:
    if as_json:
        print_json(snapshot_to_json(group))
        return
    parts = [group.state]
    if group.generation is not None:
        parts.append(f"generation {group.generation}")
    parts += [count(len(group.members), "member"), f"{count(group.assigned, 'partition')} assigned"]
    if group.lag is not None:
        parts.append(f"lag {group.lag:,}")
    typer.echo(f"{group.group_id}: {', '.join(parts)}")


def _print_rebalance(ended: ObservedRebalance, group: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"group": group, **rebalance_json(ended)})
        return
    parts = [f"generation {ended.generation}"]
    if ended.started_ms is not None and ended.ended_ms is not None:
        parts.append(f"took {duration(ended.ended_ms - ended.started_ms)}")
    if ended.trigger is not None:
        name = None if ended.initiator is None else member_name(ended.initiator)
        parts.append(cause(ended.trigger, name))
    typer.echo(f"{group}: {', '.join(parts)}")


def _print_commit(committed: GroupCommit, *, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "offset": each.offset,
                "metadata": each.metadata,
                "committed_ms": each.committed_ms,
            }
            for each in committed.commits
        ]
        print_json({"group": committed.group_id, "commits": rows})
        return
    for each in committed.commits:
        where = f"{each.partition.topic}:{each.partition.partition}"
        typer.echo(f"{committed.group_id}: {where} committed offset {each.offset:,}")
