"""Web console for consumer groups, rebalances and lag, with live updates and JSON.

    with Console("localhost:9092", listen="127.0.0.1:8080") as console:
        print(console.url)

It is a client of any Kafka cluster and never accesses a node's internals. Pages read from
`kohort.admin.group_monitor`; writes go through `kohort.admin`. Every page is a function that
returns a `Page`: data and a template. Each page has three URLs: HTML, JSON (`.json`) and
server-sent events with updates (`.feed`).

All text from the cluster is escaped, and the Content-Security-Policy allows only the console's own
scripts.
"""

from typing import TYPE_CHECKING, Any

from kohort.extras import require_extra

if TYPE_CHECKING:
    from kohort.console.server import CannotListen, Console

__all__ = ["CannotListen", "Console"]


def __getattr__(name: str) -> Any:
    """Import the web libraries on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with require_extra("kohort.console"):
        from kohort.console import server  # noqa: PLC0415  # lazy import
    return getattr(server, name)
