"""Options, signal handling and error reports that all Spark commands share."""

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from kohort.cli.messages import fail, print_stderr
from kohort.pipeline.ingest.error_text import explain
from kohort.pipeline.ingest.run_status import StoppedImmediately, StopRequest

Master = Annotated[
    str, typer.Option(metavar="URL", help="Spark master: local[*], spark://HOST:PORT, yarn.")
]
ConsumerSettings = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Consumer option; may be repeated."),
]
SparkSettings = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Spark setting; may be repeated."),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show Spark's log and stack traces.")]


@contextmanager
def stop_on_signals() -> Iterator[tuple[StopRequest, Callable[[], None]]]:
    """Ctrl-C stops after the batch, a second one immediately, a third as without a handler.

    The second value installs the handlers again, because Spark replaces them when it starts.
    """
    stop = StopRequest()

    def handle(_number: int, _frame: object) -> None:
        if stop.immediately.is_set():
            raise KeyboardInterrupt
        if stop.after_batch.is_set():
            stop.immediately.set()
        stop.after_batch.set()

    def install() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, handle)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    install()
    try:
        yield stop, install
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def report_errors_in_one_line(*, is_verbose: bool) -> Iterator[None]:
    try:
        yield
    except typer.Exit:
        raise
    except (KeyboardInterrupt, StoppedImmediately):
        print_stderr("stopped in the middle of a batch; the next run repeats it")
        raise typer.Exit(130) from None
    except Exception as error:
        if is_verbose:
            traceback.print_exc()
        fail(explain(error))
