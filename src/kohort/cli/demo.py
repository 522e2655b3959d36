"""kohort demo: runs a node, the console, consumers and a Spark report in one command.

Exit codes: 0 if everything went well, also after Ctrl-C; 1 if a part failed; 2 if the command line
is invalid; 130 after a second Ctrl-C.
"""

import os
import re
import signal
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console as Terminal
from rich.table import Table
from rich.text import Text

from kohort.cli.messages import fail
from kohort.console.server import Console
from kohort.demo.console_port import ConsoleUnavailable, bind_console
from kohort.demo.demo_events import (
    ActionTaken,
    DemoStarted,
    DemoSummary,
    LoggedEvent,
    PartFailed,
    ReportFinding,
    ReportWritten,
)
from kohort.demo.event_text import sentence_of, subject_of
from kohort.demo.runner import StopSignals, run_demo
from kohort.demo.schedule import MINUTES_MAX, MINUTES_MIN
from kohort.demo.setup import DemoOptions
from kohort.pipeline.session import SparkUnavailable, check_java, check_spark

_Minutes = Annotated[
    float | None,
    typer.Option(metavar="N", help="Stop after N minutes (default: run until Ctrl-C)."),
]
_Seed = Annotated[int, typer.Option(help="Seed of the schedule and of the orders.")]
_To = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Output directory, empty or new (default: a temporary directory)."
    ),
]
_Listen = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Address of the console (default: the first free port from 8080 on 127.0.0.1).",
    ),
]
_NoSpark = Annotated[
    bool, typer.Option("--no-spark", help="Run without Spark: no table of orders, no report.")
]


def run(
    *,
    minutes: _Minutes = None,
    seed: _Seed = 1,
    to: _To = None,
    listen: _Listen = None,
    no_spark: _NoSpark = False,
) -> None:
    """Run a demo: a node, its console, consumers that fail on schedule, and a Spark report.

    Ctrl-C shuts down cleanly; a second Ctrl-C stops immediately. docs/guide/demo.md describes what
    happens.
    """
    if minutes is not None and not MINUTES_MIN <= minutes <= MINUTES_MAX:
        fail(f"--minutes {minutes:g}: must be between {MINUTES_MIN} and {MINUTES_MAX}", 2)
    directory = _create_directory(to)
    try:
        console = bind_console(listen, directory)
    except ConsoleUnavailable as error:
        if to is None:
            directory.rmdir()
        fail(error)
    no_spark_reason = "--no-spark was given" if no_spark else _check_spark()
    options = DemoOptions(
        seed=seed, minutes=minutes, directory=directory, has_spark=no_spark_reason is None
    )
    raise typer.Exit(_run(options, console, no_spark_reason))


def _run(options: DemoOptions, console: Console, no_spark_reason: str | None) -> int:
    printer = _DemoPrinter(options)
    with _stop_on_signals() as stop:
        for each in run_demo(options, console, stop):
            if isinstance(each.event, DemoStarted):
                printer.print_start(each.event, no_spark_reason)
            elif isinstance(each.event, DemoSummary):
                printer.print_summary(each.event)
                return 1 if each.event.failures else 0
            else:
                printer.print_event(each.at_ms, each.event)
    # A normal exit would wait for threads that are still busy.
    printer.print(f"stopped immediately; the output so far is in {options.directory}")
    sys.stdout.flush()
    os._exit(130)


def _create_directory(to: Path | None) -> Path:
    if to is None:
        return Path(tempfile.mkdtemp(prefix="kohort-demo-"))
    try:
        to.mkdir(parents=True, exist_ok=True)
        if any(to.iterdir()):
            fail(f"--to {to}: directory is not empty", 2)
    except OSError as error:
        fail(f"--to {to}: {error.strerror}", 2)
    return to.resolve()


def _check_spark() -> str | None:
    """Return why Spark cannot run; None if it can."""
    try:
        check_spark()
        check_java()
    except SparkUnavailable as error:
        return str(error)
    return None


@contextmanager
def _stop_on_signals() -> Iterator[StopSignals]:
    stop = StopSignals()

    def handle(_number: int, _frame: object) -> None:
        if stop.cleanly.is_set():
            stop.immediately.set()
        stop.cleanly.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Output


