"""The compression codecs of record batches, with the framing that Kafka's clients use.

Decompression produces at most `max_bytes`. Truncated, corrupt or trailing bytes are rejected.
Libraries are imported on first use of a codec, because most processes use one codec or none.
"""

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Final, NoReturn

from kohort.wire.errors import MalformedMessage, TooLarge


class Codec(IntEnum):
    """The codec numbers in the attributes of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


DECOMPRESSED_BYTES_MAX: Final = 100 * 1024 * 1024
"""Limits the memory that a small batch can use. Kafka limits only the compressed size, because it
decompresses as a stream."""

STREAMS_MAX: Final = 16
"""The maximum number of consecutive gzip members, lz4 or zstd frames. Each costs a copy of the
remaining bytes, so thousands of tiny ones would be expensive. Writers produce one."""


def compress(codec: Codec, data: bytes) -> bytes:
    """Compress as Kafka's clients do, at the default level of the codec."""
    return _COMPRESS[codec](data)


def decompress(codec: Codec, data: bytes, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Raises MalformedMessage, with positions within the compressed data."""
    return _DECOMPRESS[codec](data, max_bytes)


# Uncompressed


def _copy(data: bytes) -> bytes:
    return data


def _bounded_copy(data: bytes, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        _reject_size(Codec.NONE, 0, max_bytes)
    return data


# gzip

_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
"""Tells zlib to use gzip's header and trailer."""


def _compress_gzip(data: bytes) -> bytes:
    return zlib.compress(data, wbits=_GZIP_WINDOW)


def _decompress_gzip(data: bytes, max_bytes: int) -> bytes:
    return _decompress_streams(Codec.GZIP, data, max_bytes, _read_gzip_member)


def _read_gzip_member(data: bytes, position: int, bytes_left: int) -> tuple[bytes, int]:
    stream = zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        # One byte more than allowed, to detect a stream that exceeds the limit.
        content = stream.decompress(memoryview(data)[position:], bytes_left + 1)
    except zlib.error as error:
        _reject(Codec.GZIP, position, str(error))
    if len(content) <= bytes_left and not stream.eof:
        _reject(Codec.GZIP, len(data), "the stream is truncated")
    return content, len(data) - len(stream.unused_data)


# snappy

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
"""The block size of Java's SnappyOutputStream, which other clients use as well."""


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
        # Java's stream allows repeated headers. The two version numbers are ignored: there is only
        # one version, and Redpanda writes them little-endian.
        if data.startswith(_XERIAL_MAGIC, position):
            position += len(_XERIAL_HEADER)
            if position > len(data):
                _reject(Codec.SNAPPY, len(data), "the header is truncated")
            continue
        length = int.from_bytes(data[position : position + 4], signed=True)
        if not 0 < length <= len(data) - position - 4:
            left = max(0, len(data) - position - 4)
            _reject(Codec.SNAPPY, position, f"a block of {length} bytes, but {left} bytes are left")
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
            _reject_size(Codec.SNAPPY, position, bytes_left)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        _reject(Codec.SNAPPY, position, str(error))


# lz4


def _compress_lz4(data: bytes) -> bytes:
    import lz4.frame  # type: ignore[import-untyped]  # it has no types  # noqa: PLC0415

    # Java's reader rejects linked blocks. The other options match Java's writer.
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
    # The library allocates max_length bytes in advance, so the pieces start small and grow.
    piece = max(64 * 1024, 4 * len(source))
    while not stream.eof and bytes_left >= 0:
        try:
            chunks.append(stream.decompress(source, max_length=min(piece, bytes_left + 1)))
        except RuntimeError as error:
            _reject(Codec.LZ4, position, str(error))
        if stream.needs_input and not stream.eof:
            _reject(Codec.LZ4, len(data), "the frame is truncated")
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
            _reject(Codec.ZSTD, len(data), "the frame is truncated")
        stream = zstandard.ZstdDecompressor().stream_reader(source[: end - position])
        # One byte more than the content, so that the library verifies the checksum at the end.
        return stream.read(min(content_max, bytes_left) + 1), end
    except zstandard.ZstdError as error:
        _reject(Codec.ZSTD, position, str(error))


def _measure_zstd_blocks(data: bytes, position: int) -> tuple[int, int]:
    """The end position of the blocks at `position`, and the maximum size of their content.

    The library neither reports the end of a frame nor detects a truncated one.
    https://datatracker.ietf.org/doc/html/rfc8878#section-3.1.1.2
    """
    content_max = 0
    is_last = False
    while not is_last:
        header = int.from_bytes(data[position : position + 3], "little")
        if position + 3 > len(data):
            _reject(Codec.ZSTD, len(data), "the frame is truncated")
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
    """Decompress consecutive streams. `read` returns the content and the end of one stream."""
    contents: list[bytes] = []
    position, bytes_left = 0, max_bytes
    while position < len(data) or not contents:
        if len(contents) == STREAMS_MAX:
            _reject(codec, position, f"more than {STREAMS_MAX} streams")
        content, end = read(data, position, bytes_left)
        if len(content) > bytes_left:
            _reject_size(codec, position, bytes_left)
        bytes_left -= len(content)
        contents.append(content)
        position = end
    return contents[0] if len(contents) == 1 else b"".join(contents)


def _reject_size(codec: Codec, position: int, bytes_left: int) -> NoReturn:
    reason = f"the decompressed size exceeds the remaining limit of {bytes_left} bytes"
    raise TooLarge(codec.name.lower(), "data", position, reason)


def _reject(codec: Codec, position: int, reason: str) -> NoReturn:
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
