"""No two processes believe to hold the same partition by the same generation of a group.

A process holds a partition by the generation whose assignment named it last. By different ones two
may: the older has lost it and does not know yet. So may the two lives of one static member, of
which the older is fenced.
"""

from collections.abc import Mapping

from kohort.client.topic_partition import TopicPartition
from kohort.sim.checkers.violation import Violation
from kohort.types import value


@value
class Belief:
    """What a process takes for true about itself."""

    group: str
    instance_id: str | None
    held: Mapping[TopicPartition, int]
    """And by which generation."""


class Ownership:
    def __init__(self) -> None:
        self._beliefs: dict[str, Belief] = {}
        self._outdated: dict[str, Mapping[TopicPartition, int]] = {}
        """What processes held by generations that the node has forgotten."""

    def believes(self, process: str, belief: Belief) -> None:
        self._beliefs[process] = belief
        held = self._rightly_held(process)
        for other, its in self._beliefs.items():
            if other == process or its.group != belief.group or _is_same_instance(its, belief):
                continue
            for partition, generation in sorted(held & self._rightly_held(other)):
                where = f"{partition.topic}-{partition.partition}"
                what = f"{process} and {other} both hold {where} by generation {generation}"
                raise Violation("ownership", what)

    def _rightly_held(self, process: str) -> set[tuple[TopicPartition, int]]:
        held = self._beliefs[process].held.items()
        return set(held - self._outdated.get(process, {}).items())

    def ended(self, process: str) -> None:
        self._beliefs.pop(process, None)
        self._outdated.pop(process, None)

    def forgotten(self) -> None:
        """The node may have lost generations it had formed, and form them again with others.

        Who holds something by one of them goes on until it hears of it, and may meanwhile give up
        a part.
        """
        for process, belief in self._beliefs.items():
            self._outdated[process] = {**self._outdated.get(process, {}), **belief.held}


def _is_same_instance(one: Belief, other: Belief) -> bool:
    return one.instance_id is not None and one.instance_id == other.instance_id
