"""Bytes from a socket into the answers they are part of, with as few calls and copies as can be.

Every call to the system lets other threads run, and a busy program then keeps us waiting for our
turn: so each read takes as much as there is, into room that is used again, and none is made on
suspicion.
"""

import socket
from typing import Final

from kohort.wire.frame import FRAME_BYTES_MIN

_ROOM_BYTES: Final = 65_536
_ROOM_BYTES_KEPT: Final = 16 * 1024 * 1024
"""Room that was needed for one large answer is given back beyond this."""


class BadFrame(Exception):
    """What came is no answer; says why."""


class FrameBuffer:
    def __init__(self, bytes_max: int) -> None:
        """`bytes_max` bounds what one answer may make us hold."""
        self._bytes_max = bytes_max
        self._room = bytearray(_ROOM_BYTES)
        self._filled = 0

    def receive(self, source: socket.socket) -> list[bytes]:
        """One read: the answers it completes. Raises EOFError where the other side has closed."""
        with memoryview(self._room) as room:
            received = source.recv_into(room[self._filled :])
            if not received:
                raise EOFError
            self._filled += received
            frames, start, needed = self._split(room)
        self._move(start, needed)
        return frames

    def _split(self, room: memoryview) -> tuple[list[bytes], int, int]:
        """Whole frames, where the rest begins, and how much that will be."""
        frames = []
        start, needed = 0, 4
        while self._filled - start >= 4:
            length = int.from_bytes(room[start : start + 4], signed=True)
            if not FRAME_BYTES_MIN <= length <= self._bytes_max:
                raise BadFrame(f"an answer cannot have {length} bytes")
            needed = 4 + length
            if start + needed > self._filled:
                break
            frames.append(bytes(room[start + 4 : start + needed]))
            start += needed
            needed = 4
        return frames, start, needed

    def _move(self, start: int, needed: int) -> None:
        """The rest to the front, and room for all of it."""
        if start:
            self._room[: self._filled - start] = self._room[start : self._filled]
            self._filled -= start
        if needed > len(self._room):
            self._room.extend(bytes(needed - len(self._room)))
        elif len(self._room) > _ROOM_BYTES_KEPT and needed < _ROOM_BYTES:
            del self._room[max(_ROOM_BYTES, self._filled) :]
