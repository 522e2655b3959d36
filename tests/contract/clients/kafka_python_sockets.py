"""Closes what kafka-python forgets to close.

A client that is closed while it connects leaves that socket to the garbage collector (3.0.12),
which complains at some later moment, in some other test. So every client has its sockets written
down, by the way that kafka-python offers to proxies, and they are closed when it is.
"""

import itertools
import socket
from collections import defaultdict
from typing import Any
from urllib.parse import urlparse

from kafka.net import KafkaNetSocket

_NUMBERS = itertools.count(1)
_OPENED: defaultdict[str, list[socket.socket]] = defaultdict(list)


class _Noted(KafkaNetSocket):
    SCHEMES = ("noted",)

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
        self.proxy_url = f"noted://{self._client}"

    def close(self) -> None:
        """To be called when the client is closed. What is closed already stays so."""
        for opened in _OPENED.pop(self._client, []):
            opened.close()
