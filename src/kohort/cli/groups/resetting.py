"""kohort groups reset: moves what groups have committed. It shows what it would do, until told."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.clusters import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    choose_groups,
    now_ms,
    one_sentence_about_what_fails,
    refuse,
    say_error,
    talking_to,
)
from kohort.cli.groups.options import AllGroups, Groups, Scope
from kohort.cli.tables import show_json, show_table
from kohort.types import GroupId, Millis, Offset

if TYPE_CHECKING:
    from kohort.admin.cluster import Cluster
    from kohort.admin.errors import AdminError
    from kohort.admin.resetting import AsPlanned, ResetPlan, ResetRow, ResetWish
    from kohort.admin.resetting import Scope as Places

_AllTopics = Annotated[
    bool, typer.Option("--all-topics", help="All that the group has committed for.")
]
_ToEarliest = Annotated[bool, typer.Option("--to-earliest", help="To the oldest record.")]
_ToLatest = Annotated[bool, typer.Option("--to-latest", help="To the end: only what comes.")]
_ToCurrent = Annotated[
    bool, typer.Option("--to-current", help="To where it is; to the end where it is nowhere.")
]
_ToOffset = Annotated[
    int | None, typer.Option("--to-offset", metavar="N", min=0, help="To this offset.")
]
_ShiftBy = Annotated[
    int | None, typer.Option("--shift-by", metavar="N", help="By so many; -N reads N again.")
]
_ToDatetime = Annotated[
    str | None,
    typer.Option(
        "--to-datetime",
        metavar="TIME",
        help="To the first record since: 2026-11-16T09:00, with a zone or in UTC.",
    ),
]
_ByDuration = Annotated[
    str | None,
    typer.Option("--by-duration", metavar="LONG", help="The same, so long ago: P1DT2H or 26h."),
]
_FromFile = Annotated[
    Path | None,
    typer.Option(
        "--from-file", metavar="FILE", help="Lines of topic,partition,offset, or group before."
    ),
]
_Execute = Annotated[bool, typer.Option("--execute", help="Do it.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show it, as without --execute.")]
_Export = Annotated[
    bool, typer.Option("--export", help="Write the plan in CSV, which --from-file reads.")
]


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
    """Move the offsets of groups that have no members. Without --execute, show what would change.

    \b
      kohort groups reset billing --topic orders --to-earliest
      kohort groups reset billing --all-topics --by-duration 6h --execute
      kohort groups reset billing --all-topics --to-current --export > was.csv
      kohort groups reset billing --from-file was.csv --execute
    """
    _check(execute=execute, dry_run=dry_run, export=export, as_json=as_json)
    with one_sentence_about_what_fails():
        wish = _read_wish(
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
        scope = _read_places(topic, is_all=all_topics, has_file=from_file is not None)
    with talking_to(bootstrap, command_config, timeout) as cluster:
        chosen = _choose(cluster, groups, wish, is_all=all_groups)
        plans, refused = _plan(cluster, chosen, wish, scope)
        failed = _do(cluster, plans) if execute else {}
    _show(plans, {**refused, **failed}, executed=execute, export=export, as_json=as_json)
    for error in (*refused.values(), *failed.values()):
        say_error(error)
    if not execute and plans:
        typer.echo(_summary(plans), err=True)
    if refused or failed:
        raise typer.Exit(1)


# What is wished for


def _check(*, execute: bool, dry_run: bool, export: bool, as_json: bool) -> None:
    if execute and dry_run:
        refuse("--execute and --dry-run contradict each other")
    if export and as_json:
        refuse("--export writes CSV, --json writes JSON: choose one")


def _read_wish(groups: list[str] | None, given: dict[str, Any]) -> "ResetWish":
    from kohort.admin import resetting  # noqa: PLC0415  # other verbs need none of it
    from kohort.admin.times import read_duration, read_moment  # noqa: PLC0415

    chosen = {name: content for name, content in given.items() if content is not None}
    if len(chosen) != 1:
        refuse(f"say where to, in exactly one way: {', '.join(given)}")
    ((name, content),) = chosen.items()
    match name:
        case "--to-earliest":
            return resetting.ToEarliest()
        case "--to-latest":
            return resetting.ToLatest()
        case "--to-current":
            return resetting.ToCurrent()
        case "--to-offset":
            return resetting.ToOffset(offset=Offset(content))
        case "--shift-by":
            return resetting.ShiftBy(records=content)
        case "--to-datetime":
            return resetting.Since(moment_ms=read_moment(content))
        case "--by-duration":
            ago_ms = read_duration(content)
            return resetting.Since(moment_ms=Millis(max(0, now_ms() - ago_ms)))
        case _:
            return _read_file(content, groups)


def _read_file(path: Path, groups: list[str] | None) -> "AsPlanned":
    from kohort.admin.errors import WrongWish  # noqa: PLC0415  # as above
    from kohort.admin.resetting import read_plan_file  # noqa: PLC0415

    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise WrongWish(f"{path} cannot be read: {error}") from None
    return read_plan_file(text, [GroupId(each) for each in groups or ()])


def _read_places(topic: list[str] | None, *, is_all: bool, has_file: bool) -> "Places":
    from kohort.admin import resetting  # noqa: PLC0415  # as above

    if has_file and (topic or is_all):
        refuse("--from-file says itself which partitions: leave out --topic and --all-topics")
    if not has_file and is_all == bool(topic):
        refuse("say which partitions: --topic, once or more, or --all-topics")
    return resetting.Scope(is_all=True) if is_all else resetting.read_scope(topic or ())


def _choose(
    cluster: "Cluster", groups: list[str] | None, wish: "ResetWish", *, is_all: bool
) -> list[GroupId]:
    from kohort.admin.resetting import AsPlanned  # noqa: PLC0415  # as above

    if not groups and not is_all and isinstance(wish, AsPlanned):
        return list(wish.offsets)
    if is_all == bool(groups):
        refuse("name one group or more, or say --all-groups")
    return choose_groups(cluster, groups, is_all=is_all)


# What becomes of it


def _plan(
    cluster: "Cluster", chosen: list[GroupId], wish: "ResetWish", scope: "Places"
) -> "tuple[tuple[ResetPlan, ...], dict[GroupId, AdminError]]":
    from kohort.admin.resetting import plan_resets  # noqa: PLC0415  # as above

    found = plan_resets(cluster, chosen, wish, scope)
    return found.plans, dict(found.refused)


def _do_one(cluster: "Cluster", plan: "ResetPlan") -> "AdminError | None":
    from kohort.admin.errors import AdminError  # noqa: PLC0415  # as above
    from kohort.admin.resetting import apply  # noqa: PLC0415

    try:
        apply(cluster, plan)
    except AdminError as error:
        return error
    return None


def _do(cluster: "Cluster", plans: "tuple[ResetPlan, ...]") -> "dict[GroupId, AdminError]":
    """What fails for one group is told, and the others go on."""
    results = {plan.group_id: _do_one(cluster, plan) for plan in plans}
    return {group_id: error for group_id, error in results.items() if error is not None}


# What is shown


def _show(
    plans: "tuple[ResetPlan, ...]",
    failed: "dict[GroupId, AdminError]",
    *,
    executed: bool,
    export: bool,
    as_json: bool,
) -> None:
    from kohort.admin.resetting import write_plan_file  # noqa: PLC0415  # as above

    if export:
        typer.echo(write_plan_file(plans), nl=False)
    elif as_json:
        show_json(
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
        show_table(
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


def _change(row: "ResetRow") -> str:
    if row.old is None:
        return "nothing was committed"
    if row.skipped:
        return f"{row.skipped} skipped"
    return f"{row.again} read again" if row.again else "none"


def _row_json(row: "ResetRow") -> dict[str, Any]:
    return {
        "topic": row.partition.topic,
        "partition": row.partition.partition,
        "current_offset": row.old,
        "new_offset": row.new,
        "skipped": row.skipped,
        "read_again": row.again,
    }


def _summary(plans: "tuple[ResetPlan, ...]") -> str:
    rows = [row for plan in plans for row in plan.rows]
    skipped, again = sum(row.skipped or 0 for row in rows), sum(row.again or 0 for row in rows)
    return (
        f"a dry run, which has changed nothing: {skipped} records would be skipped and {again} "
        "read again; add --execute to do it"
    )
