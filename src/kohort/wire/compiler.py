"""Turns declarations into functions: one encoder and one decoder per message and version.

They are written on first use and kept. A process that speaks three APIs compiles three.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from kohort.wire.decoding import build_decoder
from kohort.wire.encoding import build_encoder
from kohort.wire.errors import MalformedMessage, UnsupportedVersion
from kohort.wire.schema import schema_of

T = TypeVar("T")

Encoder: TypeAlias = Callable[[Any, list[bytes]], None]
Decoder: TypeAlias = Callable[[bytes, int], tuple[Any, int]]

_encoders: dict[tuple[type, int], Encoder] = {}
_decoders: dict[tuple[type, int], Decoder] = {}


def encode(value: object, version: int) -> bytes:
    """The bytes of a message body in one version."""
    parts: list[bytes] = []
    encoder(type(value), version)(value, parts)
    return b"".join(parts)


def decode(cls: type[T], version: int, data: bytes, position: int = 0) -> T:
    """The message that fills `data` from `position` to the end, to the last byte."""
    value: T
    value, position = decoder(cls, version)(data, position)
    if position != len(data):
        raise MalformedMessage(
            f"{cls.__name__} v{version}",
            "end",
            position,
            f"{len(data) - position} bytes behind the message",
        )
    return value


def encoder(cls: type, version: int) -> Encoder:
    """`encode(value, parts)`: appends the value's bytes to a list for the caller to join."""
    built = _encoders.get((cls, version))
    if built is None:
        _check_version(cls, version)
        built = _encoders[cls, version] = build_encoder(cls, version)
    return built


def decoder(cls: type, version: int) -> Decoder:
    """`decode(data, position) -> (value, next position)`: leaves what follows to the caller."""
    built = _decoders.get((cls, version))
    if built is None:
        _check_version(cls, version)
        built = _decoders[cls, version] = build_decoder(cls, version)
    return built


def _check_version(cls: type, version: int) -> None:
    schema = schema_of(cls)
    if version not in schema.versions:
        raise UnsupportedVersion(schema.api_key, schema.name, version)
