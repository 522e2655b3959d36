"""The frame reader returns whole frames from any split of the stream."""

import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.wire.errors import MalformedMessage
from kohort.wire.frame import FRAME_BYTES_MAX, FrameReader, frame

PAYLOADS = st.lists(st.binary(min_size=4, max_size=40), max_size=8)


def split_stream(stream: bytes, at: list[int]) -> list[bytes]:
    places = [0, *sorted(place % (len(stream) + 1) for place in at), len(stream)]
    return [stream[start:end] for start, end in pairwise(places)]


def feed_all(reader: FrameReader, chunks: list[bytes]) -> list[bytes]:
    return [payload for piece in chunks for payload in reader.feed(piece)]


@given(payloads=PAYLOADS, at=st.lists(st.integers(0, 400), max_size=12))
def test_frames_are_independent_of_the_stream_chunks(payloads: list[bytes], at: list[int]) -> None:
    stream = b"".join(map(frame, payloads))
    reader = FrameReader()

    assert feed_all(reader, split_stream(stream, at)) == payloads
    assert reader.buffered == 0


@given(payloads=PAYLOADS)
def test_frames_fed_byte_by_byte(payloads: list[bytes]) -> None:
    stream = b"".join(map(frame, payloads))
    reader = FrameReader()

    assert feed_all(reader, [stream[i : i + 1] for i in range(len(stream))]) == payloads


@given(payloads=PAYLOADS, rest=st.binary(min_size=4, max_size=20), held=st.integers(0, 23))
def test_incomplete_frame_is_buffered(payloads: list[bytes], rest: bytes, held: int) -> None:
    unfinished = frame(rest)
    held = min(held, len(unfinished) - 1)
    reader = FrameReader()

    assert reader.feed(b"".join(map(frame, payloads)) + unfinished[:held]) == payloads
    assert reader.buffered == held
    assert reader.feed(unfinished[held:]) == [rest]


def test_empty_feed_returns_nothing() -> None:
    reader = FrameReader()

    assert reader.feed(b"") == []
    assert reader.feed(b"\x00\x00") == []
    assert reader.feed(b"") == []
    assert reader.buffered == 2


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 3, 101, 2**31 - 1])
@pytest.mark.parametrize("split_at", [0, 1, 3, 4])
def test_invalid_length_is_rejected_immediately(length: int, split_at: int) -> None:
    reader = FrameReader(max_bytes=100)
    reader.feed(frame(b"good"))
    bad = length.to_bytes(4, signed=True)

    with pytest.raises(MalformedMessage) as caught:
        feed_all(reader, [bad[:split_at], bad[split_at:]])

    assert caught.value.field == "length"
    assert caught.value.position == 8
    assert str(length) in caught.value.reason


def test_frame_of_the_maximum_size_is_accepted() -> None:
    assert FrameReader(max_bytes=100).feed(frame(bytes(100))) == [bytes(100)]

    with pytest.raises(MalformedMessage):
        FrameReader(max_bytes=100).feed(frame(bytes(101)))


def test_error_position_counts_from_the_start_of_the_stream() -> None:
    reader = FrameReader()
    feed_all(reader, [frame(b"first"), frame(b"second")[:7], frame(b"second")[7:]])

    with pytest.raises(MalformedMessage) as caught:
        reader.feed(frame(b"third") + b"\xff\xff\xff\xff")

    assert caught.value.position == len(frame(b"first", b"second", b"third")) + 8


@pytest.mark.parametrize("more", [b"", b"x", frame(b"good")])
def test_feed_after_an_error_raises_again(more: bytes) -> None:
    reader = FrameReader()
    with pytest.raises(MalformedMessage):
        reader.feed(b"\x00\x00\x00\x00")

    with pytest.raises(MalformedMessage) as caught:
        reader.feed(more)

    assert caught.value.position == 0
    assert reader.buffered == 0


def test_large_length_allocates_nothing_in_advance() -> None:
    reader = FrameReader()
    tracemalloc.start()

    reader.feed(FRAME_BYTES_MAX.to_bytes(4))

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000


def test_large_frame_in_many_chunks_takes_linear_time() -> None:
    stream = frame(bytes(16 * 1024 * 1024))
    chunks = [stream[i : i + 512] for i in range(0, len(stream), 512)]
    started = time.process_time()

    frames = feed_all(FrameReader(), chunks)

    # About 0.03 s. Copying the buffer for every chunk would copy 270 GB and take half a minute.
    assert time.process_time() - started < 3
    assert frames == [stream[4:]]


@given(parts=st.lists(st.binary(max_size=10), max_size=5))
def test_frame_joins_length_and_parts(parts: list[bytes]) -> None:
    payload = b"".join(parts)

    assert frame(*parts) == len(payload).to_bytes(4) + payload
