"""Decode a segment without the records of aborted and open transactions.

The marker of a transaction comes after its records, perhaps in a later segment. Markers are read
from the log itself, so a copy without `.txnindex` files is enough. The records of an open
transaction are read once it is committed.
"""

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kohort.pipeline import kernel
from kohort.pipeline.forensics.decoders.segment_decoder import (
    DamagedLog,
    Window,
    records_of,
    windows,
)
from kohort.pipeline.forensics.decoders.segment_files import SegmentFile, list_following
from kohort.wire.batch_header import CONTROL_FLAG, TRANSACTIONAL_FLAG
from kohort.wire.control_batch import MarkerType


def decode_segment(segment: SegmentFile) -> Iterator[pa.RecordBatch]:
    """The committed records of a segment, with the columns of bronze; raises DamagedLog."""
    outcomes: TransactionOutcomes | None = None
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


def find_outcomes(segment: SegmentFile) -> "TransactionOutcomes":
    """The outcomes of the transactions that have records in this segment."""
    outcomes = TransactionOutcomes()
    for window in windows(segment, checks_crcs=False):
        outcomes.read(segment, window)
    if not outcomes.has_open:
        return outcomes
    outcomes.ignore_new_transactions()
    for later in list_following(segment):
        try:
            for window in windows(later, checks_crcs=False):
                outcomes.read(later, window)
                if not outcomes.has_open:
                    return outcomes
        except DamagedLog:
            # The task of that segment reports the damage; later markers are unknown here.
            return outcomes
    return outcomes


class TransactionOutcomes:
    """Collects where each producer's transactions ended, and whether they were committed."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[list[int], list[bool]]] = {}
        self._open: set[int] = set()
        self._may_begin = True

    @property
    def has_open(self) -> bool:
        return bool(self._open)

    def ignore_new_transactions(self) -> None:
        """Ignore transactions that start after this call."""
        self._may_begin = False

    def read(self, segment: SegmentFile, window: Window) -> None:
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
    segment: SegmentFile, window: Window, control: kernel.Numbers
) -> Iterator[tuple[int, int]]:
    """The base offsets and types of transaction markers."""
    for found in records_of(segment, window, control):
        records = found.records
        long_enough = records[:, records[kernel.KEY_SIZE] >= 4]
        content: NDArray[np.uint8] = np.frombuffer(found.buffer, dtype=np.uint8)
        kind_at = long_enough[kernel.KEY_AT] + 2
        kinds = content[kind_at].astype(np.int64) << 8 | content[kind_at + 1]
        for offset, kind in zip(long_enough[kernel.OFFSET], kinds, strict=True):
            if kind in (MarkerType.ABORT, MarkerType.COMMIT):
                yield int(offset), int(kind)
