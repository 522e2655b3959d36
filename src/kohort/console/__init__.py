"""The web page of groups, rebalances and lag, live; each page has a JSON twin.

    with Console("localhost:9092", listen="127.0.0.1:8080") as console:
        print(console.url)

It is an ordinary client of any Kafka and never looks inside a node. It holds no rule: pages ask the
picture (`kohort.admin.picture`), writes ask `kohort.admin`. Every page is one function that gives a
`Page`: what it says, as values, and the template that says it. From that come three addresses: the
page itself, its JSON twin (`.json`), and the feed that keeps it up to date (`.feed`).

Whatever a cluster says is text here and nothing else: names, reasons and records are escaped
wherever they stand, and the pages forbid themselves all scripts but their own.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kohort.console.server import CannotListen, Console

__all__ = ["CannotListen", "Console"]


def __getattr__(name: str) -> Any:
    """The web libraries are loaded when a console is wanted."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kohort.console import server  # noqa: PLC0415  # as said

    return getattr(server, name)
