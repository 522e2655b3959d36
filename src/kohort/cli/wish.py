"""What kohort serve is asked for, and a reading of it that needs no Typer.

It reads words that can only mean one thing, and never complains about the others.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from kohort.types import value


@value
class Wish:
    """The options of kohort serve that are about the node."""

    listen: str = "127.0.0.1:9092"
    data: Path = Path("kohort-data")
    set: tuple[str, ...] = ()
    config: Path | None = None
    metrics: str = ""


_KINDS: Final[dict[str, Callable[[str], Any]]] = {
    "listen": str,
    "data": Path,
    "set": str,
    "config": Path,
    "metrics": str,
}
"""What becomes of an option's text, by the option's name."""


def read_plainly(words: Iterable[str]) -> Wish | None:
    """What is wished for; None unless the words are options in full, each with what it takes."""
    given: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        option, is_joined, text = word.partition("=")
        name = option.removeprefix("--")
        if not is_joined:
            text = next(rest, "")
        if option != f"--{name}" or name not in _KINDS or not text or text.startswith("-"):
            return None
        read = _KINDS[name](text)
        given[name] = (*given.get(name, ()), read) if name == "set" else read
    return Wish(**given)
