"""Variable-length integers: seven bits per byte, lowest first.

Lengths and tags of flexible versions are unsigned. Records use zigzag encoding, so that -1 also
takes one byte. The readers raise IndexError if the bytes end and ValueError if the number is too
long. Callers know the field and turn both into a MalformedMessage.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


def read_uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """The unsigned number below 2**32 at pos, and the position after it."""
    first = buf[pos]
    if first < 0x80:
        return first, pos + 1
    return continue_uvarint(buf, pos + 1, first)


def read_varint(buf: Buffer, pos: int) -> tuple[int, int]:
    """The zigzag-encoded 32-bit number at pos, and the position after it."""
    value, pos = read_uvarint(buf, pos)
    return (value >> 1) ^ -(value & 1), pos


def read_varlong(buf: Buffer, pos: int) -> tuple[int, int]:
    """The zigzag-encoded 64-bit number at pos, and the position after it."""
    value = buf[pos]
    pos += 1
    if value >= 0x80:
        value, pos = continue_uvarlong(buf, pos, value)
    return (value >> 1) ^ -(value & 1), pos


def continue_uvarint(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    """Continue a number of at most 5 bytes after its first byte."""
    second = buf[pos]
    if second < 0x80:
        return first - 0x80 + (second << 7), pos + 1
    return _continue(buf, pos, first, 32)


def continue_uvarlong(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    """Continue a number of at most 10 bytes after its first byte."""
    second = buf[pos]
    if second < 0x80:
        return first - 0x80 + (second << 7), pos + 1
    return _continue(buf, pos, first, 64)


def _continue(buf: Buffer, pos: int, first: int, bits: int) -> tuple[int, int]:
    value = first - 0x80
    for shift in range(7, bits, 7):
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                raise ValueError(f"the number does not fit in {bits} bits")
            return value, pos
    raise ValueError(f"the number does not end within {bits // 7 + 1} bytes")


def encode_uvarint(value: int) -> bytes:
    """An unsigned number below 2**32."""
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} is not an unsigned 32-bit number")
    return _encode(value)


def encode_varint(value: int) -> bytes:
    """A 32-bit number, zigzag-encoded."""
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{value} is not a 32-bit number")
    return _encode((value << 1) ^ (value >> 31))


def encode_varlong(value: int) -> bytes:
    """A 64-bit number, zigzag-encoded."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} is not a 64-bit number")
    return _encode((value << 1) ^ (value >> 63))


def _encode(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class _VarintCache(dict[int, bytes]):
    """Maps numbers to their bytes. Caches small numbers only."""

    __slots__ = ("_encode",)

    def __init__(self, encode: Callable[[int], bytes]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, value: int) -> bytes:
        encoded = self._encode(value)
        if value in _CACHED:
            self[value] = encoded
        return encoded


_CACHED: Final = range(1024)

UVARINT: Final = _VarintCache(encode_uvarint)
VARINT: Final = _VarintCache(encode_varint)
VARLONG: Final = _VarintCache(encode_varlong)
