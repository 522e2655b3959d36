"""A scenario: its name, its meaning, and the script that plays it for one group."""

from collections.abc import Callable
from enum import StrEnum

from kohort.types import value
from tools.histories.group_factory import GroupFactory


class Category(StrEnum):
    ORDINARY = "ordinary"
    """Normal operation."""
    PATHOLOGY = "pathology"
    """Something is wrong, and a label says what."""
    LOOK_ALIKE = "look-alike"
    """Nothing is wrong, but it resembles a pathology."""
    RARE = "rare"
    """A trigger that few clusters ever see."""


@value
class Scenario:
    name: str
    category: Category
    meaning: str
    script: Callable[[GroupFactory], None]
    is_for_size: bool = False
    """Generated only on request, for its number of records."""
