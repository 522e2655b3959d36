"""Closes sockets that kafka-python leaks.

A client that is closed while it connects leaves the socket to the garbage collector (3.0.12), which
raises a ResourceWarning later, in another test. So every client records its sockets with
kafka-python's proxy interface, and closes them with the client.
"""

import itertools
import socket
from collections import defaultdict
from typing import Any
from urllib.parse import urlparse

from kafka.net import KafkaNetSocket

_NUMBERS = itertools.count(1)
_OPENED: defaultdict[str, list[socket.socket]] = defaultdict(list)


class _RecordedSocket(KafkaNetSocket):
    SCHEMES = ("recorded",)

    def __init__(self, proxy_url: str) -> None:
        super().__init__(proxy_url)
        self._client = urlparse(proxy_url).netloc

    def socket(self, *arguments: Any) -> socket.socket:
        opened: socket.socket = super().socket(*arguments)
        _OPENED[self._client].append(opened)
        return opened


class Sockets:
    """The sockets of one client, which is made with `proxy_url`."""

    def __init__(self) -> None:
        self._client = f"{next(_NUMBERS)}"
        self.proxy_url = f"recorded://{self._client}"

    def close(self) -> None:
        """Call this after the client is closed."""
        for opened in _OPENED.pop(self._client, []):
            opened.close()
