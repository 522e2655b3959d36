"""Makes the sockets of both drivers. TLS would wrap them here, before they connect."""

import socket
from typing import Any, TypeAlias

from kohort.types import Millis, value
from kohort.wire.frame import FRAME_BYTES_MAX

Address: TypeAlias = tuple[str, int]
"""Host and port of a broker."""

ResolvedAddress: TypeAlias = tuple[Any, ...]
"""One result of getaddrinfo."""


@value
class ConnectionSettings:
    client_id: str
    setup_timeout_ms: Millis
    """How long connecting and version negotiation may take."""
    receive_buffer_bytes: int = -1
    """-1 leaves the size to the operating system, here and below."""
    send_buffer_bytes: int = -1
    response_bytes_max: int = FRAME_BYTES_MAX


def open_socket(address: ResolvedAddress, settings: ConnectionSettings) -> socket.socket:
    """A socket of the right family that is not connected yet."""
    family, kind, protocol, *_ = address
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if settings.receive_buffer_bytes >= 0:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
        if settings.send_buffer_bytes >= 0:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
    except BaseException:
        opened.close()
        raise
    return opened


def reason_of(error: OSError) -> str:
    return error.strerror or str(error)
