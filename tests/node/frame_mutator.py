"""Mutates requests by their structure: numbers, lengths, counts, texts, tags and record batches."""

import struct
from random import Random

from kohort.wire.batch_header import ATTRIBUTES_AT, CRC_AT, HEADER_BYTES, LENGTH_END, checksum
from tests.node.frame_tokens import BLOB, COUNT, LENGTH, NUMBER, TAGS, TEXT, Token, uvarint

_LIMITS = {"b": 8, "B": 8, "h": 16, "H": 16, "i": 32, "I": 32, "q": 64}
_HEADER_FIELDS = (
    (0, "q"),  # base offset
    (8, "i"),  # length
    (12, "i"),  # leader epoch
    (16, "b"),  # magic
    (ATTRIBUTES_AT, "h"),
    (23, "i"),  # last offset delta
    (27, "q"),  # base timestamp
    (35, "q"),  # max timestamp
    (43, "q"),  # producer id
    (51, "h"),  # producer epoch
    (53, "i"),  # base sequence
    (57, "i"),  # record count
)
_TEXTS = (b"", b"\0", b"\xff\xfe", b"\xc3", b"x" * 300, b"\xf0\x9f\x98\x80" * 50, b"../..", b".")
_WIDE = b"\xff" * 9 + b"\x01"
_COUNTS = (0, 1, 2, 3, 127, 128, 65_535, 2**31 - 1, 2**31, 2**32 - 1)


class FrameMutator:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._by_kind = {
            NUMBER: self._number,
            LENGTH: self._length,
            COUNT: self._length,
            TEXT: self._text,
            BLOB: self._blob,
            TAGS: self._tags,
        }

    def mutate(self, tokens: list[Token]) -> bytes:
        """A frame with its length. Some frames stay as they are."""
        random = self._random
        changed = [token.data for token in tokens]
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            # The first two tokens are the API key and its version.
            at = random.randrange(len(tokens)) if random.random() < 0.1 else self._any(tokens)
            action = random.random()
            if action < 0.75:
                changed[at] = self._by_kind[tokens[at].kind](tokens[at])
            elif action < 0.85:
                other = self._any(tokens)
                changed[at], changed[other] = changed[other], changed[at]
            elif action < 0.92:
                changed[at] *= random.choice((0, 2, 3))
            else:
                changed[at] += random.randbytes(random.randrange(1, 9))
        frame = b"".join(changed)
        kind = random.random()
        if kind < 0.05:
            frame = frame[: random.randrange(4, len(frame))]
        elif kind < 0.08:
            frame += random.randbytes(random.randrange(1, 40))
        elif kind < 0.12:
            frame = self._flip(frame)
        frame = frame.ljust(4, b"\0")
        return struct.pack(">i", len(frame)) + frame

    def _any(self, tokens: list[Token]) -> int:
        return self._random.randrange(2, len(tokens))

    def extreme(self, letter: str) -> bytes:
        if letter == "?":
            return self._random.choice((b"\0", b"\1", b"\2", b"\xff"))
        if letter == "d":
            return struct.pack(">d", self._random.choice((float("nan"), float("inf"), -0.0, 1e308)))
        if letter == "16s":
            return self._random.choice((bytes(16), b"\xff" * 16, self._random.randbytes(16)))
        bits = _LIMITS[letter]
        low = 0 if letter.isupper() else -(1 << bits - 1)
        high = low + (1 << bits) - 1
        near = self._random.randint(-3, 3)
        drawn = self._random.choice((low, high, low + 1, high - 1, 0, near, high // 2))
        return struct.pack(">" + letter, max(low, min(high, drawn)))

    def _number(self, token: Token) -> bytes:
        return self.extreme(token.letter)

    def _length(self, token: Token) -> bytes:
        random = self._random
        if token.letter:
            if random.random() < 0.5:
                return self.extreme(token.letter)
            (old,) = struct.unpack(">" + token.letter, token.data)
            return struct.pack(
                ">" + token.letter, max(-1, min(32_767, old + random.randint(-2, 2)))
            )
        if random.random() < 0.1:
            return _WIDE[random.randrange(10) :]
        if random.random() < 0.5:
            return uvarint(random.choice(_COUNTS))
        return uvarint(max(0, token.data[0] + random.randint(-2, 2)))

    def _text(self, token: Token) -> bytes:
        """The length stays as it was, or fits again."""
        text = self._random.choice(_TEXTS)
        if self._random.random() < 0.5:
            return text[: len(token.data)].ljust(len(token.data), b"x")
        return text

    def _tags(self, token: Token) -> bytes:
        """Unknown tags: complete, too short, too long, out of order or too many."""
        random = self._random
        content = random.randbytes(random.randrange(6))
        size = uvarint(max(0, len(content) + random.choice((0, 0, 0, -1, 1, 2**31 - 1))))
        tag = uvarint(random.choice((0, 1, 2, 1000, 2**31 - 1, 2**32 - 1)))
        count = random.choice((1, 1, 1, 2, 2**31 - 1))
        return uvarint(count) + (tag + size + content) * min(count, 2) + token.data[:0]

    # Record batches

    def _blob(self, token: Token) -> bytes:
        data = token.data
        if len(data) <= HEADER_BYTES:
            return self._random.randbytes(len(data))
        return self.mutate_batch(data)

    def mutate_batch(self, batch: bytes) -> bytes:
        """Header fields, records or size changed; the checksum and the length mostly fit."""
        random = self._random
        data = bytearray(batch)
        for _ in range(random.choice((1, 1, 2))):
            kind = random.random()
            if kind < 0.5:
                at, letter = random.choice(_HEADER_FIELDS)
                data[at : at + struct.calcsize(letter)] = self.extreme(letter)
            elif kind < 0.8 and len(data) > HEADER_BYTES:
                at = random.randrange(HEADER_BYTES, len(data))
                data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            elif kind < 0.9:
                del data[random.randrange(HEADER_BYTES, len(data) + 1) :]
            else:
                data += random.choice((bytes(data), random.randbytes(20)))
        if random.random() < 0.7:
            data[8:LENGTH_END] = struct.pack(">i", len(data) - LENGTH_END)
        if random.random() < 0.85:
            data[CRC_AT:ATTRIBUTES_AT] = struct.pack(">I", checksum(data[ATTRIBUTES_AT:]))
        return bytes(data)

    def _flip(self, frame: bytes) -> bytes:
        data = bytearray(frame)
        data[self._random.randrange(4, len(data))] = self._random.randrange(256)
        return bytes(data)
