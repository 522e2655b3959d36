"""Random streams: independent random generators, made from one seed and a name.

Each component has a stream of its own, so extra draws in one do not change the others. Removing one
fault does not change the rest of the run, so a failing plan can be shrunk.
"""

from random import Random

from kohort.types import Uuid

_VERSION_4, _VARIANT = 0x40, 0x80


class RandomStreams:
    def __init__(self, seed: int | str) -> None:
        self._seed = seed

    def named(self, *name: object) -> Random:
        """The stream of this name; the same in every process, whatever its hash seed."""
        return Random(self._path(name))  # noqa: S311  # must be repeatable, need not be secret

    def split(self, *name: object) -> "RandomStreams":
        """Streams whose names all begin with this one."""
        return RandomStreams(self._path(name))

    def _path(self, name: tuple[object, ...]) -> str:
        return f"{self._seed}/{'/'.join(map(str, name))}"


def random_uuid(stream: Random) -> str:
    """A version 4 UUID as text; used as the last part of member ids."""
    raw = bytearray(stream.randbytes(16))
    raw[6] = raw[6] & 0x0F | _VERSION_4
    raw[8] = raw[8] & 0x3F | _VARIANT
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def random_topic_id(stream: Random) -> Uuid:
    """A topic id whose base64 text does not begin with a dash."""
    raw = bytearray(stream.randbytes(16))
    raw[0] &= 0x7F
    return Uuid(bytes(raw))
