"""Splits the bytes of a connection into response frames, with few copies.

A driver reads into `space`, so bytes go from the socket into a reused buffer and are copied once
more when a frame is complete. One read takes as much as the socket holds: each system call
releases the GIL, and a busy program then delays this thread.
"""

from typing import Final

from kohort.wire.errors import MalformedMessage
from kohort.wire.frame import FRAME_BYTES_MIN

_BUFFER_BYTES: Final = 65_536
_BUFFER_BYTES_KEPT: Final = 16 * 1024 * 1024
"""A buffer that one large response made larger than this shrinks afterwards."""


class FrameParser:
    def __init__(self, bytes_max: int) -> None:
        """`bytes_max` limits the memory that one response can take."""
        self._bytes_max = bytes_max
        self._buffer = bytearray(_BUFFER_BYTES)
        self._filled = 0

    def space(self) -> memoryview:
        """Where the next bytes go. Release it before `received`, which may resize the buffer."""
        return memoryview(self._buffer)[self._filled :]

    def received(self, count: int) -> list[bytes]:
        """The frames that are complete now that `space` has `count` more bytes."""
        self._filled += count
        with memoryview(self._buffer) as buffer:
            frames, start, needed = self._split(buffer)
        self._make_space(start, needed)
        return frames

    def _split(self, buffer: memoryview) -> tuple[list[bytes], int, int]:
        """The complete frames, where the rest begins, and the size of the frame it begins."""
        frames = []
        start, needed = 0, 4
        while self._filled - start >= 4:
            length = int.from_bytes(buffer[start : start + 4], signed=True)
            if not FRAME_BYTES_MIN <= length <= self._bytes_max:
                reason = f"{length} is not between {FRAME_BYTES_MIN} and {self._bytes_max} bytes"
                raise MalformedMessage("Frame", "length", start, reason)
            needed = 4 + length
            if start + needed > self._filled:
                break
            frames.append(bytes(buffer[start + 4 : start + needed]))
            start += needed
            needed = 4
        return frames, start, needed

    def _make_space(self, start: int, needed: int) -> None:
        """Move the incomplete frame to the front and make the buffer large enough for it."""
        if start:
            self._buffer[: self._filled - start] = self._buffer[start : self._filled]
            self._filled -= start
        if needed > len(self._buffer):
            self._buffer.extend(bytes(needed - len(self._buffer)))
        elif len(self._buffer) > _BUFFER_BYTES_KEPT and needed < _BUFFER_BYTES:
            del self._buffer[max(_BUFFER_BYTES, self._filled) :]
