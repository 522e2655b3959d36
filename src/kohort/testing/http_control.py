"""Requests control operations over HTTP, as `kohort serve --control` serves them."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

from kohort.node.control.errors import ControlError

_CONNECT_S: Final = 10.0


class HttpControl:
    """Implements `ControlChannel`. Each request has its own connection, so any thread may ask."""

    def __init__(self, url: str) -> None:
        """`url` is http://HOST:PORT."""
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None or parts.port is None:
            raise ValueError(f"{url!r} is not the URL of a node: expected http://HOST:PORT")
        self.url = url
        self._host, self._port = parts.hostname, parts.port

    def request(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises ControlError if the operation is refused or the node does not answer."""
        # Imported late: a node on a thread does not need it, and starts faster without it.
        from http.client import HTTPConnection, HTTPException  # noqa: PLC0415

        connection = HTTPConnection(self._host, self._port, timeout=_CONNECT_S)
        try:
            connection.connect()
            # An operation may wait as long as its caller has asked for.
            connection.sock.settimeout(None)
            path = f"/{quote(operation, safe='')}"
            content = {"Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body).encode(), content)
            response = connection.getresponse()
            status, text = response.status, response.read()
        except (OSError, HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise ControlError(
                f"cannot {operation}: the node at {self.url} does not answer ({reason})"
            ) from error
        finally:
            connection.close()
        return _read_answer(status, text)


def _read_answer(status: int, text: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ControlError(f"HTTP status {status}: {text.decode('utf-8', 'replace').strip()}")
    if status == HTTPStatus.OK:
        return answer
    message = answer.pop("error", f"HTTP status {status}")
    raise ControlError(str(message), answer)
