"""Compiles declarations to functions: one encoder and one decoder per message and version.

They are generated on first use and cached, so a process compiles only the messages it uses.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from kohort.wire.codegen_decode import build_decoder, build_sliced_decoder
from kohort.wire.codegen_encode import build_encoder, build_sliced_encoder
from kohort.wire.errors import MalformedMessage, UnsupportedVersion
from kohort.wire.schema import schema_of

T = TypeVar("T")

Encoder: TypeAlias = Callable[[Any, list[bytes]], None]
Decoder: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
SlicedEncoder: TypeAlias = Callable[[Any, list[bytes]], Generator[None, Any, None]]
SlicedDecoder: TypeAlias = Callable[[bytes, int, int], Generator[None, Any, tuple[Any, int]]]

_encoders: dict[tuple[type, int], Encoder] = {}
_decoders: dict[tuple[type, int], Decoder] = {}
_sliced_encoders: dict[tuple[type, int], SlicedEncoder] = {}
_sliced_decoders: dict[tuple[type, int], SlicedDecoder] = {}


def encode(value: object, version: int) -> bytes:
    """Encode a message body in one version."""
    parts: list[bytes] = []
    encoder(type(value), version)(value, parts)
    return b"".join(parts)


def decode(cls: type[T], version: int, data: bytes, position: int = 0) -> T:
    """Decode a message that takes all of `data` from `position` on."""
    value: T
    value, position = decoder(cls, version)(data, position)
    if position != len(data):
        raise MalformedMessage(
            f"{cls.__name__} v{version}",
            "end",
            position,
            f"{len(data) - position} bytes after the message",
        )
    return value


def encoder(cls: type, version: int) -> Encoder:
    """`encode(value, parts)`, which appends the bytes of the value to a list."""
    built = _encoders.get((cls, version))
    if built is None:
        _check_version(cls, version)
        built = _encoders[cls, version] = build_encoder(cls, version)
    return built


def decoder(cls: type, version: int) -> Decoder:
    """`decode(data, position) -> (value, next position)`. Trailing bytes are ignored."""
    built = _decoders.get((cls, version))
    if built is None:
        _check_version(cls, version)
        built = _decoders[cls, version] = build_decoder(cls, version)
    return built


def sliced_encoder(cls: type, version: int) -> SlicedEncoder:
    """Like `encoder`, as a generator that yields between slices of a large message."""
    built = _sliced_encoders.get((cls, version))
    if built is None:
        _check_version(cls, version)
        built = _sliced_encoders[cls, version] = build_sliced_encoder(cls, version)
    return built


def sliced_decoder(cls: type, version: int) -> SlicedDecoder:
    """Like `decoder`, as a generator; it limits the number of array items in the message."""
    built = _sliced_decoders.get((cls, version))
    if built is None:
        _check_version(cls, version)
        built = _sliced_decoders[cls, version] = build_sliced_decoder(cls, version)
    return built


def _check_version(cls: type, version: int) -> None:
    schema = schema_of(cls)
    if version not in schema.versions:
        raise UnsupportedVersion(schema.api_key, schema.name, version)
