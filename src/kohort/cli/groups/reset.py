"""kohort groups reset: moves committed offsets. Without --execute it only prints the plan."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kohort.admin import offset_reset
from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import AdminError, InvalidRequest
from kohort.admin.offset_reset import (
    FromFile,
    ResetPlan,
    ResetRow,
    ResetTarget,
    apply_reset,
    plan_resets,
    read_plan_file,
    write_plan_file,
)
from kohort.cli.cluster_options import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    connect,
    now_ms,
    report_admin_errors,
    require_groups,
    select_groups,
    usage_error,
)
from kohort.cli.groups.options import AllGroups, Groups, Scope
from kohort.cli.messages import print_stderr
from kohort.cli.tables import print_json, print_table
from kohort.settings.times import read_duration, read_time
from kohort.types import GroupId, Millis, Offset

_AllTopics = Annotated[
    bool,
    typer.Option("--all-topics", help="Select all topics the group has committed offsets for."),
]
_ToEarliest = Annotated[bool, typer.Option("--to-earliest", help="To the log start.")]
_ToLatest = Annotated[
    bool, typer.Option("--to-latest", help="To the log end: read only new records.")
]
_ToCurrent = Annotated[
    bool,
    typer.Option(
        "--to-current",
        help="Keep the committed offset; use the log end if none is committed.",
    ),
]
_ToOffset = Annotated[
    int | None, typer.Option("--to-offset", metavar="N", min=0, help="To this offset.")
]
_ShiftBy = Annotated[
    int | None,
    typer.Option("--shift-by", metavar="N", help="By N records; -N reads N records again."),
]
_ToDatetime = Annotated[
    str | None,
    typer.Option(
        "--to-datetime",
        metavar="TIME",
        help="To the first record at or after this time: 2026-11-16T09:00, UTC by default.",
    ),
]
_ByDuration = Annotated[
    str | None,
    typer.Option(
        "--by-duration", metavar="DURATION", help="To the time this long ago: P1DT2H or 26h."
    ),
]
_FromFile = Annotated[
    Path | None,
    typer.Option(
        "--from-file",
        metavar="FILE",
        help="To the offsets in this file, as printed by --export.",
    ),
]
_Execute = Annotated[bool, typer.Option("--execute", help="Apply the plan.")]
_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the plan only. This is the default.")
]
_Export = Annotated[bool, typer.Option("--export", help="Print the plan as CSV for --from-file.")]


def run(
    groups: Groups = None,
    *,
    bootstrap: Bootstrap,
    all_groups: AllGroups = False,
    topic: Scope = None,
    all_topics: _AllTopics = False,
    to_earliest: _ToEarliest = False,
    to_latest: _ToLatest = False,
    to_current: _ToCurrent = False,
    to_offset: _ToOffset = None,
    shift_by: _ShiftBy = None,
    to_datetime: _ToDatetime = None,
    by_duration: _ByDuration = None,
    from_file: _FromFile = None,
    execute: _Execute = False,
    dry_run: _DryRun = False,
    export: _Export = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Move the offsets of groups without members. Without --execute, print the plan only.

    \b
      kohort groups reset billing --topic orders --to-earliest
      kohort groups reset billing --all-topics --by-duration 6h --execute
      kohort groups reset billing --all-topics --to-current --export > before.csv
      kohort groups reset billing --from-file before.csv --execute
    """
    _check_options(execute=execute, dry_run=dry_run, export=export, as_json=as_json)
    with report_admin_errors():
        target = _read_target(
            groups,
            {
                "--to-earliest": to_earliest or None,
                "--to-latest": to_latest or None,
                "--to-current": to_current or None,
                "--to-offset": to_offset,
                "--shift-by": shift_by,
                "--to-datetime": to_datetime,
                "--by-duration": by_duration,
                "--from-file": from_file,
            },
        )
        scope = _read_scope(topic, is_all=all_topics, has_file=from_file is not None)
    with connect(bootstrap, command_config, timeout) as cluster:
        selected = _select(cluster, groups, target, is_all=all_groups)
        planned = plan_resets(cluster, selected, target, scope)
        plans, refused = planned.plans, dict(planned.refused)
        failed = _apply(cluster, plans) if execute else {}
    _print_plans(plans, {**refused, **failed}, executed=execute, export=export, as_json=as_json)
    for error in (*refused.values(), *failed.values()):
        print_stderr(error)
    if not execute and plans:
        typer.echo(_summary(plans), err=True)
    if refused or failed:
        raise typer.Exit(1)


