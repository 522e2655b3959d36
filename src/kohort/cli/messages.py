"""One-line messages of commands, on stderr."""

from collections.abc import Iterable
from typing import NoReturn

import typer


def print_stderr(message: object) -> None:
    typer.echo(f"kohort: {message}", err=True)


def fail(reason: object, exit_code: int = 1) -> NoReturn:
    print_stderr(reason)
    raise typer.Exit(exit_code)


def fail_if_any(errors: Iterable[Exception | None]) -> None:
    """Exit with 1 if at least one of several operations failed."""
    if any(error is not None for error in errors):
        raise typer.Exit(1)
