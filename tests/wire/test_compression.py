"""Compression codecs: round trips, compatibility, corrupt data and decompression bombs."""

import gzip
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Iterator

import cramjam
import lz4.frame  # type: ignore[import-untyped]  # it has no types
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kohort.wire.compression import STREAMS_MAX, Codec, compress, decompress
from kohort.wire.errors import MalformedMessage
from tests.wire.batches import COMPRESS_WITH_KAFKA_PYTHON, DECOMPRESS_WITH_KAFKA_PYTHON

MIB = 1024 * 1024
TEXT = b"the quick brown fox jumps over the lazy dog, " * 40
COMPRESSED = tuple(codec for codec in Codec if codec is not Codec.NONE)
STREAMED = (Codec.GZIP, Codec.LZ4, Codec.ZSTD)

every_codec = pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
every_compression = pytest.mark.parametrize("codec", COMPRESSED, ids=lambda codec: codec.name)
every_stream = pytest.mark.parametrize("codec", STREAMED, ids=lambda codec: codec.name)


@every_codec
@given(data=st.binary(max_size=2000) | st.binary(max_size=20).map(lambda part: part * 5000))
def test_compression_round_trip(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), len(data)) == data


@every_compression
@pytest.mark.parametrize("data", [b"a", TEXT, bytes(100_000)], ids=len)
def test_compression_is_compatible_with_kafka_python(codec: Codec, data: bytes) -> None:
    assert decompress(codec, COMPRESS_WITH_KAFKA_PYTHON[codec](data), MIB) == data
    assert DECOMPRESS_WITH_KAFKA_PYTHON[codec](compress(codec, data)) == data


def test_snappy_framing_matches_kafka_python() -> None:
    data = TEXT * 100

    assert compress(Codec.SNAPPY, data) == COMPRESS_WITH_KAFKA_PYTHON[Codec.SNAPPY](data)


@every_compression
def test_compressed_data_truncated_at_any_byte_is_malformed(codec: Codec) -> None:
    whole = compress(codec, TEXT)
    empty = compress(codec, b"")

    for size in range(len(whole)):
        if whole[:size] == empty:
            continue
        with pytest.raises(MalformedMessage):
            decompress(codec, whole[:size], MIB)


@every_compression
def test_corrupt_compressed_data_is_malformed_or_other_data(codec: Codec) -> None:
    whole = compress(codec, TEXT)

    for position in range(len(whole)):
        for bit in (0x01, 0x10, 0x80):
            damaged = bytearray(whole)
            damaged[position] ^= bit
            try:
                assert len(decompress(codec, bytes(damaged), MIB)) <= MIB
            except MalformedMessage as error:
                assert error.message == codec.name.lower()
                assert 0 <= error.position <= len(damaged)


@every_codec
@given(data=st.binary(max_size=60))
def test_random_bytes_are_malformed_or_data(codec: Codec, data: bytes) -> None:
    try:
        assert len(decompress(codec, data, 1000)) <= 1000
    except MalformedMessage as error:
        assert error.field == "data"


