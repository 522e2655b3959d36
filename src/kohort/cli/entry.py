"""Where the kohort command begins, and who reads its words.

Typer takes longer to load than a node to start, and many a node is started by somebody who waits
for it. So `kohort serve` reads plain words by itself. All others are Typer's.
"""

import gc
import sys
from typing import NoReturn

from kohort.cli.wish import Wish, read_plainly


def main() -> NoReturn:
    wish = read_plainly(sys.argv[2:]) if sys.argv[1:2] == ["serve"] else None
    if wish is not None:
        _serve(wish)
    from kohort.cli.app import app  # noqa: PLC0415  # see above

    app(prog_name="kohort")
    raise AssertionError("Typer ends the process")


def _serve(wish: Wish) -> NoReturn:
    try:
        # All that is loaded stays: while it grows, looking through it for garbage is for nothing.
        gc.disable()
        from kohort.cli.serving import serve  # noqa: PLC0415  # it loads the node

        gc.freeze()
        gc.enable()
        sys.exit(serve(wish))
    except (Exception, KeyboardInterrupt) as error:
        _end_as_typer_would(error)


def _end_as_typer_would(error: BaseException) -> NoReturn:
    """However the words were read, a broken pipe, a Ctrl-C and a bug look the same from outside."""
    import typer  # noqa: PLC0415  # see above

    ending = typer.Typer(pretty_exceptions_show_locals=False)

    @ending.command()
    def fail() -> None:
        raise error

    ending(args=[])
    raise AssertionError("Typer ends the process")
