"""All chance comes from one seed, split by name.

Who draws by a name of its own disturbs nobody else by drawing more or less: a world in which one
fault less happens is otherwise the same world. That is what makes failures shrink.
"""

from random import Random


class Dice:
    def __init__(self, seed: int) -> None:
        self._seed = seed

    def named(self, *name: object) -> Random:
        """The same name gives the same numbers, whatever the hash seed of this process."""
        return Random(f"{self._seed}/{'/'.join(map(str, name))}")  # noqa: S311  # to be drawn again
