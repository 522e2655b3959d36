"""Write topics to partitioned Parquet tables, each record exactly once, even after a crash.

    from kohort.pipeline import ingest
    ingest.read(spark, "DIR")

`run` does what `kohort pipeline ingest` does. `read` and `read_bad` return what it wrote.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kohort.pipeline.ingest.ingest_run import run
    from kohort.pipeline.ingest.options import IngestOptions
    from kohort.pipeline.ingest.run_status import IngestProgress, IngestSummary, StopRequest
    from kohort.pipeline.ingest.table_reader import read, read_bad

__all__ = [
    "IngestOptions",
    "IngestProgress",
    "IngestSummary",
    "StopRequest",
    "read",
    "read_bad",
    "run",
]

_MODULES = {
    "IngestOptions": "options",
    "IngestProgress": "run_status",
    "IngestSummary": "run_status",
    "StopRequest": "run_status",
    "read": "table_reader",
    "read_bad": "table_reader",
    "run": "ingest_run",
}


def __getattr__(name: str) -> Any:
    """Import public names lazily: the options must be importable without PySpark."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # needed only here

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
