"""kohort migrate: topics and groups from one cluster to another, and proof that they arrived."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.clusters import TIMEOUT_MS, AsJson, Timeout, say_error, talking_to
from kohort.cli.streaming import hearing_consumers, note, taking_a_kill_for_ctrl_c
from kohort.cli.tables import show_json, show_table
from kohort.types import GroupId, Millis, Topic

if TYPE_CHECKING:
    from kohort.admin.migrating.wish import (
        MigrationPlan,
        MigrationSummary,
        MigrationWish,
    )
    from kohort.admin.migrating.wish import Progress as Told

_From = Annotated[
    str, typer.Option("--from", metavar="HOST:PORT", help="A: the cluster to read from.")
]
_To = Annotated[str, typer.Option("--to", metavar="HOST:PORT", help="B: the cluster to write to.")]
_FromConfig = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Options of the connection to A.")
]
_ToConfig = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Options of the connection to B.")
]
_Topic = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only this one; may be repeated.")
]
_Group = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Only this one; may be repeated.")
]
_NoGroups = Annotated[bool, typer.Option("--no-groups", help="Leave groups where they are.")]
_State = Annotated[Path, typer.Option(metavar="FILE", help="Where it is remembered what was done.")]
_Replication = Annotated[
    int | None,
    typer.Option("--replication-factor", metavar="N", min=1, help="Of topics that are made."),
]
_IntoExisting = Annotated[
    bool,
    typer.Option("--into-existing", help="Add to topics that B has already, as they are."),
]
_ReplaceOffsets = Annotated[
    bool, typer.Option("--replace-offsets", help="Also of groups that have committed in B.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
_Patience = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=1, help="How long to wait for a cluster that is away."),
]


def run(
    *,
    source: _From,
    target: _To,
    topic: _Topic = None,
    group: _Group = None,
    no_groups: _NoGroups = False,
    state: _State = Path("kohort-migration.db"),
    replication: _Replication = None,
    into_existing: _IntoExisting = False,
    replace_offsets: _ReplaceOffsets = False,
    dry_run: _DryRun = False,
    patience: _Patience = 60.0,
    from_config: _FromConfig = None,
    to_config: _ToConfig = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Copy topics and groups to another cluster, exactly once, and compare.

    Records arrive as they are, in the same partitions.
    Groups arrive at the record they would read next.

    It may be stopped or killed at any time: the same command goes on.
    Run it while A is in use, and once more when nothing uses A.
    Then start everything on B.

    The exit code is 0 only where all has arrived and was compared.

    \b
      kohort migrate --from node:9092 --to kafka:9092 --dry-run
      kohort migrate --from node:9092 --to kafka:9092 --replication-factor 3
      kohort migrate --from node:9092 --to kafka:9092 --topic orders --no-groups
    """
    if no_groups and group:
        raise typer.BadParameter("it contradicts --group.", param_hint="--no-groups")
    from kohort.admin.migrating.wish import MigrationWish  # noqa: PLC0415  # other verbs need none

    wish = MigrationWish(
        state=state,
        topics=tuple(Topic(each) for each in topic or ()),
        groups=tuple(GroupId(each) for each in group or ()),
        is_without_groups=no_groups,
        replication=replication,
        is_into_existing=into_existing,
        is_replacing_offsets=replace_offsets,
        patience_ms=Millis(int(patience * 1000)),
    )
    with (
        talking_to(source, from_config, timeout) as a,
        talking_to(target, to_config, timeout) as b,
        hearing_consumers(),
    ):
        if dry_run:
            _show_plan(a, b, wish, as_json=as_json)
        else:
            _migrate(a, b, wish, as_json=as_json)


def _show_plan(a: Any, b: Any, wish: "MigrationWish", *, as_json: bool) -> None:
    from kohort.admin.migrating.run import plan_migration  # noqa: PLC0415  # as above

    plan = plan_migration(a, b, wish)
    if as_json:
        show_json(_plan_json(plan))
    else:
        _tell_plan(plan)
    if plan.refusals:
        raise typer.Exit(1)


def _migrate(a: Any, b: Any, wish: "MigrationWish", *, as_json: bool) -> None:
    from kohort.admin.migrating.run import migrate  # noqa: PLC0415  # as above
    from kohort.admin.migrating.wish import MigrationRefused  # noqa: PLC0415

    try:
        with taking_a_kill_for_ctrl_c(), _watching() as watch:
            summary = migrate(a, b, wish, watch)
    except MigrationRefused as refused:
        for reason in refused.reasons:
            say_error(reason)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        note(f"stopped; the same command goes on from {wish.state}")
        raise typer.Exit(130) from None
    if as_json:
        show_json(_summary_json(summary))
    else:
        _tell_summary(summary)
    for warning in summary.warnings:
        say_error(f"warning: {warning}")
    for failure in summary.failures:
        say_error(failure)
    if summary.failures:
        raise typer.Exit(1)


