"""kohort demo: all of Kohort at work, in one command.

The exit code is 0 where all went well, Ctrl-C included; 1 where a part has died; 2 where the
command is not understood; 130 where a second Ctrl-C did not let it come to its end.
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
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from kohort.console.server import Console
    from kohort.demo.news import Found, Line, Opened, Summary
    from kohort.demo.show import Stop
    from kohort.demo.stage import DemoWish

_Minutes = Annotated[
    float | None,
    typer.Option(metavar="N", help="End by itself after so long. Else: at Ctrl-C."),
]
_Seed = Annotated[int, typer.Option(help="The same seed gives the same schedule.")]
_To = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Where all goes; must be empty or new. Else: a temporary one."
    ),
]
_Listen = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Where the console is. Else: a free port of this machine, 8080 or above.",
    ),
]
_NoSpark = Annotated[
    bool, typer.Option("--no-spark", help="Leave out what Spark does: table and report.")
]


def run(
    *,
    minutes: _Minutes = None,
    seed: _Seed = 1,
    to: _To = None,
    listen: _Listen = None,
    no_spark: _NoSpark = False,
) -> None:
    """Show Kohort at work: a node, its console, a shop in trouble, Spark, and the report.

    Ctrl-C ends it in order, twice at once. docs/demo.md says what there is to see.
    """
    from kohort.demo import schedule  # noqa: PLC0415  # other verbs start without it

    least, most = schedule.MINUTES_MIN, schedule.MINUTES_MAX
    if minutes is not None and not least <= minutes <= most:
        _refuse(f"--minutes {minutes:g}: it takes {least} to {most}", 2)
    directory = _claim(to)
    try:
        console = _bind(listen, directory)
    except typer.Exit:
        if to is None:
            directory.rmdir()
        raise
    from kohort.demo.stage import DemoWish  # noqa: PLC0415  # it needs what the console does

    without = "--no-spark was given" if no_spark else _find_what_spark_lacks()
    wish = DemoWish(seed=seed, minutes=minutes, directory=directory, has_spark=without is None)
    raise typer.Exit(_show(wish, console, without))


def _show(wish: "DemoWish", console: "Console", without: str | None) -> int:
    from kohort.demo.news import Opened, Summary  # noqa: PLC0415  # as above
    from kohort.demo.show import play  # noqa: PLC0415

    screen = _Screen(wish)
    with _until_told_to_end() as stop:
        for told in play(wish, console, stop):
            if isinstance(told.news, Opened):
                screen.open(told.news, without)
            elif isinstance(told.news, Summary):
                screen.sum_up(told.news)
                return 1 if told.news.died else 0
            else:
                screen.tell(told.at_ms, told.news)
    # Threads that are in the middle of something would keep this process waiting.
    screen.say("ended at once; what was written so far is in " + str(wish.directory))
    sys.stdout.flush()
    os._exit(130)


# What is wished for


def _claim(to: Path | None) -> Path:
    if to is None:
        return Path(tempfile.mkdtemp(prefix="kohort-demo-"))
    try:
        to.mkdir(parents=True, exist_ok=True)
        if any(to.iterdir()):
            _refuse(f"--to {to}: it is not empty", 2)
    except OSError as error:
        _refuse(f"--to {to}: {error.strerror}", 2)
    return to.resolve()


def _find_what_spark_lacks() -> str | None:
    from kohort.demo.warehouse import check_spark_runs  # noqa: PLC0415  # as above
    from kohort.pipeline.session import NoSpark  # noqa: PLC0415

    try:
        check_spark_runs()
    except NoSpark as error:
        return str(error)
    return None


def _bind(listen: str | None, directory: Path) -> "Console":
    from kohort.demo.console import NoConsole, bind_console  # noqa: PLC0415  # as above

    try:
        return bind_console(listen, directory)
    except NoConsole as error:
        _refuse(str(error), 1)


def _refuse(reason: str, code: int) -> NoReturn:
    typer.echo(f"kohort: {reason}", err=True)
    raise typer.Exit(code)


@contextmanager
def _until_told_to_end() -> "Iterator[Stop]":
    """Once, in order; twice, at once."""
    from kohort.demo.show import Stop  # noqa: PLC0415  # as above

    stop = Stop()

    def end(_number: int, _frame: object) -> None:
        if stop.soon.is_set():
            stop.at_once.set()
        stop.soon.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# The terminal


class _Screen:
    """One line for each thing that happens, and tables at the end."""

    def __init__(self, wish: "DemoWish") -> None:
        from rich.console import Console  # noqa: PLC0415  # as above

        self._wish = wish
        self._console: Console = Console(highlight=False, soft_wrap=True)

    def say(self, sentence: str, style: str = "") -> None:
        self._console.print(sentence, style=style, markup=False)

    def open(self, opened: "Opened", without: str | None) -> None:
        length = "until Ctrl-C" if self._wish.minutes is None else f"{self._wish.minutes:g} minutes"
        self.say(f"Kohort at work: seed {opened.seed}, {length}", "bold")
        self.say("")
        for what, where in (
            ("open", opened.console),
            ("token", opened.token),
            ("join in", f"{opened.bootstrap_servers}, with any Kafka client"),
            ("find", f"everything in {self._wish.directory}"),
        ):
            if where is None:
                continue
            self._console.print(_text((f"  {what:9}", "dim"), (where, "bold cyan")))
        self.say("")
        if without is not None:
            self.say(f"There will be no table of orders and no report: {without}", "yellow")
            self.say("")
        self.say(_PROLOGUE.format(roles=opened.roles))
        self.say("")

    def tell(self, at_ms: int, news: "Line") -> None:
        from kohort.demo.words import sentence_of, subject_of  # noqa: PLC0415  # as above

        clock = f"{at_ms // 60_000:3}:{at_ms // 1_000 % 60:02}  "
        who = f"{subject_of(news):12}  "
        sentence = self._fold(sentence_of(news), len(clock + who))
        self._console.print(_text((clock, "dim"), (who, "cyan"), (sentence, _style_of(news))))

    def sum_up(self, summary: "Summary") -> None:
        self.say("")
        self.say(f"Ended after {summary.seconds:.0f} s.", "bold")
        self._console.print(_table_of_records(summary))
        if summary.triggers:
            self._console.print(_table_of_rebalances(summary))
        for found in summary.findings:
            self._tell_finding(found)
        for died in summary.died:
            self.say(f"{died.part} has died: {died.why}", "red")
        self.say("")
        for place in summary.places:
            self._console.print(_text((f"  {place.what:13}", "dim"), (place.path, "bold cyan")))

    def _tell_finding(self, found: "Found") -> None:
        head = f"  {found.severity:10}"
        what = self._fold(f"{found.group_id}: {found.what}", len(head))
        advice = " " * len(head) + self._fold(found.advice, len(head))
        style = {"critical": "red", "warning": "yellow"}.get(found.severity, "")
        self._console.print(_text((head, style), (what, "")))
        self._console.print(_text((advice, "dim")))

    def _fold(self, text: str, indent: int) -> str:
        """As many lines as the terminal needs; where it is none, a line stays a line."""
        if not self._console.is_terminal:
            return text
        whole = re.sub(r"(?<=\d) (?=s\b)", _UNBROKEN, text)
        width = max(self._console.width - indent, 40)
        lines = textwrap.wrap(whole, width, break_long_words=False)
        return f"\n{' ' * indent}".join(lines).replace(_UNBROKEN, " ")


_UNBROKEN = "\u00a0"
"""A space at which no line ends; seconds stay with their number."""

_PROLOGUE = (
    "A shop sells; checkout and billing read its orders. {roles.staller} is slow, {roles.victim} "
    "frail and\n{roles.restless} restless. Ctrl-C ends it in order, twice at once."
)


def _style_of(news: "Line") -> str:
    from kohort.demo.news import Acted, Died, Explained  # noqa: PLC0415  # as above

    match news:
        case Acted():
            return "dim"
        case Died():
            return "red"
        case Explained():
            return "green"
        case _:
            return ""


def _text(*parts: tuple[str, str]) -> Any:
    from rich.text import Text  # noqa: PLC0415  # as above

    return Text.assemble(*parts)


def _table_of_records(summary: "Summary") -> "Table":
    table = _new_table("orders", "", "")
    table.add_row("placed", f"{summary.produced:,}", "")
    for group_id, count in sorted(summary.consumed.items()):
        again = max(0, count - summary.produced + summary.lag.get(group_id, 0))
        more = f"{again:,} of them again, after a crash or an eviction" if again else ""
        table.add_row(f"read by {group_id}", f"{count:,}", more)
    if summary.ingested is not None:
        bad = summary.bad or 0
        late = summary.produced - summary.ingested - bad
        notes = [f"and {bad:,} that are no JSON, set aside"] if bad else []
        notes += [f"{late:,} were not taken in time"] if late > 0 else []
        table.add_row("kept by Spark", f"{summary.ingested:,}", "; ".join(notes))
    return table


def _table_of_rebalances(summary: "Summary") -> "Table":
    groups = sorted({group_id for counts in summary.triggers.values() for group_id in counts})
    table = _new_table("rebalances began with", *groups)
    for trigger, counts in summary.triggers.items():
        table.add_row(trigger, *(str(counts.get(group_id, "")) for group_id in groups))
    if summary.returned:
        table.caption = f"  Static members came back {summary.returned} times, without any."
    return table


def _new_table(first: str, *others: str) -> "Table":
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  # as above
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=SIMPLE_HEAD, caption_justify="left")
    table.add_column(first)
    for other in others:
        table.add_column(other, justify="right" if other else "default")
    return table
