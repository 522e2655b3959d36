"""kohort simulate: runs simulation seeds and reports the rules that they break."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from kohort.cli.messages import fail
from kohort.sim.plan_file import InvalidPlan, read_plan
from kohort.sim.plan_generator import draw_plan
from kohort.sim.runner import SeedTotals, explain, run_plan, run_seeds
from kohort.sim.world import RunResult


def run(
    seed: Annotated[int | None, typer.Option(help="First seed (default: from the clock).")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Number of consecutive seeds to run.")] = 1,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Run the plan in this file instead of a seed."),
    ] = None,
    keep: Annotated[
        Path, typer.Option(metavar="DIR", help="Write the plans of failed seeds to this directory.")
    ] = Path(),
    *,
    trace: Annotated[bool, typer.Option("--trace", help="Print every event of the run.")] = False,
) -> None:
    """Run node, log and consumers in a deterministic simulation that injects faults.

    The same seed gives the same run, byte for byte. docs/explanation/simulation.md explains the
    trace.
    """
    if replay is not None:
        _replay(replay, has_trace=trace)
        return
    first = seed if seed is not None else time.time_ns() % 2**32
    if runs == 1 and trace:
        _trace(first)
    else:
        _run_seeds(first, runs, keep)


def _replay(file: Path, *, has_trace: bool) -> None:
    try:
        plan = read_plan(file.read_text("utf-8"))
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    except (InvalidPlan, UnicodeDecodeError) as error:
        fail(f"{file}: {error}")
    _print_verdict(run_plan(plan, typer.echo if has_trace else None))


def _trace(seed: int) -> None:
    _print_verdict(run_plan(draw_plan(seed), typer.echo))


def _run_seeds(first: int, count: int, keep: Path) -> None:
    tally = SeedTotals()
    failures: list[str] = []
    began = time.monotonic()
    for verdict in run_seeds(first, count):
        tally.add(verdict)
        if not verdict.is_good:
            typer.echo(f"\nseed {verdict.plan.seed} broke {verdict.rule}: {verdict.what}")
            file = keep / f"{verdict.plan.seed}.seed"
            file.write_text(explain(verdict), "utf-8")
            typer.echo(f"minimal plan written to {file}; run it with --replay {file} --trace")
            failures.append(str(verdict.plan.seed))
        _show_progress(verdict, tally, len(failures), count)
    seconds = time.monotonic() - began
    typer.echo(_summary(tally, first, seconds))
    if failures:
        typer.echo(f"{len(failures)} seeds failed: {', '.join(failures)}")
        raise typer.Exit(1)
    typer.echo("none failed")


def _show_progress(verdict: RunResult, tally: SeedTotals, failures: int, count: int) -> None:
    """Overwrite one progress line, if stderr is a terminal."""
    if count > 1 and sys.stderr.isatty():
        line = f"{tally.runs}/{count} seeds, at {verdict.plan.seed}, {failures} failed"
        typer.echo(f"\r{line}", nl=tally.runs == count, err=True)


def _summary(tally: SeedTotals, first: int, seconds: float) -> str:
    minutes = tally.virtual_ms / 60_000
    return (
        f"{tally.runs} seeds from {first} on, {seconds:.1f} s: {tally.steps} events in"
        f" {minutes:.1f} virtual minutes, {tally.node_starts} node starts,"
        f" {tally.processed} records processed"
    )


def _print_verdict(verdict: RunResult) -> None:
    if verdict.is_good:
        events = f"{verdict.steps} events in {verdict.ended_ms} virtual ms"
        typer.echo(f"seed {verdict.plan.seed}: {events}, no rule broken")
        return
    typer.echo(f"seed {verdict.plan.seed} broke {verdict.rule}: {verdict.what}")
    if verdict.details:
        typer.echo(verdict.details)
    raise typer.Exit(1)
