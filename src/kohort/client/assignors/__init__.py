"""The rules by which a group's leader deals out partitions, under the names Kafka's clients know.

Groups may mix clients: the members agree on a name, and one of them, whoever leads, assigns.
"""

from collections.abc import Mapping
from typing import Final

from kohort.client.assignors.assignor import (
    NO_GENERATION,
    Assignment,
    Assignor,
    RebalanceProtocol,
    Subscriber,
)
from kohort.client.assignors.cooperative import CooperativeSticky
from kohort.client.assignors.range import Range
from kohort.client.assignors.roundrobin import RoundRobin
from kohort.client.assignors.sticky import Sticky
from kohort.client.errors import BadOption

RANGE: Final = Range()
ROUNDROBIN: Final = RoundRobin()
STICKY: Final = Sticky()
COOPERATIVE_STICKY: Final = CooperativeSticky()

BUILT_IN: Final[Mapping[str, Assignor]] = {
    each.name: each for each in (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY)
}


def get_assignor(name: str) -> Assignor:
    """One of our own, by its name."""
    try:
        return BUILT_IN[name]
    except KeyError:
        known = ", ".join(BUILT_IN)
        raise BadOption(f"there is no assignor {name!r}; there are {known}") from None


__all__ = [
    "BUILT_IN",
    "COOPERATIVE_STICKY",
    "NO_GENERATION",
    "RANGE",
    "ROUNDROBIN",
    "STICKY",
    "Assignment",
    "Assignor",
    "CooperativeSticky",
    "Range",
    "RebalanceProtocol",
    "RoundRobin",
    "Sticky",
    "Subscriber",
    "get_assignor",
]
