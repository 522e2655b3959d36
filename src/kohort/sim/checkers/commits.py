"""A commit that was acknowledged, or shown to anybody, is there until a later one takes its place.

Commits are taken up in the order they arrive. Whoever asks is shown the last one that was
acknowledged before, or one that arrived after that and may have been kept. And nobody moves a
partition back behind what somebody else has committed: each begins where the others have ended.

One who was given the partition later may, though: a static member that missed a generation works
on, as in Kafka, does not know that the partition is another's by now, and commits when it joins.
"""

from collections.abc import Callable

from kohort.client.topic_partition import TopicPartition
from kohort.sim.checkers.violation import Violation
from kohort.types import value

_RULE = "commits"

Writer = tuple[int, str]
"""A generation, and a member of it."""


@value
class Kept:
    """One partition's part of a commit."""

    order: int
    offset: int
    writer: Writer
    dealt: int = -1
    """The generation that gave the partition to its writer; -1 where none is known to have."""


class Register:
    """What is committed for one partition of one group, as far as can be known."""

    def __init__(self) -> None:
        self.certain: Kept | None = None
        self.possible: dict[int, Kept] = {}
        """Those that arrived after it and were not refused, by their order."""
        self.is_forgotten = False
        """The node may have lost any of it."""
        self.highest = -1
        """Of all that were ever certain."""
        self.history: list[Kept] = []

    @property
    def offset(self) -> int:
        return self.certain.offset if self.certain is not None else -1

    def settle(self, kept: Kept) -> None:
        self.certain = kept
        self.is_forgotten = False
        self.highest = max(self.highest, kept.offset)
        self.possible = {order: each for order, each in self.possible.items() if order > kept.order}

    def offsets(self) -> set[int]:
        """Everything that may be shown; -1 stands for nothing."""
        shown = {self.offset} | {each.offset for each in self.possible.values()}
        if self.is_forgotten:
            shown |= {-1} | {each.offset for each in self.history}
        return shown


Key = tuple[str, TopicPartition]


class Commits:
    def __init__(self, on_back: Callable[[str, TopicPartition, int], None]) -> None:
        self._registers: dict[Key, Register] = {}
        self._on_back = on_back
        self._disturbed: set[TopicPartition] = set()

    def find(self, group: str, partition: TopicPartition) -> int:
        """What is committed for certain; -1 where nothing is."""
        register = self._registers.get((group, partition))
        return register.offset if register is not None else -1

    def is_unfaithful(self, group: str, partition: TopicPartition) -> bool:
        """Whether less may be committed than somebody was told: it was lost with the power, or an
        older commit of the same member has arrived late, on a connection it had given up."""
        register = self._registers.get((group, partition))
        return register is not None and (
            register.is_forgotten or register.offset < register.highest
        )

    def arrived(self, group: str, partition: TopicPartition, kept: Kept) -> None:
        register = self._registers.setdefault((group, partition), Register())
        register.possible[kept.order] = kept
        register.history.append(kept)

    def refused(self, group: str, partition: TopicPartition, order: int) -> None:
        self._registers[group, partition].possible.pop(order, None)

    def accepted(self, group: str, partition: TopicPartition, order: int) -> None:
        register = self._registers[group, partition]
        kept = register.possible.get(order)
        if kept is None:
            return  # a later one was acknowledged before
        self._settle(group, partition, register, kept)

    def _settle(
        self, group: str, partition: TopicPartition, register: Register, kept: Kept
    ) -> None:
        before = register.certain
        register.settle(kept)
        if before is None or kept.offset >= before.offset:
            return
        is_zombie = before.writer != kept.writer and before.dealt >= kept.dealt
        if is_zombie and partition not in self._disturbed:
            what = f"{_show(group, partition)} moved from {_tell(before)} back to {_tell(kept)}"
            raise Violation(_RULE, what)
        self._on_back(group, partition, kept.offset)

    def shown(self, group: str, partition: TopicPartition, offset: int, before: int) -> None:
        """Somebody asked, when `before` was certain, and is shown this; -1 stands for nothing."""
        register = self._registers.setdefault((group, partition), Register())
        if offset in (register.offset, before):
            return
        if offset not in register.offsets():
            allowed = ",".join(map(str, sorted(register.offsets())))
            what = f"{_show(group, partition)} is shown as {offset}, and must be {allowed}"
            raise Violation(_RULE, what)
        # What was shown must stay, whether it was acknowledged or not.
        found = [each for each in register.history if each.offset == offset]
        if found:
            self._settle(group, partition, register, found[-1])

    # What is excused

    def disturbed(self, partition: TopicPartition) -> None:
        """Records of it were lost, so that readers begin anew."""
        self._disturbed.add(partition)

    def forgotten(self) -> None:
        for register in self._registers.values():
            register.certain = None
            register.is_forgotten = True


def _show(group: str, partition: TopicPartition) -> str:
    return f"{group}/{partition.topic}-{partition.partition}"


def _tell(kept: Kept) -> str:
    generation, member_id = kept.writer
    return f"{kept.offset} (of {member_id} in {generation})"
