"""A message in its envelope: length, header and body as one frame, for the node and the client."""

from struct import Struct
from typing import Any, Final

from kohort.types import ErrorCode
from kohort.wire.api import find_api
from kohort.wire.compiler import Decoder, decode, decoder, encoder
from kohort.wire.errors import MalformedMessage, UnsupportedVersion
from kohort.wire.header import (
    API_VERSIONS_KEY,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from kohort.wire.schema import schema_of

_KEY_AND_VERSION: Final = Struct(">hh")
_LENGTH: Final = Struct(">i")
_RESPONSE_HEADS: Final = (Struct(">ii"), Struct(">iiB"))
"""Length and response header in one, by header version; version 1 ends in an empty tag section."""

_API_VERSIONS_ERROR: Final = Struct(">h")

_request_decoders: dict[tuple[int, int], tuple[Decoder, Decoder]] = {}
"""Header and body decoders by API key and version: one look-up on the way in."""


def peek_request(frame: bytes) -> tuple[int, int]:
    """The API key and version a request frame begins with, whether spoken here or not."""
    if len(frame) < _KEY_AND_VERSION.size:
        raise MalformedMessage("RequestHeader", "request_api_key", 0, "the bytes end here")
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    return key, version


def decode_request(frame: bytes) -> tuple[RequestHeader, Any]:
    """Header and body of a request frame; UnsupportedVersion where key or version is not ours."""
    spoken = peek_request(frame)
    decoders = _request_decoders.get(spoken)
    if decoders is None:
        decoders = _request_decoders[spoken] = _find_request_decoders(*spoken)
    header, position = decoders[0](frame, 0)
    body, position = decoders[1](frame, position)
    if position != len(frame):
        raise _trailing(type(body), spoken[1], frame, position)
    return header, body


def decode_request_header(frame: bytes) -> RequestHeader:
    """As much of the header as every version shares: enough to answer what we do not speak."""
    header: RequestHeader = decoder(RequestHeader, 1)(frame, 0)[0]
    return header


def encode_request(body: object, version: int, correlation_id: int, client_id: str | None) -> bytes:
    request = type(body)
    api_key = schema_of(request).api_key
    assert api_key is not None, f"{request.__name__} is not a request"
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    parts: list[bytes] = []
    encoder(RequestHeader, request_header_version(request, version))(header, parts)
    encoder(request, version)(body, parts)
    payload = b"".join(parts)
    return _LENGTH.pack(len(payload)) + payload


def encode_response(body: object, version: int, correlation_id: int) -> bytes:
    response = type(body)
    parts: list[bytes] = [b""]
    encoder(response, version)(body, parts)
    header_version = response_header_version(response, version)
    head = _RESPONSE_HEADS[header_version]
    size = sum(map(len, parts)) + head.size - _LENGTH.size
    parts[0] = head.pack(size, correlation_id, *(0,) * header_version)
    return b"".join(parts)


def decode_response(frame: bytes, api_key: int, version: int) -> tuple[int, Any]:
    """Correlation id and body of the response to a request sent with this key and version."""
    api = find_api(api_key)
    if api is None:
        raise UnsupportedVersion(api_key, f"API key {api_key}", version)
    header_version = response_header_version(api.response, version)
    header: ResponseHeader
    header, position = decoder(ResponseHeader, header_version)(frame, 0)
    if api_key == API_VERSIONS_KEY and _is_refused_version(frame, position):
        version = 0
    return header.correlation_id, decode(api.response, version, frame, position)


def _is_refused_version(frame: bytes, position: int) -> bool:
    """A broker that does not speak our version of ApiVersions answers in version 0 (KIP-511)."""
    if len(frame) < position + _API_VERSIONS_ERROR.size:
        return False
    error: int = _API_VERSIONS_ERROR.unpack_from(frame, position)[0]
    return error == ErrorCode.UNSUPPORTED_VERSION


def _find_request_decoders(key: int, version: int) -> tuple[Decoder, Decoder]:
    api = find_api(key)
    if api is None or version not in api.versions:
        raise UnsupportedVersion(key, api.name if api else f"API key {key}", version)
    header_version = request_header_version(api.request, version)
    return decoder(RequestHeader, header_version), decoder(api.request, version)


def _trailing(cls: type, version: int, frame: bytes, position: int) -> MalformedMessage:
    reason = f"{len(frame) - position} bytes behind the message"
    return MalformedMessage(f"{cls.__name__} v{version}", "end", position, reason)
