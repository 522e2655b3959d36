"""Splits a stream of bytes into frames: four bytes of length, then as many bytes of message.

The reader holds at most one unfinished frame and knows nothing of what a frame contains.
"""

import struct
from typing import Final

from kohort.wire.errors import MalformedMessage, UnencodableMessage

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
"""Bounds what one connection may make us hold. Kafka's socket.request.max.bytes is the same."""

FRAME_BYTES_MIN: Final = 4
"""Requests and responses alike carry at least a correlation id, so less is not Kafka speaking."""

_LENGTH: Final = struct.Struct(">i")
_unpack_length: Final = _LENGTH.unpack_from


def frame(*parts: bytes) -> bytes:
    """The parts as one message, with its length before it."""
    length = sum(map(len, parts))
    try:
        return b"".join((_LENGTH.pack(length), *parts))
    except struct.error:
        raise UnencodableMessage("Frame", "length", f"{length} bytes exceed 32 bits") from None


class FrameReader:
    """Takes bytes as they come and gives messages as they are whole.

    A bad length is raised as soon as it is read, and again for whatever is fed afterwards: the
    stream cannot be understood from there on, so the connection is of no more use. Messages that
    were whole earlier in the same piece are not given out either.
    """

    __slots__ = (
        "_awaited",
        "_bytes_max",
        "_failure",
        "_is_between_frames",
        "_partial",
        "_position",
    )

    def __init__(self, max_bytes: int = FRAME_BYTES_MAX) -> None:
        self._bytes_max = max_bytes
        self._partial = bytearray()
        self._awaited = 4
        self._position = 0
        self._is_between_frames = True
        self._failure: MalformedMessage | None = None

    @property
    def buffered(self) -> int:
        """How many bytes of an unfinished frame are held, its length included."""
        return len(self._partial)

    def feed(self, data: bytes | memoryview) -> list[bytes]:
        """The messages that these bytes complete, in order, without their lengths: all of them
        copies, so that what was fed may be written over."""
        if self._is_between_frames:
            size = len(data)
            # Nearly always a piece is exactly one frame, so that is asked first.
            if size >= 4 and _unpack_length(data)[0] == size - 4 and self._is_length(size - 4):
                self._position += size
                return [bytes(data[4:])]
            return self._split(data)

        if self._failure is not None:
            raise self._malformed(self._failure.position, self._failure.reason)
        self._partial += data
        if len(self._partial) < self._awaited:
            return []
        # The old bytearray is replaced, not cut: cutting it would move its rest on every frame.
        whole, self._partial = self._partial, bytearray()
        return self._split(memoryview(whole))

    def skip(self, size: int) -> bool:
        """Steps over a piece that is known to be one whole message, unless one is unfinished."""
        if self._is_between_frames:
            self._position += size
            return True
        return False

    def _split(self, data: bytes | memoryview) -> list[bytes]:
        frames = []
        start = 0
        self._awaited = 4
        while len(data) - start >= 4:
            length = _unpack_length(data, start)[0]
            if not self._is_length(length):
                raise self._fail(self._position + start, length)
            end = start + 4 + length
            if end > len(data):
                self._awaited = 4 + length
                break
            frames.append(bytes(data[start + 4 : end]))
            start = end
        self._partial += data[start:]
        self._position += start
        self._is_between_frames = not self._partial
        return frames

    def _is_length(self, length: int) -> bool:
        return FRAME_BYTES_MIN <= length <= self._bytes_max

    def _fail(self, position: int, length: int) -> MalformedMessage:
        reason = f"{length} is not between {FRAME_BYTES_MIN} and {self._bytes_max} bytes"
        self._is_between_frames = False
        self._partial = bytearray()
        self._failure = self._malformed(position, reason)
        return self._failure

    def _malformed(self, position: int, reason: str) -> MalformedMessage:
        return MalformedMessage("Frame", "length", position, reason)
