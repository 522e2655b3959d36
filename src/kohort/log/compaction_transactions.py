"""What compaction must know of transactions: whose records count, and which markers still matter.

A marker stays as long as records of its transaction do, and then for as long as a tombstone.
"""

from collections.abc import Sequence

from kohort.log.index import AbortedTransaction
from kohort.types import ProducerId
from kohort.wire.batch import Batch, BatchHeader
from kohort.wire.control import MarkerType, find_marker
from kohort.wire.errors import MalformedMessage


class TransactionFilter:
    """Shown every batch in order of offsets."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[ProducerId, AbortedTransaction] = {}
        self._seen: set[ProducerId] = set()
        self._kept: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch of data does not count."""
        self._advance(header)
        if not header.is_transactional:
            return False
        self._seen.add(header.producer_id)
        return header.producer_id in self._aborted

    def end(self, batch: Batch) -> bool:
        """For a control batch: whether no record of its transaction was seen before it."""
        header = batch.header
        self._advance(header)
        if not batch.records:
            return True
        try:
            marker = find_marker(batch.records[0])
        except MalformedMessage:
            marker = None
        if marker is None:
            return False
        was_seen = header.producer_id in self._seen
        self._seen.discard(header.producer_id)
        if marker.type is MarkerType.ABORT:
            aborted = self._aborted.pop(header.producer_id, None)
            if aborted is not None and was_seen:
                self._kept.append(aborted)
        return not was_seen

    def take_kept(self) -> list[AbortedTransaction]:
        """Aborted transactions whose markers stay, since the last call."""
        kept, self._kept = self._kept, []
        return kept

    def _advance(self, header: BatchHeader) -> None:
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            aborted = self._coming.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)
