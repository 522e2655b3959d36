"""The stop request, the progress and the summary of a running ingest. Pure."""

import threading

from kohort.types import value


class StopRequest:
    """Set by another thread to stop a running ingest."""

    def __init__(self) -> None:
        self.after_batch = threading.Event()
        """Stop when the running batch is written and committed to the group."""
        self.immediately = threading.Event()
        """Stop in the middle of a batch; the next run repeats it."""


class StoppedImmediately(Exception):
    """The run stopped in the middle of a batch because it was asked to."""


@value
class IngestProgress:
    """The progress of a running ingest. All counts are of this run."""

    rows: int = 0
    bad: int = 0
    batches: int = 0
    seconds: float = 0.0
    rows_per_second: float = 0.0
    """Of the last batch."""
    lag: int | None = None
    group_state: str = "starting"
    generation: int | None = None
    is_stopping: bool = False


@value
class IngestSummary:
    rows: int
    bad: int
    batches: int
    seconds: float
    lag: int | None
    is_interrupted: bool
    is_group_committed: bool
    """Whether the group's committed offsets reach the end of the table."""
    has_left: bool
    """Whether the member's process has ended, and so has left the group."""
    rows_total: int
    """Rows in the table, of all runs."""
    bad_total: int
    target: str
    data: str
    bad_data: str
    skipped: tuple[str, ...] = ()
    """Offset ranges that other members of the group read while this query was stopped."""
