"""All chance of a corpus comes from one seed, split by name.

Who draws by a name of its own disturbs nobody else by drawing more or less: a group's history does
not change because another group was added to the corpus.
"""

from random import Random

from kohort.types import Uuid

_VERSION_4, _VARIANT = 0x40, 0x80


class Dice:
    def __init__(self, seed: int | str) -> None:
        self._seed = seed

    def named(self, *name: object) -> Random:
        """The same name gives the same numbers, whatever the hash seed of this process."""
        return Random(self._path(name))  # noqa: S311  # made to be drawn again, not to be secret

    def split(self, *name: object) -> "Dice":
        return Dice(self._path(name))

    def _path(self, name: tuple[object, ...]) -> str:
        return f"{self._seed}/{'/'.join(map(str, name))}"


def draw_uuid(chance: Random) -> str:
    """As a random UUID is written; clients and brokers end member ids with one."""
    raw = bytearray(chance.randbytes(16))
    raw[6] = raw[6] & 0x0F | _VERSION_4
    raw[8] = raw[8] & 0x3F | _VARIANT
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def draw_topic_id(chance: Random) -> Uuid:
    """Never one that tools would write with a dash in front."""
    raw = bytearray(chance.randbytes(16))
    raw[0] &= 0x7F
    return Uuid(bytes(raw))
