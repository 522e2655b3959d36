"""Splits a byte stream into frames: a four-byte length and a message of that length.

The reader buffers at most one incomplete frame and does not decode messages.
"""

import struct
from typing import Final

from kohort.wire.errors import MalformedMessage, UnencodableMessage

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
"""Limits the memory per connection. Equals the default of Kafka's socket.request.max.bytes."""

FRAME_BYTES_MIN: Final = 4
"""Requests and responses have at least a correlation id, so shorter frames are invalid."""

_LENGTH: Final = struct.Struct(">i")
_unpack_length: Final = _LENGTH.unpack_from


def frame(*parts: bytes) -> bytes:
    """Join the parts to a message with its length before it."""
    length = sum(map(len, parts))
    try:
        return b"".join((_LENGTH.pack(length), *parts))
    except struct.error:
        raise UnencodableMessage("Frame", "length", f"{length} bytes exceed 32 bits") from None


class FrameReader:
    """Collects received bytes and returns complete messages.

    An invalid length raises MalformedMessage, as do all later calls: the position of the next frame
    is unknown, so the connection must be closed. Complete messages before the invalid length in the
    same call are lost.
    """

    __slots__ = (
        "_bytes_max",
        "_failure",
        "_is_between_frames",
        "_partial",
        "_position",
        "_whole_max",
        "awaited",
    )

    def __init__(self, max_bytes: int = FRAME_BYTES_MAX) -> None:
        self._bytes_max = max_bytes
        self._whole_max = max_bytes + 4
        self._partial = bytearray()
        self.awaited = 4
        """The size of the incomplete frame, including its length; 4 until its length is known."""
        self._position = 0
        self._is_between_frames = True
        self._failure: MalformedMessage | None = None

    @property
    def buffered(self) -> int:
        """The number of buffered bytes of an incomplete frame, including its length."""
        return len(self._partial)

    def feed(self, data: bytes | memoryview) -> list[bytes]:
        """The messages that these bytes complete, in order, without their lengths. They are copies,
        so the caller may reuse its buffer."""
        if self._is_between_frames:
            size = len(data)
            # Usually the data is exactly one frame, so this is checked first.
            if 8 <= size <= self._whole_max and _unpack_length(data)[0] == size - 4:
                self._position += size
                return [bytes(data[4:])]
            return self._split(data)

        if self._failure is not None:
            raise self._malformed(self._failure.position, self._failure.reason)
        self._partial += data
        if len(self._partial) < self.awaited:
            return []
        # The old bytearray is replaced, because deleting from its start would move the rest.
        whole, self._partial = self._partial, bytearray()
        return self._split(memoryview(whole))

    def _split(self, data: bytes | memoryview) -> list[bytes]:
        frames = []
        start = 0
        self.awaited = 4
        while len(data) - start >= 4:
            length = _unpack_length(data, start)[0]
            if not self._is_length(length):
                raise self._fail(self._position + start, length)
            end = start + 4 + length
            if end > len(data):
                self.awaited = 4 + length
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
