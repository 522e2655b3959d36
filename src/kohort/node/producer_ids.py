"""Issues producer ids. No id is issued twice, not even after a crash.

The catalog reserves a block of ids on disk before the first of them is issued. The rest of a block
is lost when the node stops; there are 2**63 ids.
"""

from typing import Final

from kohort.log.catalog import Catalog
from kohort.types import ProducerId

_BLOCK: Final = 1000
"""Ids reserved by one write; as many as a Kafka broker gets from its controller at once."""


class ProducerIds:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._next = self._end = 0

    def take(self) -> ProducerId:
        """Return a new id. Raises StorageError if none can be reserved."""
        if self._next == self._end:
            self._next = self._catalog.reserve_producer_ids(_BLOCK)
            self._end = self._next + _BLOCK
        taken = ProducerId(self._next)
        self._next += 1
        return taken
