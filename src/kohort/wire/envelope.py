"""Request and response frames: length, header and body."""

from collections.abc import Callable, Generator
from struct import Struct
from struct import error as StructError  # noqa: N812  # it is a class
from typing import Any, Final

from kohort.types import ErrorCode
from kohort.wire.api import find_api
from kohort.wire.errors import MalformedMessage, UnencodableMessage, UnsupportedVersion
from kohort.wire.header import (
    API_VERSIONS_KEY,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from kohort.wire.message_codec import (
    Decoder,
    Encoder,
    decode,
    decoder,
    encoder,
    sliced_decoder,
    sliced_encoder,
)
from kohort.wire.schema import schema_of

_KEY_AND_VERSION: Final = Struct(">hh")
_LENGTH: Final = Struct(">i")
_RESPONSE_HEADS: Final = (Struct(">ii"), Struct(">iix"))
"""Length and response header, by header version. Version 1 ends with an empty tag section."""

_API_VERSIONS_ERROR: Final = Struct(">h")

_request_decoders: dict[bytes, tuple[Decoder, Decoder]] = {}
"""Header and body decoders by the first four bytes of a frame, which are API key and version.

Only supported versions are stored, so that peers cannot make it grow.
"""

_response_encoders: dict[tuple[type, int], tuple[Encoder, Callable[..., bytes], int]] = {}
"""Body encoder, pack function of length and header, and header size, by message and version."""


def peek_request(frame: bytes) -> tuple[int, int]:
    """The API key and version of a request frame, supported or not."""
    if len(frame) < _KEY_AND_VERSION.size:
        raise MalformedMessage("RequestHeader", "request_api_key", 0, "the bytes end here")
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    return key, version


def decode_request(frame: bytes) -> tuple[RequestHeader, Any]:
    """Header and body of a request frame. Raises UnsupportedVersion."""
    decoders = _request_decoders.get(frame[:4])
    if decoders is None:
        decoders = _request_decoders[frame[:4]] = _find_request_decoders(*peek_request(frame))
    header, position = decoders[0](frame, 0)
    # Trailing bytes are ignored, as in Kafka: librdkafka's Metadata v13 has three.
    return header, decoders[1](frame, position)[0]


def decode_large_request(
    frame: bytes, find_items_max: Callable[[int], int]
) -> tuple[RequestHeader, Generator[None, Any, Any]]:
    """Header and body of a request frame; the body is decoded in slices.

    Raises UnsupportedVersion. A request with too many array items is malformed;
    `find_items_max` returns the maximum for an API key.
    """
    key, version = peek_request(frame)
    decode_header, _ = _find_request_decoders(key, version)
    header, position = decode_header(frame, 0)
    api = find_api(key)
    assert api is not None, "its decoders were found"
    decoding = sliced_decoder(api.request, version)(frame, position, find_items_max(key))
    return header, _decode_body(decoding)


def _decode_body(steps: Generator[None, Any, tuple[Any, int]]) -> Generator[None, Any, Any]:
    body, _ = yield from steps
    return body


def decode_request_header(frame: bytes) -> RequestHeader:
    """The header fields that all versions have. Enough to answer an unsupported request."""
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
    encode_body, pack_head, header_size = _response_encoder(type(body), version)
    parts: list[bytes] = [b""]
    encode_body(body, parts)
    return _join(pack_head, header_size, correlation_id, parts)


def encode_large_response(
    body: object, version: int, correlation_id: int, bytes_max: int
) -> Generator[None, Any, bytes]:
    """Like `encode_response`, in slices. Raises UnencodableMessage if it has more bytes."""
    _, pack_head, header_size = _response_encoder(type(body), version)
    parts: list[bytes] = [b""]
    joined = 1
    left = bytes_max
    for _ in sliced_encoder(type(body), version)(body, parts):
        # The parts have a few bytes each, and as objects take many times as much.
        left -= sum(map(len, parts[joined:]))
        if left < 0:
            name = schema_of(type(body)).name
            raise UnencodableMessage(name, "length", f"it has more than {bytes_max} bytes")
        parts[joined:] = [b"".join(parts[joined:])]
        joined += 1
        yield
    return _join(pack_head, header_size, correlation_id, parts)


def frame_response(response: type, version: int, correlation_id: int, parts: list[bytes]) -> bytes:
    """A response frame for a body that is already encoded."""
    _, pack_head, header_size = _response_encoder(response, version)
    return _join(pack_head, header_size, correlation_id, [b"", *parts])


def decode_response(frame: bytes, api_key: int, version: int) -> tuple[int, Any]:
    """Correlation id and body of the response to a request with this API key and version."""
    api = find_api(api_key)
    if api is None:
        raise UnsupportedVersion(api_key, f"API key {api_key}", version)
    header_version = response_header_version(api.response, version)
    header: ResponseHeader
    header, position = decoder(ResponseHeader, header_version)(frame, 0)
    if api_key == API_VERSIONS_KEY and _is_unsupported_version(frame, position):
        version = 0
    return header.correlation_id, decode(api.response, version, frame, position)


def _is_unsupported_version(frame: bytes, position: int) -> bool:
    """A broker that does not support the version of an ApiVersions request answers in version 0
    (KIP-511)."""
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


def _response_encoder(response: type, version: int) -> tuple[Encoder, Callable[..., bytes], int]:
    found = _response_encoders.get((response, version))
    if found is None:
        head = _RESPONSE_HEADS[response_header_version(response, version)]
        found = encoder(response, version), head.pack, head.size - _LENGTH.size
        _response_encoders[response, version] = found
    return found


def _join(
    pack_head: Callable[..., bytes], header_size: int, correlation_id: int, parts: list[bytes]
) -> bytes:
    """A complete frame. The first part is a placeholder for length and header."""
    size = sum(map(len, parts)) + header_size
    try:
        parts[0] = pack_head(size, correlation_id)
    except StructError:
        reason = f"{correlation_id!r} or the frame size {size} does not fit into 32 bits"
        raise UnencodableMessage("ResponseHeader", "correlation_id", reason) from None
    return b"".join(parts)
