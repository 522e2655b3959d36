"""No two processes claim the same partition in the same generation of a group.

A process claims a partition in the generation that last assigned it. Claims in different
generations are allowed: the older process does not know yet that it lost the partition. So are
claims of two processes with one instance id, of which the older is fenced.
"""

from collections.abc import Mapping

from kohort.sim.checkers import Violation
from kohort.types import TopicPartition, value


@value
class ClaimedPartitions:
    """The partitions that a process claims to own."""

    group: str
    instance_id: str | None
    owned: Mapping[TopicPartition, int]
    """With the generation that assigned each."""


class ExclusiveOwnership:
    def __init__(self) -> None:
        self._claims: dict[str, ClaimedPartitions] = {}
        self._outdated: dict[str, Mapping[TopicPartition, int]] = {}
        """Claims in generations that the node has lost."""

    def claims(self, process: str, claim: ClaimedPartitions) -> None:
        self._claims[process] = claim
        owned = self._validly_owned(process)
        for other, its in self._claims.items():
            if other == process or its.group != claim.group or _is_same_instance(its, claim):
                continue
            for partition, generation in sorted(owned & self._validly_owned(other)):
                where = f"{partition.topic}-{partition.partition}"
                what = f"{process} and {other} both own {where} in generation {generation}"
                raise Violation("ownership", what)

    def _validly_owned(self, process: str) -> set[tuple[TopicPartition, int]]:
        owned = self._claims[process].owned.items()
        return set(owned - self._outdated.get(process, {}).items())

    def ended(self, process: str) -> None:
        self._claims.pop(process, None)
        self._outdated.pop(process, None)

    def forgotten(self) -> None:
        """The node may have lost generations, and form them again with other members.

        A process that owns partitions in a lost generation continues until it gets an error.
        """
        for process, claim in self._claims.items():
            self._outdated[process] = {**self._outdated.get(process, {}), **claim.owned}


def _is_same_instance(one: ClaimedPartitions, other: ClaimedPartitions) -> bool:
    return one.instance_id is not None and one.instance_id == other.instance_id
