"""kohort migrate: copies topics and groups to another cluster and verifies the copy."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from kohort.admin.migration.migration_types import (
    MigrationOptions,
    MigrationPlan,
    MigrationProgress,
    MigrationRefused,
    MigrationSummary,
)
from kohort.admin.migration.run import migrate, plan_migration
from kohort.cli.cluster_options import TIMEOUT_MS, AsJson, Timeout, connect
from kohort.cli.messages import print_stderr
from kohort.cli.record_options import forward_consumer_warnings, sigterm_as_ctrl_c
from kohort.cli.tables import print_json, print_table
from kohort.types import GroupId, Millis, Topic

_From = Annotated[str, typer.Option("--from", metavar="HOST:PORT", help="Source cluster.")]
_To = Annotated[str, typer.Option("--to", metavar="HOST:PORT", help="Target cluster.")]
_FromConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Properties file with connection options of the source."),
]
_ToConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Properties file with connection options of the target."),
]
_Topic = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Copy only this topic. May be repeated.")
]
_Group = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Copy only this group. May be repeated.")
]
_NoGroups = Annotated[bool, typer.Option("--no-groups", help="Do not copy groups.")]
_State = Annotated[
    Path,
    typer.Option(
        metavar="FILE", help="File that records the progress; a later run continues from it."
    ),
]
_Replication = Annotated[
    int | None,
    typer.Option(
        "--replication-factor", metavar="N", min=1, help="Replication factor of created topics."
    ),
]
_IntoExisting = Annotated[
    bool,
    typer.Option("--into-existing", help="Append to topics that already exist in the target."),
]
_ReplaceOffsets = Annotated[
    bool,
    typer.Option(
        "--replace-offsets", help="Replace the offsets of groups that have committed in the target."
    ),
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")]
_Patience = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", min=1, help="Give up if a cluster does not answer for this long."
    ),
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
    """Copy topics and groups to another cluster exactly once, and verify the copy.

    Records keep their content, partition and order. Offsets of groups are translated to the same
    record.

    You can stop or kill it at any time; the same command continues.
    Run it while clients use the source. Then stop them, run it again, and start them on the target.

    The exit code is 0 only if everything was copied and verified.

    \b
      kohort migrate --from node:9092 --to kafka:9092 --dry-run
      kohort migrate --from node:9092 --to kafka:9092 --replication-factor 3
      kohort migrate --from node:9092 --to kafka:9092 --topic orders --no-groups
    """
    if no_groups and group:
        raise typer.BadParameter("cannot be combined with --group.", param_hint="--no-groups")

    options = MigrationOptions(
        state=state,
        topics=tuple(Topic(each) for each in topic or ()),
        groups=tuple(GroupId(each) for each in group or ()),
        is_without_groups=no_groups,
        replication=replication,
        is_into_existing=into_existing,
        is_replacing_offsets=replace_offsets,
        stall_timeout_ms=Millis(int(patience * 1000)),
    )
    with (
        connect(source, from_config, timeout) as source_cluster,
        connect(target, to_config, timeout) as target_cluster,
        forward_consumer_warnings(),
    ):
        if dry_run:
            _plan(source_cluster, target_cluster, options, as_json=as_json)
        else:
            _migrate(source_cluster, target_cluster, options, as_json=as_json)


def _plan(source: Any, target: Any, options: MigrationOptions, *, as_json: bool) -> None:
    plan = plan_migration(source, target, options)
    if as_json:
        print_json(_plan_json(plan))
    else:
        _print_plan(plan)
    if plan.refusals:
        raise typer.Exit(1)


def _migrate(source: Any, target: Any, options: MigrationOptions, *, as_json: bool) -> None:
    try:
        with sigterm_as_ctrl_c(), _progress_display() as on_progress:
            summary = migrate(source, target, options, on_progress)
    except MigrationRefused as refused:
        for reason in refused.reasons:
            print_stderr(reason)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print_stderr(f"stopped; run the same command to continue from {options.state}")
        raise typer.Exit(130) from None
    if as_json:
        print_json(_summary_json(summary))
    else:
        _print_summary(summary)
    for warning in summary.warnings:
        print_stderr(f"warning: {warning}")
    for failure in summary.failures:
        print_stderr(failure)
    if summary.failures:
        raise typer.Exit(1)


@contextmanager
def _progress_display() -> Iterator[Callable[[MigrationProgress], None]]:
    """Show a progress bar on a terminal; else print a line for each phase."""
    if not sys.stderr.isatty():
        yield _PhasePrinter().update
        return

    columns = (
        TextColumn("{task.description:14}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[records]:,} records, {task.fields[megabytes]:.1f} MB"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def update(progress: MigrationProgress) -> None:
            if progress.phase not in tasks:
                tasks[progress.phase] = bars.add_task(progress.phase, records=0, megabytes=0.0)
            # A phase with nothing to do has a total of 0, which a bar cannot show.
            is_done = progress.done == progress.total
            bars.update(
                tasks[progress.phase],
                completed=1 if is_done else progress.done,
                total=1 if is_done else progress.total,
                records=progress.records,
                megabytes=progress.data_bytes / 1e6,
            )

        yield update


class _PhasePrinter:
    def __init__(self) -> None:
        self._phase = ""

    def update(self, progress: MigrationProgress) -> None:
        if progress.phase != self._phase:
            self._phase = progress.phase
            print_stderr(f"{progress.phase}")


# Text


def _print_plan(plan: MigrationPlan) -> None:
    typer.echo(f"from {plan.source} to {plan.target}")
    print_table(
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
        print_table(
            ("GROUP", "#OFFSETS", "HAS MEMBERS"),
            [
                (each.group_id, each.partitions, "yes" if each.has_members else "no")
                for each in plan.groups
            ],
        )
    if plan.internal:
        typer.echo(f"\ninternal topics, not copied: {', '.join(plan.internal)}")
    for warning in plan.warnings:
        print_stderr(f"warning: {warning}")
    for refusal in plan.refusals:
        print_stderr(refusal)
    if not plan.refusals:
        typer.echo("\nnothing was changed; run without --dry-run to do this")


def _print_summary(summary: MigrationSummary) -> None:
    print_table(
        ("TOPIC", "PARTITION", "COPIED NOW", "COPIED", "CHECKSUM", "SOURCE END", "TARGET END"),
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
        print_table(("GROUP", "TOPIC", "PARTITION", "SOURCE OFFSET", "TARGET OFFSET"), offsets)
    typer.echo(
        f"\n{summary.copied_now} records copied, all source records verified in the target, "
        f"{len(summary.groups)} groups moved, {summary.seconds:.1f} s"
    )


# JSON


def _plan_json(plan: MigrationPlan) -> Any:
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


def _summary_json(summary: MigrationSummary) -> Any:
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
