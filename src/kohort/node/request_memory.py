"""The memory of large requests that are being received or handled, for all connections together.

A connection reserves the whole size of a large request when it has received its length, and is not
read from until the reservation succeeds. Small requests need none: a connection receives at most
one read of them before they are handled, so they never wait for the large ones of other clients.
"""

from typing import Protocol


class MemoryWaiter(Protocol):
    def memory_reserved(self) -> None:
        """The reservation that had to wait has succeeded."""


class RequestMemory:
    """Reservations are granted in the order in which they were asked for."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._reserved: dict[MemoryWaiter, int] = {}
        self._waiting: dict[MemoryWaiter, int] = {}
        self.reserved_bytes = 0

    def reserve(self, owner: MemoryWaiter, size: int) -> bool:
        """Replace the owner's reservation. If there is not enough left, return False, and call
        `memory_reserved` later."""
        self.release(owner)
        if not self._waiting and self._fits(size):
            self._grant(owner, size)
            return True
        self._waiting[owner] = size
        return False

    def release(self, owner: MemoryWaiter) -> None:
        """Give up the owner's reservation, and grant those that wait for it."""
        self._waiting.pop(owner, None)
        self.reserved_bytes -= self._reserved.pop(owner, 0)
        while self._waiting:
            waiter, size = next(iter(self._waiting.items()))
            if not self._fits(size):
                return
            del self._waiting[waiter]
            self._grant(waiter, size)
            waiter.memory_reserved()

    def _fits(self, size: int) -> bool:
        """A request that is larger than the limit fits if it is the only one."""
        return not self._reserved or self.reserved_bytes + size <= self._bytes_max

    def _grant(self, owner: MemoryWaiter, size: int) -> None:
        self._reserved[owner] = size
        self.reserved_bytes += size
