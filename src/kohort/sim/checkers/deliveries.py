"""Every acknowledged record is processed; no commit skips one; none is processed after its commit.

A member that processes a record before the committed offset has not continued where the others
stopped. Without faults, no record is processed twice.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from kohort.sim.checkers import Violation
from kohort.types import TopicPartition, value

_RULE = "deliveries"

Key = tuple[str, TopicPartition]


@value
class Worker:
    """A process that reads a record, with the generation it claims."""

    process: str
    group: str
    generation: int
    member_id: str


@value
class _Settled:
    offset: int
    generation: int
    member_id: str


_NOTHING = _Settled(offset=0, generation=-1, member_id="")


class Deliveries:
    def __init__(
        self, acknowledged_records: Callable[[TopicPartition], dict[int, str]], *, is_orderly: bool
    ) -> None:
        self._acknowledged = acknowledged_records
        self._is_orderly = is_orderly
        self._processed: dict[Key, dict[int, set[str]]] = {}
        self._settled: dict[Key, _Settled] = {}
        self._affected: set[TopicPartition] = set()
        self._is_recounted = False
        self._excused: set[Key] = set()

    @property
    def count(self) -> int:
        """The number of distinct records processed."""
        return sum(len(offsets) for offsets in self._processed.values())

    def taken(self, worker: Worker, partition: TopicPartition, offset: int, text: str) -> None:
        """An application starts to process a record."""
        key = (worker.group, partition)
        if text not in self._processed.get(key, {}).get(offset, ()):
            return
        if self._is_orderly and key not in self._excused:
            what = f"{worker.process} takes {_show(key, offset)} again without any fault"
            raise Violation(_RULE, what)
        settled = self._settled.get(key, _NOTHING)
        # A member that has lost the partition without knowing may continue in its old generation.
        is_later = worker.generation > settled.generation and not self._is_recounted
        knows = is_later or worker.member_id == settled.member_id
        if offset < settled.offset and knows and partition not in self._affected:
            what = f"{worker.process} takes {_show(key, offset)} again after its commit"
            raise Violation(_RULE, what)

    def processed(self, worker: Worker, partition: TopicPartition, offset: int, text: str) -> None:
        processed = self._processed.setdefault((worker.group, partition), {})
        processed.setdefault(offset, set()).add(text)

    def committed(
        self, group: str, partition: TopicPartition, offset: int, generation: int, member_id: str
    ) -> None:
        """A commit was acknowledged: all records before it must be processed."""
        key = (group, partition)
        processed = self._processed.get(key, {})
        for each, text in self._acknowledged(partition).items():
            if each < offset and text not in processed.get(each, ()):
                what = f"{_show(key, offset)} committed, but {each} ({text}) was not processed"
                raise Violation(_RULE, what)
        if offset > self._settled.get(key, _NOTHING).offset:
            self._settled[key] = _Settled(offset=offset, generation=generation, member_id=member_id)

    def left_amid_rebalance(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """A member closed during a rebalance, when it could not commit; as in Kafka."""
        self._excused |= {(group, partition) for partition in partitions}

    def moved_back(self, group: str, partition: TopicPartition, offset: int) -> None:
        """The group continues at a lower offset, which is allowed."""
        settled = self._settled.get((group, partition), _NOTHING)
        if offset < settled.offset:
            self._settled[group, partition] = replace(settled, offset=offset)

    def records_lost(self, partition: TopicPartition) -> None:
        """Records were lost, so readers start again."""
        self._affected.add(partition)

    def forgotten(self) -> None:
        """Commits and generations were lost, so a higher generation is not always a later one."""
        self._settled.clear()
        self._is_recounted = True

    def find_unprocessed(self, group: str, partition: TopicPartition) -> int | None:
        """The first acknowledged record that was not processed."""
        processed = self._processed.get((group, partition), {})
        missing = [
            offset
            for offset, text in self._acknowledged(partition).items()
            if text not in processed.get(offset, ())
        ]
        return min(missing, default=None)

    def check_end(self, group: str, partition: TopicPartition) -> None:
        missing = self.find_unprocessed(group, partition)
        if missing is not None:
            raise Violation(_RULE, f"{_show((group, partition), missing)} was never processed")


def _show(key: Key, offset: int) -> str:
    group, (topic, partition) = key
    return f"{group}/{topic}-{partition}@{offset}"
