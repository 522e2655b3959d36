"""The codecs a record batch may be compressed with, in the framings Kafka's own clients use.

Reading is bounded: whatever the bytes promise, no more than max_bytes is ever produced, and
bytes that are cut short, damaged or followed by others are refused. Libraries are imported when
a codec is first used, since most processes meet one codec or none.
"""

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Final, NoReturn

from kohort.wire.errors import MalformedMessage


class Codec(IntEnum):
    """The numbers of the codecs, as a batch's attributes hold them."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


DECOMPRESSED_BYTES_MAX: Final = 100 * 1024 * 1024
"""Bounds what one small batch can grow to. Kafka bounds only the compressed size, and streams."""

STREAMS_MAX: Final = 16
"""How many gzip members, lz4 or zstd frames may follow one another. Each costs a copy of what is
left, so thousands of tiny ones would cost far more than they hold; writers make just one."""


def compress(codec: Codec, data: bytes) -> bytes:
    """The data as Kafka's clients would compress it, each codec at its default level."""
    return _COMPRESS[codec](data)


def decompress(codec: Codec, data: bytes, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """What the data was before it was compressed, or MalformedMessage, positions within data."""
    return _DECOMPRESS[codec](data, max_bytes)


# Uncompressed


def _copy(data: bytes) -> bytes:
    return data


def _bounded_copy(data: bytes, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        _refuse_size(Codec.NONE, 0, max_bytes)
    return data


# gzip

_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
"""Asks zlib for gzip's header and trailer around the stream."""


def _compress_gzip(data: bytes) -> bytes:
    return zlib.compress(data, wbits=_GZIP_WINDOW)


def _decompress_gzip(data: bytes, max_bytes: int) -> bytes:
    return _decompress_streams(Codec.GZIP, data, max_bytes, _read_gzip_member)


def _read_gzip_member(data: bytes, position: int, bytes_left: int) -> tuple[bytes, int]:
    stream = zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        # One byte more than allowed tells a stream that ends in time from one that does not.
        content = stream.decompress(memoryview(data)[position:], bytes_left + 1)
    except zlib.error as error:
        _refuse(Codec.GZIP, position, str(error))
    if len(content) <= bytes_left and not stream.eof:
        _refuse(Codec.GZIP, len(data), "the stream is cut short")
    return content, len(data) - len(stream.unused_data)


# snappy

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
"""What Java's SnappyOutputStream, and so everyone else, cuts the data into."""


def _compress_snappy(data: bytes) -> bytes:
    from cramjam import snappy  # noqa: PLC0415 - see the module's docstring

    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, max_bytes: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, 0, max_bytes)
    blocks = []
    position, bytes_left = 0, max_bytes
    while position < len(data):
        # The header may come again, as Java's stream allows. Its two version numbers are not
        # looked at: there has only ever been one version, and Redpanda writes them little-endian.
        if data.startswith(_XERIAL_MAGIC, position):
            position += len(_XERIAL_HEADER)
            if position > len(data):
                _refuse(Codec.SNAPPY, len(data), "the header is cut short")
            continue
        length = int.from_bytes(data[position : position + 4], signed=True)
        if not 0 < length <= len(data) - position - 4:
            left = max(0, len(data) - position - 4)
            _refuse(Codec.SNAPPY, position, f"a block of {length} bytes where {left} are left")
        position += 4
        block = _decompress_snappy_block(data[position : position + length], position, bytes_left)
        blocks.append(block)
        bytes_left -= len(block)
        position += length
    return b"".join(blocks)


def _decompress_snappy_block(block: bytes, position: int, bytes_left: int) -> bytes:
    import cramjam  # noqa: PLC0415

    try:
        if cramjam.snappy.decompress_raw_len(block) > bytes_left:
            _refuse_size(Codec.SNAPPY, position, bytes_left)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        _refuse(Codec.SNAPPY, position, str(error))


# lz4


def _compress_lz4(data: bytes) -> bytes:
    import lz4.frame  # type: ignore[import-untyped]  # it has no types  # noqa: PLC0415

    # Java's reader refuses linked blocks; the other choices are what its writer makes.
    compressed: bytes = lz4.frame.compress(
        data, block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX64KB, store_size=False
    )
    return compressed


def _decompress_lz4(data: bytes, max_bytes: int) -> bytes:
    return _decompress_streams(Codec.LZ4, data, max_bytes, _read_lz4_frame)


def _read_lz4_frame(data: bytes, position: int, bytes_left: int) -> tuple[bytes, int]:
    import lz4.frame  # noqa: PLC0415

    stream = lz4.frame.LZ4FrameDecompressor()
    source = data[position:]
    chunks: list[bytes] = []
    # The library reserves all it is allowed to produce, so it is asked for growing pieces.
    piece = max(64 * 1024, 4 * len(source))
    while not stream.eof and bytes_left >= 0:
        try:
            chunks.append(stream.decompress(source, max_length=min(piece, bytes_left + 1)))
        except RuntimeError as error:
            _refuse(Codec.LZ4, position, str(error))
        if stream.needs_input and not stream.eof:
            _refuse(Codec.LZ4, len(data), "the frame is cut short")
        bytes_left -= len(chunks[-1])
        source = b""
        piece *= 2
    return b"".join(chunks), len(data) - len(stream.unused_data or b"")


# zstd

_ZSTD_BLOCK_BYTES_MAX: Final = 128 * 1024
_ZSTD_RUN_BLOCK: Final = 1
_ZSTD_COMPRESSED_BLOCK: Final = 2


def _compress_zstd(data: bytes) -> bytes:
    import zstandard  # noqa: PLC0415

    return zstandard.ZstdCompressor().compress(data)


def _decompress_zstd(data: bytes, max_bytes: int) -> bytes:
    return _decompress_streams(Codec.ZSTD, data, max_bytes, _read_zstd_frame)


def _read_zstd_frame(data: bytes, position: int, bytes_left: int) -> tuple[bytes, int]:
    import zstandard  # noqa: PLC0415

    source = memoryview(data)[position:]
    try:
        header = zstandard.get_frame_parameters(source)
        first_block = position + zstandard.frame_header_size(source)
        end, content_max = _measure_zstd_blocks(data, first_block)
        end += 4 if header.has_checksum else 0
        if end > len(data):
            _refuse(Codec.ZSTD, len(data), "the frame is cut short")
        stream = zstandard.ZstdDecompressor().stream_reader(source[: end - position])
        # One byte more than there can be makes the library go on to the checksum at the end.
        return stream.read(min(content_max, bytes_left) + 1), end
    except zstandard.ZstdError as error:
        _refuse(Codec.ZSTD, position, str(error))


def _measure_zstd_blocks(data: bytes, position: int) -> tuple[int, int]:
    """Where the blocks that begin here end, and how much they can hold at most.

    The library can neither say where a frame ended nor tell a cut one from a whole one.
    https://datatracker.ietf.org/doc/html/rfc8878#section-3.1.1.2
    """
    content_max = 0
    is_last = False
    while not is_last:
        header = int.from_bytes(data[position : position + 3], "little")
        if position + 3 > len(data):
            _refuse(Codec.ZSTD, len(data), "the frame is cut short")
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        position += 3 + (1 if kind == _ZSTD_RUN_BLOCK else size)
        content_max += _ZSTD_BLOCK_BYTES_MAX if kind == _ZSTD_COMPRESSED_BLOCK else size
    return position, content_max


# Common


def _decompress_streams(
    codec: Codec,
    data: bytes,
    max_bytes: int,
    read: Callable[[bytes, int, int], tuple[bytes, int]],
) -> bytes:
    """Streams one after the other until the data ends; each read tells where its stream ended."""
    contents: list[bytes] = []
    position, bytes_left = 0, max_bytes
    while position < len(data) or not contents:
        if len(contents) == STREAMS_MAX:
            _refuse(codec, position, f"more than {STREAMS_MAX} streams")
        content, end = read(data, position, bytes_left)
        if len(content) > bytes_left:
            _refuse_size(codec, position, bytes_left)
        bytes_left -= len(content)
        contents.append(content)
        position = end
    return contents[0] if len(contents) == 1 else b"".join(contents)


def _refuse_size(codec: Codec, position: int, bytes_left: int) -> NoReturn:
    _refuse(codec, position, f"decompresses to more than the {bytes_left} bytes still allowed")


def _refuse(codec: Codec, position: int, reason: str) -> NoReturn:
    raise MalformedMessage(codec.name.lower(), "data", position, reason)


_COMPRESS: Final[dict[Codec, Callable[[bytes], bytes]]] = {
    Codec.NONE: _copy,
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: _compress_lz4,
    Codec.ZSTD: _compress_zstd,
}

_DECOMPRESS: Final[dict[Codec, Callable[[bytes, int], bytes]]] = {
    Codec.NONE: _bounded_copy,
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
