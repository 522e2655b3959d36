"""Which records of transactions count: those whose transaction was committed.

How a transaction ended is told by its marker, which comes after its records, perhaps in a later
segment. Markers are in the log itself, so that a copy without its `.txnindex` files tells as much.
A transaction that is still open has not happened yet: its records come once it is committed.
"""

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kohort.pipeline import kernel
from kohort.pipeline.forensics.decoding.files import Segment, list_following
from kohort.pipeline.forensics.decoding.segments import DamagedLog, Window, records_of, windows
from kohort.wire.batch_header import CONTROL_FLAG, TRANSACTIONAL_FLAG
from kohort.wire.control import MarkerType


def decode_segment(segment: Segment) -> Iterator[pa.RecordBatch]:
    """The records of a segment that count, as bronze has them; DamagedLog where it is damaged."""
    outcomes: Outcomes | None = None
    for window in windows(segment):
        flags = window.batches[:, kernel.ATTRIBUTES]
        is_wanted = (flags & CONTROL_FLAG == 0) & (window.batches[:, kernel.COUNT] > 0)
        in_transaction = np.nonzero(is_wanted & (flags & TRANSACTIONAL_FLAG != 0))[0]
        if len(in_transaction):
            outcomes = outcomes or find_outcomes(segment)
            for index in in_transaction:
                row = window.batches[index]
                is_wanted[index] = outcomes.is_committed(
                    row[kernel.PRODUCER_ID], row[kernel.BASE_OFFSET]
                )
        for found in records_of(segment, window, window.batches[is_wanted]):
            if found.records.shape[1]:
                yield found.arrow(segment)


def find_outcomes(segment: Segment) -> "Outcomes":
    """How the transactions ended that have records in this segment."""
    outcomes = Outcomes()
    for window in windows(segment, checks_crcs=False):
        outcomes.read(segment, window)
    if not outcomes.has_open:
        return outcomes
    outcomes.begin_nothing_more()
    for later in list_following(segment):
        try:
            for window in windows(later, checks_crcs=False):
                outcomes.read(later, window)
                if not outcomes.has_open:
                    return outcomes
        except DamagedLog:
            # Whoever reads that segment tells of it; what lies behind cannot be known here.
            return outcomes
    return outcomes


class Outcomes:
    """Follows a reader over batches and notes where each producer's transactions ended."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[list[int], list[bool]]] = {}
        self._open: set[int] = set()
        self._may_begin = True

    @property
    def has_open(self) -> bool:
        return bool(self._open)

    def begin_nothing_more(self) -> None:
        """From now on only the ends of transactions matter that have begun already."""
        self._may_begin = False

    def read(self, segment: Segment, window: Window) -> None:
        flags = window.batches[:, kernel.ATTRIBUTES]
        rows = window.batches[flags & TRANSACTIONAL_FLAG != 0]
        is_control = rows[:, kernel.ATTRIBUTES] & CONTROL_FLAG != 0
        kinds = dict(_markers(segment, window, rows[is_control]))
        for row in rows:
            producer, offset = int(row[kernel.PRODUCER_ID]), int(row[kernel.BASE_OFFSET])
            if not row[kernel.ATTRIBUTES] & CONTROL_FLAG:
                if self._may_begin:
                    self._open.add(producer)
            elif offset in kinds:
                offsets, commits = self._ends.setdefault(producer, ([], []))
                offsets.append(offset)
                commits.append(kinds[offset] == MarkerType.COMMIT)
                self._open.discard(producer)

    def is_committed(self, producer_id: int, offset: int) -> bool:
        """Whether the transaction this producer was in at this offset was committed."""
        offsets, commits = self._ends.get(producer_id, ([], []))
        index = bisect_right(offsets, offset)
        return index < len(offsets) and commits[index]


def _markers(
    segment: Segment, window: Window, control: kernel.Numbers
) -> Iterator[tuple[int, int]]:
    """The base offsets of batches that end transactions, and how they do it."""
    for found in records_of(segment, window, control):
        records = found.records
        long_enough = records[:, records[kernel.KEY_SIZE] >= 4]
        content: NDArray[np.uint8] = np.frombuffer(found.buffer, dtype=np.uint8)
        kind_at = long_enough[kernel.KEY_AT] + 2
        kinds = content[kind_at].astype(np.int64) << 8 | content[kind_at + 1]
        for offset, kind in zip(long_enough[kernel.OFFSET], kinds, strict=True):
            if kind in (MarkerType.ABORT, MarkerType.COMMIT):
                yield int(offset), int(kind)
