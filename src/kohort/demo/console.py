"""Where the demo's console is: decided before anything else starts, so that a busy port is told at
once.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kohort.console.server import Console

FORENSICS: Final = "forensics"
"""The directory of the tables, beside all others of a demo."""

PORT: Final = 8080
_HOST: Final = "127.0.0.1"
_TRIED: Final = 100


class NoConsole(Exception):
    """There can be none; one sentence says why."""


def bind_console(listen: str | None, directory: Path) -> "Console":
    """At HOST:PORT; where nobody asks for one, at the first free port. It is not started yet."""
    try:
        from kohort.console.server import Console  # noqa: PLC0415  # it needs an extra
    except ModuleNotFoundError as error:
        raise NoConsole(
            f"{error.name} cannot be found: install Kohort with its extra named console, "
            "as in pip install 'kohort[console]'"
        ) from None
    from kohort.admin.errors import WrongWish  # noqa: PLC0415  # as above
    from kohort.console.server import CannotListen  # noqa: PLC0415

    tables = str(directory / FORENSICS)
    wanted = [listen] if listen else [f"{_HOST}:{PORT + more}" for more in range(_TRIED)]
    reason = ""
    for address in wanted:
        try:
            # Where the node is will be known when it has started.
            return Console("", listen=address, forensics=tables)
        except WrongWish as error:
            raise NoConsole(f"--listen {error}") from None
        except CannotListen as error:
            reason = str(error)
    raise NoConsole(reason if listen else f"no port is free: {reason}")
