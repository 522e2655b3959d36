"""Answers out of a stream of bytes, however it is cut."""

import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.network.frames import BadFrame, FrameBuffer


class Pieces:
    """A socket that has these bytes to give, piece by piece."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def recv_into(self, room: memoryview) -> int:
        piece = self._pieces.pop(0)
        taken = min(len(piece), len(room))
        room[:taken] = piece[:taken]
        if taken < len(piece):
            self._pieces.insert(0, piece[taken:])
        return taken

    @property
    def is_empty(self) -> bool:
        return not self._pieces


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4) + frame for frame in frames)


def receive_all(buffer: FrameBuffer, pieces: list[bytes]) -> Iterator[bytes]:
    source = Pieces(pieces)
    while not source.is_empty:
        yield from buffer.receive(source)  # type: ignore[arg-type]  # all of a socket it needs


@given(
    st.lists(st.binary(min_size=4, max_size=200), min_size=1, max_size=8),
    st.lists(st.integers(1, 300), min_size=1),
)
def test_frames_come_whole_however_the_bytes_are_cut(frames: list[bytes], cuts: list[int]) -> None:
    stream = framed(*frames)
    pieces: list[bytes] = []
    while stream:
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(stream[:size])
        stream = stream[size:]

    assert list(receive_all(FrameBuffer(1 << 20), pieces)) == frames


def test_a_large_frame_is_followed_by_small_ones_and_its_room_is_given_back() -> None:
    large = bytes(20 * 1024 * 1024)
    frames = [b"small", large, b"after", large[:100_000], b"last"]

    assert list(receive_all(FrameBuffer(1 << 30), [framed(*frames)])) == frames


@pytest.mark.parametrize("length", [-1, 0, 3, 1001, 2**31 - 1])
def test_a_length_that_cannot_be_is_refused_at_once(length: int) -> None:
    stream = length.to_bytes(4, signed=True) + bytes(100)

    with pytest.raises(BadFrame, match=f"cannot have {length} bytes"):
        list(receive_all(FrameBuffer(1000), [stream]))


def test_the_end_of_the_stream_is_told() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(framed(b"whole") + b"\0\0")
        theirs.shutdown(socket.SHUT_WR)
        buffer = FrameBuffer(1000)

        assert buffer.receive(ours) == [b"whole"]
        with pytest.raises(EOFError):
            buffer.receive(ours)
