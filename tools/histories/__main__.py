"""Generate labelled histories of consumer groups from a seed: `python -m tools.histories`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kohort.cli.messages import fail
from kohort.log.errors import StorageError
from tools.histories.files import DirectoryNotEmpty
from tools.histories.generator import HistoryCounts, HistoryOptions, generate
from tools.histories.live_run import GroupNotStable, generate_live
from tools.histories.scenarios import SCENARIOS, Category, UnknownScenario


def run(
    seed: Annotated[
        int, typer.Option(help="Random seed; the same seed generates the same bytes.")
    ] = 1,
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Output directory; must be empty or new.")
    ] = None,
    *,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Scenario; may be repeated (default: all)."),
    ] = None,
    groups: Annotated[
        int | None,
        typer.Option(min=1, help="Number of groups (default: one per scenario)."),
    ] = None,
    hours: Annotated[int, typer.Option(min=1, max=24 * 366, help="Length of the history.")] = 4,
    partitions: Annotated[
        int, typer.Option(min=1, max=1000, help="Partitions of __consumer_offsets.")
    ] = 4,
    no_events: Annotated[
        bool, typer.Option("--no-events", help="Leave out the topic __kohort_events.")
    ] = False,
    real: Annotated[
        bool,
        typer.Option("--real", help="Run real consumers against a real node instead."),
    ] = False,
    list_scenarios: Annotated[
        bool, typer.Option("--list", help="List the scenarios and exit.")
    ] = False,
) -> None:
    """Generate a log directory with the histories of many groups, and their labels.

    docs/explanation/labelled-histories.md describes the contents.
    """
    if list_scenarios:
        _list_scenarios()
        return
    if to is None:
        fail("missing output directory: use --to DIR")
    if real and (kind or groups is not None or no_events):
        fail("--real can only be combined with --to and --partitions")
    if real:
        _generate_live(to, partitions)
        return

    options = HistoryOptions(
        seed=seed,
        scenarios=tuple(kind or ()),
        groups=groups,
        hours=hours,
        has_events=not no_events,
        partitions=partitions,
    )
    _generate(options, to)


def _generate(options: HistoryOptions, to: Path) -> None:
    with _plain_errors(to):
        try:
            counts = generate(options, to)
        except UnknownScenario as error:
            fail(str(error))
    typer.echo(f"seed {options.seed}, {options.hours} h: {_summary(counts)}")


def _generate_live(to: Path, partitions: int) -> None:
    with _plain_errors(to):
        try:
            counts = generate_live(to, partitions)
        except GroupNotStable as error:
            fail(str(error))
    typer.echo(f"real clients: {_summary(counts)}")


@contextmanager
def _plain_errors(to: Path) -> Iterator[None]:
    try:
        yield
    except DirectoryNotEmpty as error:
        fail(str(error))
    except StorageError as error:
        fail(f"cannot write {to}: {error}")
    except OSError as error:
        fail(f"cannot write {to}: {error.strerror}")


def _list_scenarios() -> None:
    for category in Category:
        typer.echo(f"{category}:")
        for each in SCENARIOS.values():
            if each.category is category:
                typer.echo(f"  {each.name:<28}{each.meaning}")


def _summary(counts: HistoryCounts) -> str:
    parts = (
        (counts.groups, "group", "groups"),
        (counts.records, "record", "records"),
        (counts.events, "event", "events"),
        (counts.rebalances, "rebalance", "rebalances"),
        (counts.pathologies, "pathology", "pathologies"),
        (counts.look_alikes, "look-alike", "look-alikes"),
    )
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in parts)


if __name__ == "__main__":
    typer.run(run)
