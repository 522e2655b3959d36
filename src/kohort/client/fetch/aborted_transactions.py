"""Filters records of aborted transactions, from the list in the fetch response."""

from collections import deque
from collections.abc import Iterable

from kohort.types import ProducerId
from kohort.wire.api.k01_fetch import AbortedTransaction
from kohort.wire.batch_header import BatchHeader
from kohort.wire.control_batch import MarkerType, find_marker
from kohort.wire.records import Record


class AbortedTransactionFilter:
    """Call `begin` for each batch in order, and `end` for each control batch."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = deque(sorted(aborted, key=lambda each: each.first_offset))
        self._open: set[ProducerId] = set()

    def begin(self, header: BatchHeader) -> None:
        while self._to_come and self._to_come[0].first_offset <= header.last_offset:
            self._open.add(self._to_come.popleft().producer_id)

    def end(self, header: BatchHeader, records: Iterable[Record]) -> None:
        for record in records:
            marker = find_marker(record)
            if marker is not None and marker.type is MarkerType.ABORT:
                self._open.discard(header.producer_id)

    def covers(self, header: BatchHeader) -> bool:
        return header.is_transactional and header.producer_id in self._open
