"""Ids for idempotent producers: none is ever given twice, not even across a crash.

The catalog reserves them on the disk a block at a time, before the first of a block is given. What
is left of a block when the node stops is lost, and there are 2**63 to lose.
"""

from typing import Final

from kohort.log.catalog import Catalog
from kohort.types import ProducerId

_BLOCK: Final = 1000
"""Ids reserved by one write. As many as Kafka's brokers get from their controller at once."""


class ProducerIds:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._next = self._end = 0

    def take(self) -> ProducerId:
        """A new id; StorageError where none can be reserved."""
        if self._next == self._end:
            self._next = self._catalog.reserve_producer_ids(_BLOCK)
            self._end = self._next + _BLOCK
        taken = ProducerId(self._next)
        self._next += 1
        return taken
