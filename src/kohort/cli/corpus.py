"""kohort corpus: histories of consumer groups whose truth is known, made from a seed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from kohort.corpus.making import Made, Plan


def run(
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 1,
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to put it; must be empty or new.")
    ] = None,
    *,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A kind of history; may be repeated. Else: all."),
    ] = None,
    groups: Annotated[
        int | None, typer.Option(min=1, help="So many groups; the kinds take turns.")
    ] = None,
    hours: Annotated[int, typer.Option(min=1, max=24 * 366, help="So long a history.")] = 4,
    partitions: Annotated[int, typer.Option(min=1, max=1000, help="Of __consumer_offsets.")] = 4,
    no_events: Annotated[
        bool, typer.Option("--no-events", help="Leave out what only Kohort tells.")
    ] = False,
    real: Annotated[
        bool,
        typer.Option("--real", help="A short history of real consumers on a real node instead."),
    ] = False,
    list_kinds: Annotated[
        bool, typer.Option("--list", help="Say which kinds there are, and stop.")
    ] = False,
) -> None:
    """Make a log directory with the history of many groups, and the truth about it.

    docs/corpus.md says what is in it.
    """
    if list_kinds:
        _list_kinds()
        return
    if to is None:
        _refuse("say where to put it: --to DIR")
    if real and (kind or groups is not None or no_events):
        _refuse("--real has a script of its own: only --to and --partitions go with it")
    if real:
        _make_real(to, partitions)
        return
    from kohort.corpus.making import Plan  # noqa: PLC0415  # the other verbs start without it

    plan = Plan(
        seed=seed,
        kinds=tuple(kind or ()),
        groups=groups,
        hours=hours,
        has_events=not no_events,
        partitions=partitions,
    )
    _make(plan, to)


def _make(plan: "Plan", to: Path) -> None:
    from kohort.corpus.kinds import UnknownKind  # noqa: PLC0415  # as above
    from kohort.corpus.making import make  # noqa: PLC0415

    with _plain_errors(to):
        try:
            made = make(plan, to)
        except UnknownKind as error:
            _refuse(str(error))
    typer.echo(f"seed {plan.seed}, {plan.hours} h: {_summary(made)}")


def _make_real(to: Path, partitions: int) -> None:
    from kohort.corpus.real import NotSettled, make_real  # noqa: PLC0415  # as above

    with _plain_errors(to):
        try:
            made = make_real(to, partitions)
        except NotSettled as error:
            _refuse(str(error))
    typer.echo(f"real clients: {_summary(made)}")


@contextmanager
def _plain_errors(to: Path) -> Iterator[None]:
    from kohort.corpus.files import Occupied  # noqa: PLC0415  # as above
    from kohort.log.errors import StorageError  # noqa: PLC0415

    try:
        yield
    except Occupied as error:
        _refuse(str(error))
    except StorageError as error:
        _refuse(f"{to} cannot be written: {error}")
    except OSError as error:
        _refuse(f"{to} cannot be written: {error.strerror}")


def _list_kinds() -> None:
    from kohort.corpus.kinds import KINDS, Sort  # noqa: PLC0415  # as above

    for sort in Sort:
        typer.echo(f"{sort}:")
        for each in KINDS.values():
            if each.sort is sort:
                typer.echo(f"  {each.name:<28}{each.meaning}")


def _summary(made: "Made") -> str:
    counts = (
        (made.groups, "group", "groups"),
        (made.records, "record", "records"),
        (made.events, "event", "events"),
        (made.rebalances, "rebalance", "rebalances"),
        (made.pathologies, "pathology", "pathologies"),
        (made.look_alikes, "look-alike", "look-alikes"),
    )
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts)


def _refuse(reason: str) -> NoReturn:
    typer.echo(f"kohort: {reason}", err=True)
    raise typer.Exit(1)
