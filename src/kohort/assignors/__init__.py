"""Partition assignors, under the names that Kafka's clients use.

A group may mix client libraries: its members agree on an assignor's name, and the leader runs it.
Everything here is pure: no clock, no randomness, no I/O.
"""

from collections.abc import Mapping
from typing import Final

from kohort.assignors.assignor import (
    NO_GENERATION,
    Assignment,
    Assignor,
    RebalanceProtocol,
    Subscriber,
)
from kohort.assignors.cooperative_sticky import CooperativeSticky
from kohort.assignors.range import Range
from kohort.assignors.round_robin import RoundRobin
from kohort.assignors.sticky import Sticky

RANGE: Final = Range()
ROUNDROBIN: Final = RoundRobin()
STICKY: Final = Sticky()
COOPERATIVE_STICKY: Final = CooperativeSticky()

BUILT_IN: Final[Mapping[str, Assignor]] = {
    each.name: each for each in (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY)
}


def get_assignor(name: str) -> Assignor:
    """Return the built-in assignor with this name; raise ValueError if there is none."""
    try:
        return BUILT_IN[name]
    except KeyError:
        known = ", ".join(BUILT_IN)
        raise ValueError(f"there is no assignor {name!r}; there are {known}") from None


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
