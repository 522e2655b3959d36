"""Finds an address of this machine that other machines can connect to."""

import socket
from typing import Final

_ANYWHERE: Final = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses for documentation, in no network (RFC 5737, RFC 3849): they take the default route."""

_LOOPBACK: Final = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def find_own_address(*, is_ipv6: bool = False) -> str:
    """The address with which this machine uses its default route.

    Without a default route it is the address of the host name, and without one the loopback
    address. It is not the host name itself, which other machines often cannot resolve.
    """
    family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
    return _routed_address(family) or _named_address(family) or _LOOPBACK[family]


def _routed_address(family: socket.AddressFamily) -> str:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as unsent:
            # Connecting a UDP socket selects its address and sends nothing.
            unsent.connect((_ANYWHERE[family], 9))
            address: str = unsent.getsockname()[0]
            return address
    except OSError:
        return ""


def _named_address(family: socket.AddressFamily) -> str:
    try:
        found = socket.getaddrinfo(socket.gethostname(), 0, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ""
    return next((str(each[4][0]) for each in found), "")
