"""Host names into addresses, without waiting: a name server may take long, and heartbeats may not.

Each look-up has a thread of its own for as long as it takes, since nothing can hurry it.
"""

import socket
import threading
from collections.abc import Callable
from typing import Any

from kohort.client.options import Address

Places = list[tuple[Any, ...]]
"""As getaddrinfo tells them; several where a name has several addresses."""


class UnknownName(Exception):
    """The name has no address, or nobody told it; says why."""


class Names:
    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called, from another thread, whenever a look-up has ended."""
        self._wake = wake
        self._pending: set[Address] = set()
        self._found: dict[Address, Places | UnknownName] = {}

    def is_pending(self, address: Address) -> bool:
        return address in self._pending and address not in self._found

    def find(self, address: Address) -> Places | None:
        """None while it is being looked up. What was found is told once: names may move."""
        if address not in self._pending:
            numeric = _read_number(address)
            if numeric is not None:
                return numeric
            self._pending.add(address)
            work = threading.Thread(target=self._look_up, args=(address,), daemon=True)
            work.start()
        found = self._found.pop(address, None)
        if found is None:
            return None
        self._pending.discard(address)
        if isinstance(found, UnknownName):
            raise found
        return found

    def _look_up(self, address: Address) -> None:
        host, port = address
        try:
            found: Places | UnknownName = list(
                socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )
        except (OSError, UnicodeError) as error:
            found = UnknownName(f"its name cannot be resolved: {error}")
        self._found[address] = found
        self._wake()


def _read_number(address: Address) -> Places | None:
    """Of an address that is no name, and needs no looking up."""
    host, port = address
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    return list(found)
