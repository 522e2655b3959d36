"""Resolves host names without blocking: a name server can be slow, and heartbeats cannot wait.

Each lookup runs on a thread of its own, because getaddrinfo has no timeout.
"""

import socket
import threading
from collections.abc import Callable

from kohort.protocol.errors import ConnectFailed
from kohort.protocol.sockets import Address, ResolvedAddress


class Resolver:
    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called from the lookup's thread when a lookup has ended."""
        self._wake = wake
        self._pending: set[Address] = set()
        self._found: dict[Address, list[ResolvedAddress] | ConnectFailed] = {}

    def is_pending(self, address: Address) -> bool:
        return address in self._pending and address not in self._found

    def find(self, address: Address) -> list[ResolvedAddress] | None:
        """None while the lookup runs. A result is given once, because names can move."""
        if address not in self._pending:
            numeric = _resolve_numeric(address)
            if numeric is not None:
                return numeric
            self._pending.add(address)
            lookup = threading.Thread(target=self._look_up, args=(address,), daemon=True)
            lookup.start()
        found = self._found.pop(address, None)
        if found is None:
            return None
        self._pending.discard(address)
        if isinstance(found, ConnectFailed):
            raise found
        return found

    def _look_up(self, address: Address) -> None:
        try:
            self._found[address] = resolve(address)
        except ConnectFailed as error:
            self._found[address] = error
        self._wake()


def resolve(address: Address) -> list[ResolvedAddress]:
    """All addresses of a host name; blocks."""
    try:
        return list(socket.getaddrinfo(*address, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        raise ConnectFailed(f"cannot resolve the host name: {error}") from None


def _resolve_numeric(address: Address) -> list[ResolvedAddress] | None:
    """An IP address needs no lookup; None for a host name."""
    try:
        flags = socket.AI_NUMERICHOST
        return list(socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=flags))
    except (OSError, UnicodeError):
        return None
