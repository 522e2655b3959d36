"""The frame parser finds whole responses, wherever the stream is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.frames import FrameParser
from kohort.wire.errors import MalformedMessage


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4) + frame for frame in frames)


def feed(parser: FrameParser, data: bytes) -> list[bytes]:
    """All frames in the data, which may take several reads."""
    frames: list[bytes] = []
    while data:
        with parser.space() as space:
            count = min(len(data), len(space))
            space[:count] = data[:count]
        frames += parser.received(count)
        data = data[count:]
    return frames


@given(
    st.lists(st.binary(min_size=4, max_size=200), min_size=1, max_size=8),
    st.lists(st.integers(1, 300), min_size=1),
)
def test_frames_are_independent_of_the_stream_chunks(frames: list[bytes], cuts: list[int]) -> None:
    stream = framed(*frames)
    parser = FrameParser(1 << 20)
    found: list[bytes] = []
    number = 0
    while stream:
        size = cuts[number % len(cuts)]
        found += feed(parser, stream[:size])
        stream = stream[size:]
        number += 1

    assert found == frames


def test_the_buffer_shrinks_after_a_large_frame() -> None:
    large = bytes(20 * 1024 * 1024)
    frames = [b"small", large, b"after", large[:100_000], b"last"]
    parser = FrameParser(1 << 30)

    assert feed(parser, framed(*frames)) == frames
    with parser.space() as space:
        assert len(space) < 16 * 1024 * 1024


@pytest.mark.parametrize("length", [-1, 0, 3, 1001, 2**31 - 1])
def test_invalid_length_is_rejected_immediately(length: int) -> None:
    stream = length.to_bytes(4, signed=True) + bytes(100)

    with pytest.raises(MalformedMessage, match=f"{length} is not between 4 and 1000 bytes"):
        feed(FrameParser(1000), stream)
