"""The options of `kohort serve`, and a parser for them that needs no Typer.

The parser accepts only unambiguous command lines. It leaves all others, and all errors, to Typer.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from kohort.types import value


@value
class ServeOptions:
    listen: str = "127.0.0.1:9092"
    data: Path = Path("kohort-data")
    set: tuple[str, ...] = ()
    config: Path | None = None
    metrics: str = ""
    control: str = ""
    ready_file: Path | None = None
    stop_at_eof: str = ""
    advertise: str = ""
    allowed_host: tuple[str, ...] = ()


_CONVERTERS: Final[dict[str, Callable[[str], Any]]] = {
    "listen": str,
    "advertise": str,
    "data": Path,
    "set": str,
    "config": Path,
    "metrics": str,
    "control": str,
    "ready-file": Path,
    "stop-at-eof": str,
    "allowed-host": str,
}

_REPEATED: Final = ("set", "allowed-host")


def parse_serve_args(args: Iterable[str]) -> ServeOptions | None:
    """Return None unless every argument is a full option name with a value."""
    given: dict[str, Any] = {}
    rest = iter(args)
    for arg in rest:
        option, has_equals, text = arg.partition("=")
        name = option.removeprefix("--")
        if not has_equals:
            text = next(rest, "")
        if option != f"--{name}" or name not in _CONVERTERS or not text or text.startswith("-"):
            return None
        converted = _CONVERTERS[name](text)
        field = name.replace("-", "_")
        given[field] = (*given.get(field, ()), converted) if name in _REPEATED else converted
    return ServeOptions(**given)
