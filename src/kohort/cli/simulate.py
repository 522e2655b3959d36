"""kohort simulate: seeds run through the simulated world, and what they bring to light."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from kohort.sim.runs import Tally
    from kohort.sim.world import Verdict


def run(
    seed: Annotated[
        int | None, typer.Option(help="The first seed; without one, the clock draws it.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="So many seeds, one after the other.")] = 1,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Run the plan in a file instead.")
    ] = None,
    keep: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to put the files that explain failures.")
    ] = Path(),
    *,
    trace: Annotated[
        bool, typer.Option("--trace", help="Tell what happens, line by line.")
    ] = False,
) -> None:
    """Run coordinator, node, log and members together in a world where everything may fail.

    The same seed gives the same run, to the byte. docs/simulation.md explains the trace.
    """
    if replay is not None:
        _replay(replay, is_traced=trace)
        return
    first = seed if seed is not None else time.time_ns() % 2**32
    if runs == 1 and trace:
        _trace(first)
    else:
        _run_many(first, runs, keep)


def _replay(file: Path, *, is_traced: bool) -> None:
    from kohort.sim.planfile import BadPlan, read_plan  # noqa: PLC0415  # as the rest of the world
    from kohort.sim.runs import run_plan  # noqa: PLC0415

    try:
        plan = read_plan(file.read_text("utf-8"))
    except OSError as error:
        _refuse(f"{file} cannot be read: {error.strerror}")
    except (BadPlan, UnicodeDecodeError) as error:
        _refuse(f"{file}: {error}")
    _conclude(run_plan(plan, typer.echo if is_traced else None))


def _trace(seed: int) -> None:
    from kohort.sim.drawing import draw_plan  # noqa: PLC0415  # the other verbs start without it
    from kohort.sim.runs import run_plan  # noqa: PLC0415

    _conclude(run_plan(draw_plan(seed), typer.echo))


def _run_many(first: int, count: int, keep: Path) -> None:
    from kohort.sim.runs import Tally, explain, run_seeds  # noqa: PLC0415  # as above

    tally = Tally()
    failures: list[str] = []
    began = time.monotonic()
    for verdict in run_seeds(first, count):
        tally.add(verdict)
        if not verdict.is_good:
            typer.echo(f"\nseed {verdict.plan.seed} broke {verdict.rule}: {verdict.what}")
            file = keep / f"{verdict.plan.seed}.seed"
            file.write_text(explain(verdict), "utf-8")
            typer.echo(f"shrunk into {file}; run it again with --replay {file} --trace")
            failures.append(str(verdict.plan.seed))
        _show_progress(verdict, tally, len(failures), count)
    seconds = time.monotonic() - began
    typer.echo(_summary(tally, first, seconds))
    if failures:
        typer.echo(f"{len(failures)} failed: {', '.join(failures)}")
        raise typer.Exit(1)
    typer.echo("none failed")


def _show_progress(verdict: "Verdict", tally: "Tally", failures: int, count: int) -> None:
    """One line that is written over, where somebody watches."""
    if count > 1 and sys.stderr.isatty():
        line = f"{tally.runs}/{count} seeds, at {verdict.plan.seed}, {failures} failed"
        typer.echo(f"\r{line}", nl=tally.runs == count, err=True)


def _summary(tally: "Tally", first: int, seconds: float) -> str:
    minutes = tally.virtual_ms / 60_000
    return (
        f"{tally.runs} seeds from {first} on, {seconds:.1f} s: {tally.events} events in"
        f" {minutes:.1f} virtual minutes, {tally.lives} lives of the node,"
        f" {tally.processed} records processed"
    )


def _conclude(verdict: "Verdict") -> None:
    if verdict.is_good:
        events = f"{verdict.events} events in {verdict.ended_ms} virtual ms"
        typer.echo(f"seed {verdict.plan.seed}: {events}, and nothing is wrong")
        return
    typer.echo(f"seed {verdict.plan.seed} broke {verdict.rule}: {verdict.what}")
    if verdict.details:
        typer.echo(verdict.details)
    raise typer.Exit(1)


def _refuse(reason: str) -> NoReturn:
    typer.echo(f"kohort: {reason}", err=True)
    raise typer.Exit(1)