@contextmanager
def _watching() -> "Iterator[Callable[[Told], None]]":
    """A bar where somebody watches; else a line when something else begins."""
    if not sys.stderr.isatty():
        yield _Lines().tell
        return
    from rich.console import Console  # noqa: PLC0415  # as above
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description:14}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[records]:,} records, {task.fields[megabytes]:.1f} MB"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def tell(progress: "Told") -> None:
            if progress.phase not in tasks:
                tasks[progress.phase] = bars.add_task(progress.phase, records=0, megabytes=0.0)
            # Where there is nothing to do it is done.
            is_done = progress.done == progress.total
            bars.update(
                tasks[progress.phase],
                completed=1 if is_done else progress.done,
                total=1 if is_done else progress.total,
                records=progress.records,
                megabytes=progress.data_bytes / 1e6,
            )

        yield tell


class _Lines:
    def __init__(self) -> None:
        self._phase = ""

    def tell(self, progress: "Told") -> None:
        if progress.phase != self._phase:
            self._phase = progress.phase
            note(f"{progress.phase}")


# For people


def _tell_plan(plan: "MigrationPlan") -> None:
    typer.echo(f"from {plan.source} to {plan.target}")
    show_table(
        ("TOPIC", "STEP", "#PARTITIONS", "OFFSETS LEFT", "SETTINGS"),
        [
            (
                each.topic,
                each.step.value,
                each.partitions,
                each.offsets,
                ", ".join(f"{name}={content}" for name, content in each.settings) or "-",
            )
            for each in plan.topics
        ],
    )
    if plan.groups:
        typer.echo()
        show_table(
            ("GROUP", "#OFFSETS", "HAS MEMBERS"),
            [
                (each.group_id, each.partitions, "yes" if each.has_members else "no")
                for each in plan.groups
            ],
        )
    if plan.internal:
        typer.echo(f"\nnot copied, for they are internal: {', '.join(plan.internal)}")
    for warning in plan.warnings:
        say_error(f"warning: {warning}")
    for refusal in plan.refusals:
        say_error(refusal)
    if not plan.refusals:
        typer.echo("\nnothing was changed; without --dry-run this is done")


def _tell_summary(summary: "MigrationSummary") -> None:
    show_table(
        ("TOPIC", "PARTITION", "COPIED NOW", "COPIED", "CHECKSUM", "END IN A", "END IN B"),
        [
            (
                each.partition.topic,
                each.partition.partition,
                each.copied_now,
                each.copied,
                f"{each.checksum:08x}",
                each.source_next,
                each.target_next,
            )
            for each in summary.partitions
        ],
    )
    offsets = [
        (group.group_id, each.partition.topic, each.partition.partition, each.source, each.target)
        for group in summary.groups
        for each in group.offsets
    ]
    if offsets:
        typer.echo()
        show_table(("GROUP", "TOPIC", "PARTITION", "OFFSET IN A", "OFFSET IN B"), offsets)
    typer.echo(
        f"\n{summary.copied_now} records copied now, all are in B as they were in A; "
        f"{len(summary.groups)} groups moved; {summary.seconds:.1f} s"
    )


# For machines


def _plan_json(plan: "MigrationPlan") -> Any:
    return {
        "from": plan.source,
        "to": plan.target,
        "topics": [
            {
                "topic": each.topic,
                "step": each.step.value,
                "partitions": each.partitions,
                "offsets_left": each.offsets,
                "settings": dict(each.settings),
            }
            for each in plan.topics
        ],
        "groups": [
            {
                "group": each.group_id,
                "offsets": each.partitions,
                "has_members": each.has_members,
            }
            for each in plan.groups
        ],
        "internal": list(plan.internal),
        "refusals": list(plan.refusals),
        "warnings": list(plan.warnings),
    }


def _summary_json(summary: "MigrationSummary") -> Any:
    return {
        "from": summary.plan.source,
        "to": summary.plan.target,
        "partitions": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "copied_now": each.copied_now,
                "copied": each.copied,
                "checksum": f"{each.checksum:08x}",
                "end_in_a": each.source_next,
                "end_in_b": each.target_next,
            }
            for each in summary.partitions
        ],
        "groups": [
            {
                "group": group.group_id,
                "compared": group.compared,
                "offsets": [
                    {
                        "topic": each.partition.topic,
                        "partition": each.partition.partition,
                        "offset_in_a": each.source,
                        "offset_in_b": each.target,
                    }
                    for each in group.offsets
                ],
            }
            for group in summary.groups
        ],
        "warnings": list(summary.warnings),
        "failures": list(summary.failures),
        "seconds": round(summary.seconds, 3),
    }