# Options


def _check_options(*, execute: bool, dry_run: bool, export: bool, as_json: bool) -> None:
    if execute and dry_run:
        usage_error("use either --execute or --dry-run, not both")
    if export and as_json:
        usage_error("use either --export or --json, not both")


def _read_target(groups: list[str] | None, given: dict[str, Any]) -> ResetTarget:
    selected = {name: content for name, content in given.items() if content is not None}
    if len(selected) != 1:
        usage_error(f"use exactly one of {', '.join(given)}")
    ((name, content),) = selected.items()
    match name:
        case "--to-earliest":
            return offset_reset.ToEarliest()
        case "--to-latest":
            return offset_reset.ToLatest()
        case "--to-current":
            return offset_reset.ToCurrent()
        case "--to-offset":
            return offset_reset.ToOffset(offset=Offset(content))
        case "--shift-by":
            return offset_reset.ShiftBy(records=content)
        case "--to-datetime":
            return offset_reset.ToTimestamp(timestamp_ms=read_time(content))
        case "--by-duration":
            ago_ms = read_duration(content)
            return offset_reset.ToTimestamp(timestamp_ms=Millis(max(0, now_ms() - ago_ms)))
        case _:
            return _read_file(content, groups)


def _read_file(path: Path, groups: list[str] | None) -> FromFile:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise InvalidRequest(f"cannot read {path}: {error}") from None
    return read_plan_file(text, [GroupId(each) for each in groups or ()])


def _read_scope(
    topic: list[str] | None, *, is_all: bool, has_file: bool
) -> offset_reset.ResetScope:
    if has_file and (topic or is_all):
        usage_error("--from-file cannot be combined with --topic or --all-topics")
    if not has_file and is_all == bool(topic):
        usage_error("use either --topic or --all-topics to select partitions")
    return offset_reset.ResetScope(is_all=True) if is_all else offset_reset.read_scope(topic or ())


def _select(
    cluster: Cluster, groups: list[str] | None, target: ResetTarget, *, is_all: bool
) -> list[GroupId]:
    if not groups and not is_all and isinstance(target, FromFile):
        return list(target.offsets)
    require_groups(groups, is_all=is_all)
    return select_groups(cluster, groups, is_all=is_all)


# Apply


def _apply(cluster: Cluster, plans: tuple[ResetPlan, ...]) -> dict[GroupId, AdminError]:
    """Reset each group; return the errors of those that failed."""
    failed: dict[GroupId, AdminError] = {}
    for plan in plans:
        try:
            apply_reset(cluster, plan)
        except AdminError as error:
            failed[plan.group_id] = error
    return failed


# Output


def _print_plans(
    plans: tuple[ResetPlan, ...],
    failed: dict[GroupId, AdminError],
    *,
    executed: bool,
    export: bool,
    as_json: bool,
) -> None:
    if export:
        typer.echo(write_plan_file(plans), nl=False)
    elif as_json:
        print_json(
            {
                "executed": executed,
                "groups": [
                    {
                        "group": plan.group_id,
                        "done": executed and plan.group_id not in failed,
                        "partitions": [_row_json(row) for row in plan.rows],
                    }
                    for plan in plans
                ],
                "errors": [
                    {"group": group_id, "error": str(error)} for group_id, error in failed.items()
                ],
            }
        )
    elif plans:
        print_table(
            ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "NEW-OFFSET", "CHANGE"),
            [
                (
                    plan.group_id,
                    row.partition.topic,
                    row.partition.partition,
                    row.old,
                    row.new,
                    _change(row),
                )
                for plan in plans
                for row in plan.rows
            ],
        )


def _change(row: ResetRow) -> str:
    if row.old is None:
        return "no committed offset"
    if row.skipped:
        return f"{row.skipped} skipped"
    return f"{row.again} read again" if row.again else "none"


def _row_json(row: ResetRow) -> dict[str, Any]:
    return {
        "topic": row.partition.topic,
        "partition": row.partition.partition,
        "current_offset": row.old,
        "new_offset": row.new,
        "skipped": row.skipped,
        "read_again": row.again,
    }


def _summary(plans: tuple[ResetPlan, ...]) -> str:
    rows = [row for plan in plans for row in plan.rows]
    skipped, again = sum(row.skipped or 0 for row in rows), sum(row.again or 0 for row in rows)
    return (
        f"dry run, nothing changed: {skipped} records would be skipped and {again} read again; "
        "use --execute to apply"
    )
