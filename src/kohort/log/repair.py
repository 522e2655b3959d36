"""What the log reports about damaged files: repairs, and what cannot be repaired.

The log itself writes no messages: `Catalog.open` returns the values of the start, and later ones go
to `Catalog.on_repair`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from kohort.types import value


class RepairKind(StrEnum):
    """Each is also the name of the node's log event."""

    TAIL_CUT = "tail-cut"
    """Bytes were removed from the end of a log."""
    FILE_REPAIRED = "file-repaired"
    """A file was rebuilt, replaced or renamed; no record was lost."""
    BATCH_DAMAGED = "batch-damaged"
    """Stored records cannot be read. The file is not changed."""
    DATA_LOSS_ACCEPTED = "data-loss-accepted"
    """Records are missing, and the operator has given them up."""
    PARTITION_REFUSED = "partition-refused"
    """A partition is not served."""


@value
class Repair:
    path: str
    position: int = 0
    bytes_truncated: int = 0
    """For BATCH_DAMAGED the number of bytes that cannot be read."""
    reason: str
    kind: RepairKind = RepairKind.FILE_REPAIRED


OnRepair: TypeAlias = Callable[[Repair], None]


def ignore_repair(_: Repair) -> None:
    """For segments that belong to no log."""
