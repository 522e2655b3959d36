"""One connection to one broker, for questions that may wait for their answers.

It connects, agrees with the broker on versions, and then asks one thing after the other. It knows
nothing of routes and never tries anything twice. It is used by one thread at a time.
"""

import socket
import time
from typing import Any, Final

from kohort.admin.errors import UnsupportedCluster, WrongWish
from kohort.types import ErrorCode, Millis
from kohort.wire.api import find_api
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.errors import MalformedMessage, UnencodableMessage
from kohort.wire.frame import FRAME_BYTES_MAX, FRAME_BYTES_MIN
from kohort.wire.schema import schema_of

Address = tuple[str, int]

_API_VERSIONS: Final = 18
_GREETING_VERSION: Final = 3
_CONNECT_S_MAX: Final = 10.0
"""A host that drops what is sent to it must not use up the time that others would need."""


class Lost(Exception):
    """There is no answer, and the connection is of no more use; says why."""


class Connection:
    def __init__(self, address: Address, client_id: str, deadline: float) -> None:
        """Lost where nobody is there by the deadline, which is a moment of `time.monotonic`."""
        self._client_id = client_id
        self._correlation_id = 0
        self._socket = _connect(address, deadline)
        try:
            self._versions = self._greet(deadline)
        except BaseException:
            self.close()
            raise

    def _find_version(self, request: type, versions: tuple[int, int]) -> int | None:
        """The newest of these versions that the broker speaks, if there is one."""
        least, most = self._versions.get(_key_of(request), (0, -1))
        newest = min(most, versions[1])
        return newest if newest >= max(least, versions[0]) else None

    def ask(self, body: object, versions: tuple[int, int], deadline: float) -> Any:
        """The answer to a request, said in the newest of these versions that is understood."""
        version = self._find_version(type(body), versions)
        if version is None:
            api = find_api(_key_of(type(body)))
            assert api is not None
            asked = f"{versions[0]} to {versions[1]}"
            raise UnsupportedCluster(
                f"a broker does not speak {api.name} in versions {asked}, which is needed here"
            )
        return self._exchange(body, version, deadline)

    def close(self) -> None:
        self._socket.close()

    def _greet(self, deadline: float) -> dict[int, tuple[int, int]]:
        body = ApiVersionsRequest(client_software_name="kohort", client_software_version="admin")
        answer = self._exchange(body, _GREETING_VERSION, deadline)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            answer = self._exchange(body, 0, deadline)
        if answer.error_code != ErrorCode.NONE:
            raise Lost(f"it did not tell its versions: error {answer.error_code}")
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    def _exchange(self, body: object, version: int, deadline: float) -> Any:
        self._correlation_id += 1
        number = self._correlation_id
        try:
            data = encode_request(body, version, number, self._client_id)
        except UnencodableMessage as error:
            raise WrongWish(f"this cannot be said to a broker: {error}") from None
        try:
            self._hurry(deadline)
            self._socket.sendall(data)
            frame = self._receive_frame(deadline)
            told, answer = decode_response(frame, _key_of(type(body)), version)
        except TimeoutError:
            raise Lost("it did not answer in time") from None
        except OSError as error:
            raise Lost(error.strerror or str(error)) from None
        except MalformedMessage as error:
            raise Lost(f"its answer makes no sense: {error}") from None
        if told != number:
            raise Lost(f"it answered {told} where {number} was asked")
        return answer

    def _receive_frame(self, deadline: float) -> bytes:
        length = int.from_bytes(self._receive(4, deadline), signed=True)
        if not FRAME_BYTES_MIN <= length <= FRAME_BYTES_MAX:
            raise Lost(f"an answer cannot have {length} bytes; is this a Kafka?")
        return self._receive(length, deadline)

    def _receive(self, size: int, deadline: float) -> bytes:
        received = bytearray(size)
        with memoryview(received) as room:
            filled = 0
            while filled < size:
                self._hurry(deadline)
                count = self._socket.recv_into(room[filled:])
                if not count:
                    raise Lost("it hung up")
                filled += count
        return bytes(received)

    def _hurry(self, deadline: float) -> None:
        self._socket.settimeout(_left(deadline))


def seconds_until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def deadline_in(timeout_ms: Millis) -> float:
    return time.monotonic() + timeout_ms / 1000


def _left(deadline: float) -> float:
    """A timeout of zero would mean not to wait at all, and to fail in another way."""
    left = seconds_until(deadline)
    if not left:
        raise TimeoutError
    return left


def _connect(address: Address, deadline: float) -> socket.socket:
    try:
        timeout_s = min(_left(deadline), _CONNECT_S_MAX)
        made = socket.create_connection(address, timeout_s)
    except TimeoutError:
        raise Lost("connecting took too long") from None
    except OSError as error:
        raise Lost(error.strerror or str(error)) from None
    except UnicodeError:
        raise Lost("this cannot be the name of a host") from None
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _key_of(request: type) -> int:
    key = schema_of(request).api_key
    assert key is not None, f"{request.__name__} is not a request"
    return key
