"""Binds the demo's console to a port before other parts start, so that a busy port fails fast."""

from pathlib import Path
from typing import Final

from kohort.admin.errors import InvalidRequest
from kohort.console.server import CannotListen, Console

FORENSICS: Final = "forensics"
"""Directory of the forensics tables within the demo's directory."""

PORT: Final = 8080
_HOST: Final = "127.0.0.1"
_PORTS_TRIED: Final = 100


class ConsoleUnavailable(Exception):
    """The console cannot listen. The message is one sentence."""


def bind_console(listen: str | None, directory: Path) -> Console:
    """Bind to HOST:PORT, or to the first free port from 8080. The console is not started yet."""
    tables = str(directory / FORENSICS)
    addresses = [listen] if listen else [f"{_HOST}:{PORT + more}" for more in range(_PORTS_TRIED)]
    reason = ""
    for address in addresses:
        try:
            # The bootstrap servers are set when the node has started.
            return Console("", listen=address, forensics=tables)
        except InvalidRequest as error:
            raise ConsoleUnavailable(str(error)) from None
        except CannotListen as error:
            reason = str(error)
    raise ConsoleUnavailable(reason if listen else f"no free port: {reason}")
