"""A commit that was acknowledged, or returned by OffsetFetch, stays until a later one replaces it.

Commits apply in the order of arrival, except that a commit behind a request which the node answers
late, on the same connection, applies at some time before its response. OffsetFetch returns the last
commit that was acknowledged before, or one that arrived after that and may have been stored. No
member moves a partition back behind the commit of another member: each continues where the others
stopped.

One exception, as in Kafka: a static member that missed a generation continues to read, does not
know that its partition was reassigned, and commits when it joins.
"""

from collections.abc import Callable
from dataclasses import replace

from kohort.sim.checkers import Violation
from kohort.types import TopicPartition, value

_RULE = "commits"

Writer = tuple[int, str]
"""A generation and a member id."""


@value
class SeenCommit:
    """A commit of one partition."""

    order: int
    offset: int
    writer: Writer
    assigned_in: int = -1
    """The generation that assigned the partition to its writer; -1 if unknown."""
    is_delayed: bool = False
    """It may be applied after commits that arrived later, until it is answered."""


class CommitHistory:
    """The commits of one partition of one group, as far as the wire shows them."""

    def __init__(self) -> None:
        self.certain: SeenCommit | None = None
        self.possible: dict[int, SeenCommit] = {}
        """Later commits that were not rejected, by their order."""
        self.is_forgotten = False
        """Whether the node may have lost commits."""
        self.highest = -1
        """The highest acknowledged offset."""
        self.history: list[SeenCommit] = []

    @property
    def offset(self) -> int:
        return self.certain.offset if self.certain is not None else -1

    def settle(self, kept: SeenCommit) -> None:
        self.certain = kept
        self.is_forgotten = False
        self.highest = max(self.highest, kept.offset)
        self.possible = {
            order: each
            for order, each in self.possible.items()
            if order > kept.order or (each.is_delayed and order != kept.order)
        }

    def offsets(self) -> set[int]:
        """All offsets that OffsetFetch may return; -1 for none."""
        fetched = {self.offset} | {each.offset for each in self.possible.values()}
        if self.is_forgotten:
            fetched |= {-1} | {each.offset for each in self.history}
        return fetched


Key = tuple[str, TopicPartition]


class CommitDurability:
    def __init__(self, on_back: Callable[[str, TopicPartition, int], None]) -> None:
        self._registers: dict[Key, CommitHistory] = {}
        self._on_back = on_back
        self._affected: set[TopicPartition] = set()

    def find(self, group: str, partition: TopicPartition) -> int:
        """The acknowledged offset; -1 if there is none."""
        register = self._registers.get((group, partition))
        return register.offset if register is not None else -1

    def may_have_regressed(self, group: str, partition: TopicPartition) -> bool:
        """Whether the committed offset may be lower than an acknowledged one.

        It was lost with the power, or an old commit of the same member arrived late on a closed
        connection.
        """
        register = self._registers.get((group, partition))
        return register is not None and (
            register.is_forgotten or register.offset < register.highest
        )

    def arrived(self, group: str, partition: TopicPartition, kept: SeenCommit) -> None:
        register = self._registers.setdefault((group, partition), CommitHistory())
        register.possible[kept.order] = kept
        register.history.append(kept)

    def refused(self, group: str, partition: TopicPartition, order: int) -> None:
        self._registers[group, partition].possible.pop(order, None)

    def accepted(self, group: str, partition: TopicPartition, order: int) -> None:
        register = self._registers[group, partition]
        kept = register.possible.get(order)
        if kept is None:
            return  # a later commit was acknowledged already
        if kept.is_delayed and register.certain is not None and register.certain.order > order:
            # Either of the two was applied last; the next acknowledged commit settles it.
            register.possible[order] = replace(kept, is_delayed=False)
            return
        self._settle(group, partition, register, kept)

    def _settle(
        self, group: str, partition: TopicPartition, register: CommitHistory, kept: SeenCommit
    ) -> None:
        before = register.certain
        register.settle(kept)
        if before is None or kept.offset >= before.offset:
            return
        is_zombie = before.writer != kept.writer and before.assigned_in >= kept.assigned_in
        if is_zombie and partition not in self._affected:
            change = f"moved from {_describe(before)} back to {_describe(kept)}"
            raise Violation(_RULE, f"{_show(group, partition)} {change}")
        self._on_back(group, partition, kept.offset)

    def fetched(self, group: str, partition: TopicPartition, offset: int, before: int) -> None:
        """OffsetFetch returned `offset`; `before` was acknowledged when it was requested."""
        register = self._registers.setdefault((group, partition), CommitHistory())
        if offset in (register.offset, before):
            return
        if offset not in register.offsets():
            allowed = ",".join(map(str, sorted(register.offsets())))
            what = f"{_show(group, partition)} was fetched as {offset}, expected one of {allowed}"
            raise Violation(_RULE, what)
        # An offset that was returned must stay, acknowledged or not.
        found = [each for each in register.history if each.offset == offset]
        if found:
            self._settle(group, partition, register, found[-1])

    # Losses

    def records_lost(self, partition: TopicPartition) -> None:
        """Records of this partition were lost, so readers start again."""
        self._affected.add(partition)

    def forgotten(self) -> None:
        for register in self._registers.values():
            register.certain = None
            register.is_forgotten = True


def _show(group: str, partition: TopicPartition) -> str:
    return f"{group}/{partition.topic}-{partition.partition}"


def _describe(kept: SeenCommit) -> str:
    generation, member_id = kept.writer
    return f"{kept.offset} (of {member_id} in {generation})"
