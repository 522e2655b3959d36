"""One connection to one broker: requests out, answers in, and which belongs to which.

It first agrees with the broker on versions. It never waits: whoever holds it says when its socket
can be read or written. Anything that is not the answer to what was asked ends it.
"""

import os
import socket
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from kohort.client.errors import UnsupportedBroker
from kohort.client.network.frames import BadFrame, FrameBuffer
from kohort.client.network.requests import VERSIONS, Request
from kohort.client.options import Options
from kohort.types import ErrorCode, Millis
from kohort.wire.api import find_api
from kohort.wire.api.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.errors import MalformedMessage
from kohort.wire.frame import FRAME_BYTES_MAX
from kohort.wire.schema import schema_of

_API_VERSIONS: Final = 18
_GREETING_VERSION: Final = 3


class Phase(Enum):
    CONNECTING = auto()
    GREETING = auto()
    """Which versions the broker speaks is asked."""
    OPEN = auto()


class Hangup(Exception):
    """The connection is of no more use; says why."""


@dataclass(slots=True, eq=False)
class Errand:
    """A request, from being given to the network until it is answered."""

    request: Request
    ends_at: Millis


@dataclass(slots=True, eq=False)
class _Sent:
    correlation_id: int
    api_key: int
    version: int
    errand: Errand | None
    """None for our own greeting."""


