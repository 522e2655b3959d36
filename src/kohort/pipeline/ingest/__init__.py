"""Topics into partitioned Parquet: each record once, whatever is killed in between.

    from kohort.pipeline import ingest
    ingest.read(spark, "DIR")

`run` does what `kohort pipeline ingest` does; `read` and `read_bad` give what it kept.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kohort.pipeline.ingest.reading import read, read_bad
    from kohort.pipeline.ingest.running import run
    from kohort.pipeline.ingest.wish import Ending, Progress, Summary, Wish

__all__ = ["Ending", "Progress", "Summary", "Wish", "read", "read_bad", "run"]

_HOMES = {
    "Ending": "wish",
    "Progress": "wish",
    "Summary": "wish",
    "Wish": "wish",
    "read": "reading",
    "read_bad": "reading",
    "run": "running",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: what is pure is there without a Spark."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # for the same reason

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
