"""Options, signals and error handling of commands that read or write records.

Exit codes: 0 if everything went well, also after Ctrl-C or a closed pipe; 1 if something failed; 2
if the command line is invalid; 130 after a second Ctrl-C.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kohort.admin.cluster_connection import open_cluster
from kohort.cli.cluster_options import report_admin_errors
from kohort.cli.messages import fail
from kohort.settings.properties import read_properties
from kohort.settings.readers import BadValue, read_pairs
from kohort.settings.times import read_since
from kohort.types import Millis

Kafka = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Set a client option. May be repeated."),
]

# Options


def read_options(pairs: Iterable[str] | None, file: Path | None) -> dict[str, str]:
    """Merge the options of the file and of the pairs. A pair overrides the file."""
    try:
        return {**read_properties(file), **read_pairs(pairs or (), "--kafka", may_repeat=True)}
    except BadValue as error:
        raise typer.BadParameter(f"{error}.") from None


def read_start_time(text: str | None, *, option: str = "--since") -> Millis | None:
    """Read a time of day or a duration before now."""
    if text is None:
        return None
    try:
        return read_since(text, Millis(time.time_ns() // 1_000_000))
    except BadValue as error:
        raise typer.BadParameter(f"{error}.", param_hint=option) from None


def check_reachable(bootstrap: str) -> None:
    """Fail at once if no broker answers; a consumer would retry for a long time."""
    with report_admin_errors():
        open_cluster(bootstrap).close()


@contextmanager
def forward_consumer_warnings(print_line: Callable[[str], object] | None = None) -> Iterator[None]:
    """Print the consumer's warnings with `print_line`, or drop them without it."""
    logger = logging.getLogger("kohort.consumer")
    handler = logging.NullHandler() if print_line is None else _PrintHandler(print_line)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _PrintHandler(logging.Handler):
    def __init__(self, print_line: Callable[[str], object]) -> None:
        super().__init__(logging.WARNING)
        self._print_line = print_line

    def emit(self, record: logging.LogRecord) -> None:
        self._print_line(record.getMessage())


# Signals and errors


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Give a function that returns True after SIGINT or SIGTERM. A second signal interrupts."""
    is_stopping = threading.Event()

    def handle(_number: int, _frame: object) -> None:
        if is_stopping.is_set():
            raise KeyboardInterrupt
        is_stopping.set()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, handle)
    try:
        yield is_stopping.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM, for blocking calls that only an exception ends."""

    def handle(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def report_errors(*errors: type[Exception]) -> Iterator[None]:
    """Report these errors in one sentence. A closed pipe is no error."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout when it exits, and would report the closed pipe once more.
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except errors as error:
        fail(error)
