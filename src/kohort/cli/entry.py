"""The entry point of the `kohort` command.

Importing Typer takes longer than starting a node. So `kohort serve` with ordinary options is parsed
here and needs no Typer. All other command lines are Typer's.
"""

import gc
import os
import sys
from typing import NoReturn

from kohort.cli.serve_args import ServeOptions, parse_serve_args
from kohort.extras import MissingExtra, require_extra


def main() -> NoReturn:
    options = parse_serve_args(sys.argv[2:]) if sys.argv[1:2] == ["serve"] else None
    if options is not None:
        _serve(options)
    try:
        with require_extra("kohort"):
            from kohort.cli.app import app  # noqa: PLC0415  # serve does not wait for Typer
    except MissingExtra as error:
        _exit(error, 2)
    app(prog_name="kohort")
    raise AssertionError("Typer ends the process")


def _serve(options: ServeOptions) -> NoReturn:
    # All imported objects live until the process ends, so a garbage collection during the import
    # finds nothing.
    gc.disable()
    from kohort.cli.serve_run import serve  # noqa: PLC0415  # other commands need no node

    gc.freeze()
    gc.enable()
    try:
        with require_extra("kohort serve"):
            code = serve(options)
    except MissingExtra as error:
        _exit(error, 1)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # Python flushes stdout when it exits, and would report the closed pipe once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def _exit(reason: object, code: int) -> NoReturn:
    print(f"kohort: {reason}", file=sys.stderr)
    sys.exit(code)