@every_compression
@pytest.mark.parametrize("garbage", [b"\x00", b"x" * 40], ids=len)
def test_bytes_after_the_compressed_data_are_malformed(codec: Codec, garbage: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decompress(codec, compress(codec, TEXT) + garbage, MIB)


@every_codec
def test_decompressed_size_limit_is_exact(codec: Codec) -> None:
    compressed = compress(codec, TEXT)

    assert decompress(codec, compressed, len(TEXT)) == TEXT
    with pytest.raises(MalformedMessage, match="exceeds"):
        decompress(codec, compressed, len(TEXT) - 1)


def bombs() -> Iterator[tuple[str, Codec, bytes]]:
    content = bytes(64 * MIB)
    undeclared = zstandard.ZstdCompressor().compressobj()
    raw_snappy = bytes(cramjam.snappy.compress_raw(content))
    yield "gzip", Codec.GZIP, compress(Codec.GZIP, content)
    yield "gzip in members", Codec.GZIP, compress(Codec.GZIP, content[: 4 * MIB]) * STREAMS_MAX
    yield "snappy in blocks", Codec.SNAPPY, compress(Codec.SNAPPY, content)
    yield "snappy in one block", Codec.SNAPPY, raw_snappy
    yield "snappy that only claims", Codec.SNAPPY, b"\x80\x80\x80\x80\x04" + bytes(20)
    yield "lz4", Codec.LZ4, compress(Codec.LZ4, content)
    yield "lz4 with its size", Codec.LZ4, lz4.frame.compress(content)
    yield "lz4 in frames", Codec.LZ4, compress(Codec.LZ4, content[: 4 * MIB]) * STREAMS_MAX
    yield "zstd with its size", Codec.ZSTD, compress(Codec.ZSTD, content)
    yield "zstd", Codec.ZSTD, undeclared.compress(content) + undeclared.flush()
    yield "zstd in frames", Codec.ZSTD, compress(Codec.ZSTD, content[: 4 * MIB]) * STREAMS_MAX


@pytest.mark.parametrize(
    ("codec", "bomb"), [pytest.param(codec, bomb, id=name) for name, codec, bomb in bombs()]
)
def test_decompression_bomb_is_rejected_early(codec: Codec, bomb: bytes) -> None:
    max_bytes = 5 * MIB
    tracemalloc.start()

    with pytest.raises(MalformedMessage, match="exceeds"):
        decompress(codec, bomb, max_bytes)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * max_bytes


@every_stream
def test_consecutive_streams_are_concatenated(codec: Codec) -> None:
    parts = [b"first, ", b"", b"second"]

    compressed = b"".join(compress(codec, part) for part in parts)

    assert decompress(codec, compressed, 13) == b"first, second"
    with pytest.raises(MalformedMessage):
        decompress(codec, compressed, 12)


@every_stream
def test_too_many_streams_are_rejected(codec: Codec) -> None:
    one = compress(codec, b"x")

    assert decompress(codec, one * STREAMS_MAX, MIB) == b"x" * STREAMS_MAX
    with pytest.raises(MalformedMessage, match="streams"):
        decompress(codec, one * (STREAMS_MAX + 1), MIB)


@every_stream
def test_empty_compressed_data_is_malformed(codec: Codec) -> None:
    with pytest.raises(MalformedMessage):
        decompress(codec, b"", MIB)


def test_raw_snappy_is_decompressed() -> None:
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    header = bytes.fromhex("82534e41505059000000000100000001")

    assert decompress(Codec.SNAPPY, raw, MIB) == TEXT
    assert decompress(Codec.SNAPPY, header + len(raw).to_bytes(4) + raw, MIB) == TEXT
    assert decompress(Codec.SNAPPY, header, MIB) == b""


def test_snappy_framing_with_little_endian_versions_is_accepted() -> None:
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    header = bytes.fromhex("82534e41505059000100000001000000")

    assert decompress(Codec.SNAPPY, header + len(raw).to_bytes(4) + raw, MIB) == TEXT


def test_consecutive_snappy_streams_are_concatenated() -> None:
    compressed = compress(Codec.SNAPPY, b"first, ") + compress(Codec.SNAPPY, b"second")

    assert decompress(Codec.SNAPPY, compressed, MIB) == b"first, second"


@pytest.mark.parametrize("length", [-1, 0, 2**31 - 1])
def test_snappy_block_with_invalid_length_is_malformed(length: int) -> None:
    blocks = compress(Codec.SNAPPY, b"")

    with pytest.raises(MalformedMessage) as caught:
        decompress(Codec.SNAPPY, blocks + length.to_bytes(4, signed=True) + b"block", MIB)

    assert caught.value.position == 16


def test_lz4_blocks_are_independent_for_java() -> None:
    info = lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT))

    assert not info["block_linked"]
    assert info["content_size"] == 0


def test_gzip_output_is_deterministic() -> None:
    assert compress(Codec.GZIP, TEXT) == compress(Codec.GZIP, TEXT)
    assert gzip.decompress(compress(Codec.GZIP, TEXT)) == TEXT


def test_zlib_without_the_gzip_header_is_malformed() -> None:
    with pytest.raises(MalformedMessage):
        decompress(Codec.GZIP, zlib.compress(TEXT), MIB)


def test_wrong_zstd_checksum_is_malformed() -> None:
    checked = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)

    assert decompress(Codec.ZSTD, checked, len(TEXT)) == TEXT
    with pytest.raises(MalformedMessage):
        decompress(Codec.ZSTD, checked[:-1] + bytes([checked[-1] ^ 1]), MIB)


def test_no_codec_library_is_imported_before_it_is_used() -> None:
    script = (
        "import sys, kohort.wire.batch, kohort.wire.control_batch\n"
        "assert not {'crc32c', 'cramjam', 'lz4', 'zstandard'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", script], check=True)
