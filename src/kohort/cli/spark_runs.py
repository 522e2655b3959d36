"""What commands that run a Spark have in common: how they end, and how they fail."""

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from kohort.pipeline.ingest.wish import Ending


@contextmanager
def until_told_to_end() -> "Iterator[tuple[Ending, Callable[[], None]]]":
    """Once, after the batch; twice, at once; three times, as if nobody had listened."""
    from kohort.pipeline.ingest.wish import Ending  # noqa: PLC0415  # who only asks for help waits

    ending = Ending()

    def end(_number: int, _frame: object) -> None:
        if ending.at_once.is_set():
            raise KeyboardInterrupt
        if ending.after_batch.is_set():
            ending.at_once.set()
        ending.after_batch.set()

    def listen() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, end)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    listen()
    try:
        yield ending, listen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def one_sentence_about_what_fails(*, is_verbose: bool) -> Iterator[None]:
    from kohort.pipeline.ingest.wish import EndedAtOnce  # noqa: PLC0415  # as above

    try:
        yield
    except typer.Exit:
        raise
    except (KeyboardInterrupt, EndedAtOnce):
        typer.echo(
            "kohort: ended in the middle of a batch, which the next run does again", err=True
        )
        raise typer.Exit(130) from None
    except Exception as error:
        from kohort.pipeline.ingest.explaining import explain  # noqa: PLC0415  # as above

        if is_verbose:
            traceback.print_exc()
        refuse(explain(error))


def refuse(reason: str) -> NoReturn:
    typer.echo(f"kohort: {reason}", err=True)
    raise typer.Exit(1)
