"""A kind of history: its name, what it is about, and the script that plays it."""

from collections.abc import Callable
from enum import StrEnum

from kohort.corpus.casting import Casting
from kohort.types import value


class Sort(StrEnum):
    ORDINARY = "ordinary"
    """What groups do on most days."""
    PATHOLOGY = "pathology"
    """Something is wrong, and the truth says what."""
    LOOK_ALIKE = "look-alike"
    """Nothing is wrong, though it may seem so."""
    RARE = "rare"
    """What seldom happens, so that it happens at least here."""


@value
class Kind:
    name: str
    sort: Sort
    meaning: str
    play: Callable[[Casting], None]
    is_for_size: bool = False
    """Only when it is asked for: it is there for its many records."""