class _DemoPrinter:
    """Prints one line per event, and tables at the end."""

    def __init__(self, options: DemoOptions) -> None:
        self._options = options
        self._terminal = Terminal(highlight=False, soft_wrap=True)

    def print(self, sentence: str, style: str = "") -> None:
        self._terminal.print(sentence, style=style, markup=False)

    def print_start(self, started: DemoStarted, no_spark_reason: str | None) -> None:
        minutes = self._options.minutes
        length = "until Ctrl-C" if minutes is None else f"{minutes:g} min"
        self.print(f"Kohort demo: seed {started.seed}, {length}", "bold")
        self.print("")
        for name, content in (
            ("console", started.console_url),
            ("token", started.token),
            ("broker", f"{started.bootstrap_servers}, for any Kafka client"),
            ("output", str(self._options.directory)),
        ):
            if content is not None:
                self._terminal.print(_styled((f"  {name:9}", "dim"), (content, "bold cyan")))
        self.print("")
        if no_spark_reason is not None:
            self.print(f"No table of orders and no report: {no_spark_reason}", "yellow")
            self.print("")
        self.print(_INTRODUCTION.format(roles=started.roles))
        self.print("")

    def print_event(self, at_ms: int, event: LoggedEvent) -> None:
        clock = f"{at_ms // 60_000:3}:{at_ms // 1_000 % 60:02}  "
        subject = f"{subject_of(event):12}  "
        sentence = self._wrap(sentence_of(event), len(clock + subject))
        self._terminal.print(
            _styled((clock, "dim"), (subject, "cyan"), (sentence, _style_of(event)))
        )

    def print_summary(self, summary: DemoSummary) -> None:
        self.print("")
        self.print(f"Stopped after {summary.seconds:.0f} s.", "bold")
        self._terminal.print(_orders_table(summary))
        if summary.triggers:
            self._terminal.print(_rebalances_table(summary))
        for finding in summary.findings:
            self._print_finding(finding)
        for failure in summary.failures:
            self.print(f"{failure.part} failed: {failure.why}", "red")
        self.print("")
        for each in summary.paths:
            self._terminal.print(_styled((f"  {each.what:13}", "dim"), (each.path, "bold cyan")))

    def _print_finding(self, finding: ReportFinding) -> None:
        head = f"  {finding.severity:10}"
        what = self._wrap(f"{finding.group_id}: {finding.what}", len(head))
        advice = " " * len(head) + self._wrap(finding.advice, len(head))
        style = {"critical": "red", "warning": "yellow"}.get(finding.severity, "")
        self._terminal.print(_styled((head, style), (what, "")))
        self._terminal.print(_styled((advice, "dim")))

    def _wrap(self, text: str, indent: int) -> str:
        """Wrap the text on a terminal. In a file or pipe an event stays one line."""
        if not self._terminal.is_terminal:
            return text
        unbroken = re.sub(r"(?<=\d) (?=s\b)", _NO_BREAK_SPACE, text)
        width = max(self._terminal.width - indent, 40)
        lines = textwrap.wrap(unbroken, width, break_long_words=False)
        return f"\n{' ' * indent}".join(lines).replace(_NO_BREAK_SPACE, " ")


_NO_BREAK_SPACE: Final = "\u00a0"
"""Keeps a number and its unit on one line."""

_INTRODUCTION: Final = (
    "A shop produces orders; the groups checkout and billing consume them. {roles.slow} is slow, "
    "{roles.unstable} crashes,\nand {roles.flapping} restarts repeatedly. Ctrl-C shuts down "
    "cleanly; a second Ctrl-C stops immediately."
)


def _style_of(event: LoggedEvent) -> str:
    match event:
        case ActionTaken():
            return "dim"
        case PartFailed():
            return "red"
        case ReportWritten():
            return "green"
        case _:
            return ""


def _styled(*parts: tuple[str, str]) -> Text:
    return Text.assemble(*parts)


def _orders_table(summary: DemoSummary) -> Table:
    table = _new_table("orders", "", "")
    table.add_row("produced", f"{summary.produced:,}", "")
    for group_id, count in sorted(summary.consumed.items()):
        again = max(0, count - summary.produced + summary.lag.get(group_id, 0))
        remark = f"{again:,} of them twice, after a crash or a timeout" if again else ""
        table.add_row(f"consumed by {group_id}", f"{count:,}", remark)
    if summary.ingested is not None:
        bad = summary.bad or 0
        missing = summary.produced - summary.ingested - bad
        remarks = [f"and {bad:,} with invalid JSON, stored separately"] if bad else []
        remarks += [f"{missing:,} were not ingested in time"] if missing > 0 else []
        table.add_row("stored by Spark", f"{summary.ingested:,}", "; ".join(remarks))
    return table


def _rebalances_table(summary: DemoSummary) -> Table:
    groups = sorted({group_id for counts in summary.triggers.values() for group_id in counts})
    table = _new_table("rebalances by trigger", *groups)
    for trigger, counts in summary.triggers.items():
        table.add_row(trigger, *(str(counts.get(group_id, "")) for group_id in groups))
    if summary.returned:
        table.caption = f"  Static members rejoined {summary.returned} times without a rebalance."
    return table


def _new_table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, caption_justify="left")
    table.add_column(first)
    for other in others:
        table.add_column(other, justify="right" if other else "default")
    return table
