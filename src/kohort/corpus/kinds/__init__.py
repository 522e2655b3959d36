"""All kinds of histories, by name. A group of the corpus is of one kind."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

from kohort.corpus.kinds import lookalikes, offsets, ordinary, rare, rebalancing
from kohort.corpus.kinds.kind import Kind, Sort

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        *ordinary.KINDS,
        ordinary.BUSY,
        *rebalancing.KINDS,
        *offsets.KINDS,
        *lookalikes.KINDS,
        *rare.KINDS,
    )
}


class UnknownKind(ValueError):
    """There is no kind of that name."""


def choose(names: Sequence[str]) -> tuple[Kind, ...]:
    """Those that are named, or without names all but those that are there for their size."""
    if not names:
        return tuple(kind for kind in KINDS.values() if not kind.is_for_size)
    for name in names:
        if name not in KINDS:
            (near,) = difflib.get_close_matches(name, KINDS, n=1, cutoff=0.0)
            raise UnknownKind(f"there is no kind {name!r}; the nearest is {near!r}")
    return tuple(KINDS[name] for name in names)


__all__ = ["KINDS", "Kind", "Sort", "UnknownKind", "choose"]