class Connection:
    def __init__(self, places: list[tuple[Any, ...]], options: Options, now: Millis) -> None:
        """`places` are what getaddrinfo has found for one name: the first that answers will do."""
        self._options = options
        self._places = deque(places)
        self._phase = Phase.CONNECTING
        self._must_open_by = Millis(now + options.socket_connection_setup_timeout_ms)
        self._used_at = now
        self._buffer = FrameBuffer(max(FRAME_BYTES_MAX, 2 * options.fetch_max_bytes))
        self._versions: dict[int, tuple[int, int]] = {}
        self._waiting: deque[Errand] = deque()
        self._sent: deque[_Sent] = deque()
        self._unwritten = bytearray()
        self._correlation_id = 0
        self.socket = self._connect()

    @property
    def is_open(self) -> bool:
        return self._phase is Phase.OPEN

    @property
    def wants_to_write(self) -> bool:
        return self._phase is Phase.CONNECTING or bool(self._unwritten)

    def deadline(self) -> Millis:
        """When it must be looked at, if nothing is heard before."""
        moments = [errand.ends_at for errand in self._errands()]
        if self._phase is not Phase.OPEN:
            moments.append(self._must_open_by)
        if not moments:
            return Millis(self._used_at + self._options.connections_max_idle_ms)
        return min(moments)

    def check(self, now: Millis) -> list[Errand]:
        """Those whose time is up, after which order is lost; Hangup where nothing can be saved."""
        if self._phase is not Phase.OPEN and now >= self._must_open_by:
            raise Hangup("connecting took too long")
        errands = list(self._errands())
        if not errands and now >= self.deadline():
            raise Hangup("it was idle")
        return [errand for errand in errands if now >= errand.ends_at]

    # Connecting

    def _connect(self) -> socket.socket:
        """Begin with the next address; Hangup where none is left."""
        reason = "its name has no address"
        while self._places:
            family, kind, protocol, _, address = self._places.popleft()
            opened = socket.socket(family, kind, protocol)
            opened.settimeout(0)
            try:
                self._configure(opened)
                opened.connect(address)
            except BlockingIOError:
                return opened
            except OSError as error:
                opened.close()
                reason = _why(error)
            else:
                return opened
        raise Hangup(reason)

    def _configure(self, opened: socket.socket) -> None:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._options.receive_buffer_bytes >= 0:
            size = self._options.receive_buffer_bytes
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        if self._options.send_buffer_bytes >= 0:
            size = self._options.send_buffer_bytes
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)

    def try_next(self) -> bool:
        """Where one address did not answer, another of the same name may."""
        if self._phase is not Phase.CONNECTING or not self._places:
            return False
        self.socket.close()
        self.socket = self._connect()
        return True

    # Sending

    def send(self, errand: Errand, now: Millis) -> None:
        """May raise UnsupportedBroker, which concerns this request alone."""
        self._used_at = now
        if self._phase is Phase.OPEN:
            self._write(errand)
        else:
            self._waiting.append(errand)

    def _write(self, errand: Errand) -> None:
        body = errand.request.body
        api_key = schema_of(type(body)).api_key
        assert api_key is not None
        chosen = self._choose(api_key, type(body), errand.request.version_max)
        self._encode(body, api_key, chosen, errand)

    def _encode(self, body: object, api_key: int, spoken: int, errand: Errand | None) -> None:
        self._correlation_id += 1
        number = self._correlation_id
        self._unwritten += encode_request(body, spoken, number, self._options.client_id)
        self._sent.append(_Sent(number, api_key, spoken, errand))

    def _choose(self, api_key: int, body_type: type, version_max: int | None) -> int:
        """The newest version that both speak and this body can be said in."""
        least, most = VERSIONS[body_type]
        known = self._versions.get(api_key)
        if known is not None:
            newest = min(most, known[1], most if version_max is None else version_max)
            if newest >= max(least, known[0]):
                return newest
        api = find_api(api_key)
        assert api is not None
        theirs = "not at all" if known is None else f"in versions {known[0]} to {known[1]}"
        raise UnsupportedBroker(
            f"{api.name} is needed in versions {least} to {most}; the broker speaks it {theirs}"
        )

    # Being ready

    def on_writable(self) -> None:
        """It is connected, or can take more."""
        if self._phase is Phase.CONNECTING:
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise Hangup(os.strerror(code))
            self._greet(_GREETING_VERSION)
        self.flush()

    def flush(self) -> None:
        if not self._unwritten:
            return
        try:
            written = self.socket.send(self._unwritten)
        except BlockingIOError:
            return
        except OSError as error:
            raise Hangup(_why(error)) from None
        del self._unwritten[:written]

    def on_readable(self, now: Millis) -> Iterator[tuple[Errand, Any]]:
        """The answers that have come; Hangup where what has come is none."""
        try:
            for frame in self._buffer.receive(self.socket):
                self._used_at = now
                yield from self._take(frame)
        except BlockingIOError:
            return
        except EOFError:
            raise Hangup("it hung up") from None
        except (BadFrame, MalformedMessage) as error:
            raise Hangup(str(error)) from None
        except OSError as error:
            raise Hangup(_why(error)) from None

    def _take(self, frame: bytes) -> Iterator[tuple[Errand, Any]]:
        if not self._sent:
            raise Hangup("it answered what nobody asked")
        sent = self._sent[0]
        number, answer = decode_response(frame, sent.api_key, sent.version)
        if number != sent.correlation_id:
            raise Hangup(f"it answered {number} where {sent.correlation_id} was asked")
        self._sent.popleft()
        if sent.errand is not None:
            yield sent.errand, answer
        else:
            yield from self._be_greeted(answer)

    def _greet(self, spoken: int) -> None:
        self._phase = Phase.GREETING
        body = ApiVersionsRequest(client_software_name="kohort", client_software_version=_version())
        self._encode(body, _API_VERSIONS, spoken, None)

    def _be_greeted(self, answer: ApiVersionsResponse) -> Iterator[tuple[Errand, Any]]:
        versions = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and not self._versions:
            _, newest = versions.get(_API_VERSIONS, (0, 0))
            self._versions[_API_VERSIONS] = (0, newest)
            self._greet(min(newest, _GREETING_VERSION))
            return
        if answer.error_code != ErrorCode.NONE:
            raise Hangup(f"it did not tell its versions: error {answer.error_code}")
        self._versions = versions
        self._phase = Phase.OPEN
        while self._waiting:
            errand = self._waiting.popleft()
            try:
                self._write(errand)
            except UnsupportedBroker as error:
                yield errand, error

    # Ending

    def close(self) -> list[Errand]:
        """Those that will not be answered."""
        self.socket.close()
        return list(self._errands())

    def _errands(self) -> Iterator[Errand]:
        for sent in self._sent:
            if sent.errand is not None:
                yield sent.errand
        yield from self._waiting


@cache
def _version() -> str:
    try:
        return version("kohort")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "unknown"


def _why(error: OSError) -> str:
    return error.strerror or str(error)
