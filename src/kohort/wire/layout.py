"""Where the numbers of a frame lie: frames that differ in nothing else are read by one call.

A client that says the same thing again and again, but for some numbers, sends frames of one
layout. What a decoder makes of a frame depends on its other bytes alone, as such numbers are of
constant width and decide nothing; so if those are the same, only the numbers need be read.
"""

import struct
from typing import Final

_CORRELATION_ID: Final = slice(4, 8)
"""Where requests have it. It is never the same, and it is not told."""


class Layout:
    __slots__ = ("_expected", "_mask", "_size", "_unpack")

    def __init__(self, low: bytes, high: bytes, letters: str) -> None:
        """From one request frame twice, without its length: the numbers are 0 in one, -1 in the
        other. They stand in groups, and struct knows the numbers of a group by these letters."""
        assert len(low) == len(high), "what is told must have a constant width"
        size = len(low)
        differs = (int.from_bytes(low) ^ int.from_bytes(high)).to_bytes(size)
        width = struct.calcsize(">" + letters)
        pattern, position = ">", 0
        while (start := differs.find(0xFF, position)) >= 0:
            stop = start + width
            assert differs[start:stop] == b"\xff" * width, f"no {letters} at byte {start}"
            pattern += f"{start - position}x{letters}"
            position = stop
        mask = bytearray(byte ^ 0xFF for byte in differs)
        mask[_CORRELATION_ID] = bytes(4)
        self._size = size
        self._mask = int.from_bytes(mask)
        self._expected = int.from_bytes(low) & self._mask
        self._unpack = struct.Struct(f"{pattern}{size - position}x").unpack

    def find_numbers(self, frame: bytes) -> tuple[int, ...] | None:
        """The numbers of all groups in a row; None if the frame differs in more than those."""
        if len(frame) != self._size or int.from_bytes(frame) & self._mask != self._expected:
            return None
        return self._unpack(frame)
