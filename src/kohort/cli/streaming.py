"""What commands that read or write records share: their options, how they end, how they fail.

The exit code is 0 where all went well, Ctrl-C and a closed pipe included; 1 where something failed;
2 where the command is not understood; 130 where a second Ctrl-C did not let it end in order.
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
from typing import Annotated, NoReturn

import typer

from kohort.admin.errors import WrongWish
from kohort.admin.times import read_since
from kohort.cli.clusters import one_sentence_about_what_fails
from kohort.types import Millis

Kafka = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="An option of the client; may be repeated."),
]
# Options


def read_options(pairs: Iterable[str] | None, file: Path | None) -> dict[str, str]:
    """What the file says, and the pairs, which win."""
    options: dict[str, str] = {}
    if file is not None:
        options.update(_read_file(file))
    for pair in pairs or ():
        name, equals, content = pair.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE.", param_hint="--kafka")
        options[name.strip()] = content.strip()
    return options


def _read_file(file: Path) -> dict[str, str]:
    from kohort.admin.options import read_properties  # noqa: PLC0415  # not every verb needs it

    try:
        return read_properties(file.read_text("utf-8"))
    except OSError as error:
        reason = f"{file}: {error.strerror}."
    except (UnicodeError, WrongWish) as error:
        reason = f"{file}: {error}."
    raise typer.BadParameter(reason, param_hint="--command-config") from None


def read_moment(text: str | None, *, option: str = "--since") -> Millis | None:
    """A moment, or how long ago it was; None where none was given."""
    if text is None:
        return None
    try:
        return read_since(text, Millis(time.time_ns() // 1_000_000))
    except WrongWish as error:
        raise typer.BadParameter(f"{error}.", param_hint=option) from None


def check_reachable(bootstrap: str) -> None:
    """A consumer goes on trying for long; whoever types a command wants to know at once."""
    from kohort.admin.cluster import open_cluster  # noqa: PLC0415  # not every verb needs it

    with one_sentence_about_what_fails():
        open_cluster(bootstrap).close()


@contextmanager
def hearing_consumers(tell: Callable[[str], object] | None = None) -> Iterator[None]:
    """What consumers warn of is told in our manner, or not at all; never in the logger's own."""
    logger = logging.getLogger("kohort.consumer")
    handler = logging.NullHandler() if tell is None else _Telling(tell)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Telling(logging.Handler):
    def __init__(self, tell: Callable[[str], object]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record.getMessage())


# Ending and failing


@contextmanager
def until_told_to_end() -> Iterator[Callable[[], bool]]:
    """Whether it is time to end: Ctrl-C or a kind kill has come. A second one interrupts."""
    told = threading.Event()

    def hear(_number: int, _frame: object) -> None:
        if told.is_set():
            raise KeyboardInterrupt
        told.set()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, hear)
    try:
        yield told.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def taking_a_kill_for_ctrl_c() -> Iterator[None]:
    """For what waits where only an exception reaches it."""

    def hear(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def one_sentence_about(*errors: type[Exception]) -> Iterator[None]:
    """Errors of these kinds are told in one sentence; a pipe that was closed is none."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still held for it has nowhere to go, and Python would complain when it ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except errors as error:
        refuse(str(error))


def refuse(reason: str) -> NoReturn:
    typer.echo(f"kohort: {reason}", err=True)
    raise typer.Exit(1)


def note(said: str) -> None:
    """Beside the records, never among them."""
    typer.echo(f"kohort: {said}", err=True)
