"""Serves the control operations over HTTP, for tests in any language.

`POST /NAME` takes a JSON object, `GET /NAME?key=value` takes its values as strings. The response is
a JSON object; that of a refused operation has the field `error`. An operation may wait long. It is
cancelled when its client disconnects.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from kohort.node import log_events
from kohort.node.control.errors import ControlError
from kohort.node.control.operations import run_operation
from kohort.node.http_server import HttpConnection, HttpRequest, HttpServer, HttpServerLimits
from kohort.settings.hosts import AllowedHosts

if TYPE_CHECKING:
    from kohort.node.server import Server

_LIMITS: Final = HttpServerLimits(connections_max=64, body_bytes_max=256 * 1024)
"""Each connection may have one operation that waits."""

_FROM_OTHER_SITES: Final = ("cross-site", "same-site")
"""What browsers send in Sec-Fetch-Site if another web site has caused the request."""


class ControlServer:
    def __init__(self, server: "Server", hosts: AllowedHosts) -> None:
        self._server = server
        self._hosts = hosts
        self._tasks: set[asyncio.Task[None]] = set()
        """asyncio itself keeps only weak references to tasks."""
        self.http = HttpServer(hosts, _LIMITS, self._handle, purpose="control operations are")

    def _handle(self, connection: HttpConnection, request: HttpRequest) -> None:
        try:
            self._check_origin(request)
            body = _read_body(request)
        except _BadRequest as error:
            _respond(connection, error.status, {"error": str(error)})
            return
        connection.wait()
        running = self._run(connection, request.path.removeprefix("/"), body)
        task = asyncio.get_running_loop().create_task(running)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        connection.on_lost = task.cancel

    def _check_origin(self, request: HttpRequest) -> None:
        """A web page of another site must not reset the node of a developer who visits it."""
        host, origin = request.find_header("host") or "", request.find_header("origin")
        is_foreign = "origin" in request.headers and (
            origin is None or not self._hosts.is_own_origin(origin, host)
        )
        if is_foreign or request.find_header("sec-fetch-site") in _FROM_OTHER_SITES:
            raise _BadRequest("403 Forbidden", "requests of other web sites are refused")

    async def _run(self, connection: HttpConnection, name: str, body: Mapping[str, Any]) -> None:
        try:
            answer, status = await run_operation(self._server, name, body), "200 OK"
        except ControlError as refusal:
            answer = {"error": str(refusal), **refusal.details}
            status = refusal.http_status
        except Exception as error:  # it affects only this request
            log_events.internal_error("internal-error", peer=f"control/{name}", error=error)
            answer = {"error": f"internal error ({type(error).__name__}: {error}); see the log"}
            status = "500 Internal Server Error"
        connection.on_lost = None
        _respond(connection, status, answer)


class _BadRequest(Exception):
    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def _read_body(request: HttpRequest) -> dict[str, Any]:
    if request.method not in ("GET", "POST"):
        raise _BadRequest("405 Method Not Allowed", f"{request.method}: use GET or POST")
    pairs = parse_qsl(request.query, keep_blank_values=True)
    body: dict[str, Any] = dict(pairs)
    if len(body) < len(pairs):
        raise _BadRequest("400 Bad Request", "the query has the same name twice")
    if not request.body.strip():
        return body
    try:
        given = json.loads(request.body)
    except ValueError as error:
        raise _BadRequest("400 Bad Request", f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise _BadRequest("400 Bad Request", "the body is not a JSON object")
    return body | given


def _respond(connection: HttpConnection, status: str, answer: Mapping[str, Any]) -> None:
    text = json.dumps(answer) + "\n"
    connection.respond(status, "application/json", text.encode())
