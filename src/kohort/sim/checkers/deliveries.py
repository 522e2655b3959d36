"""Every promised record is processed, none is skipped by a commit, and none again after one.

A record is settled once its group has committed behind it. Who processes a settled one again did
not begin where the others ended. In a run where nothing goes wrong, none is processed twice.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from kohort.client.topic_partition import TopicPartition
from kohort.sim.checkers.violation import Violation
from kohort.types import value

_RULE = "deliveries"

Key = tuple[str, TopicPartition]


@value
class Worker:
    """Who takes up a record: a process, and what it believes to be just then."""

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
        self, promised: Callable[[TopicPartition], dict[int, str]], *, is_orderly: bool
    ) -> None:
        self._promised = promised
        self._is_orderly = is_orderly
        self._processed: dict[Key, dict[int, set[str]]] = {}
        self._settled: dict[Key, _Settled] = {}
        self._disturbed: set[TopicPartition] = set()
        self._is_recounted = False
        self._excused: set[Key] = set()

    @property
    def count(self) -> int:
        """How many records were processed, each once."""
        return sum(len(offsets) for offsets in self._processed.values())

    def taken(self, worker: Worker, partition: TopicPartition, offset: int, text: str) -> None:
        """A program begins to work on a record."""
        key = (worker.group, partition)
        if text not in self._processed.get(key, {}).get(offset, ()):
            return
        if self._is_orderly and key not in self._excused:
            what = f"{worker.process} takes {_show(key, offset)} again, and nothing went wrong"
            raise Violation(_RULE, what)
        settled = self._settled.get(key, _NOTHING)
        # One who has lost the partition without knowing may well work on, in its old generation.
        is_later = worker.generation > settled.generation and not self._is_recounted
        knows = is_later or worker.member_id == settled.member_id
        if offset < settled.offset and knows and partition not in self._disturbed:
            what = f"{worker.process} takes {_show(key, offset)} again, and it was committed"
            raise Violation(_RULE, what)

    def processed(self, worker: Worker, partition: TopicPartition, offset: int, text: str) -> None:
        processed = self._processed.setdefault((worker.group, partition), {})
        processed.setdefault(offset, set()).add(text)

    def committed(
        self, group: str, partition: TopicPartition, offset: int, generation: int, member_id: str
    ) -> None:
        """A commit was acknowledged: all before it must be done with."""
        key = (group, partition)
        processed = self._processed.get(key, {})
        for each, text in self._promised(partition).items():
            if each < offset and text not in processed.get(each, ()):
                what = f"{_show(key, offset)} committed, and {each} ({text}) was not processed"
                raise Violation(_RULE, what)
        if offset > self._settled.get(key, _NOTHING).offset:
            self._settled[key] = _Settled(offset=offset, generation=generation, member_id=member_id)

    def left_amid_rebalance(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """A member closed while its group was rebalancing, when it could not commit: as Kafka's."""
        self._excused |= {(group, partition) for partition in partitions}

    def moved_back(self, group: str, partition: TopicPartition, offset: int) -> None:
        """The group will begin there again, and rightly."""
        settled = self._settled.get((group, partition), _NOTHING)
        if offset < settled.offset:
            self._settled[group, partition] = replace(settled, offset=offset)

    def disturbed(self, partition: TopicPartition) -> None:
        """Records were lost: readers begin anew."""
        self._disturbed.add(partition)

    def forgotten(self) -> None:
        """Commits and generations were lost: a higher number need not be a later one any more."""
        self._settled.clear()
        self._is_recounted = True

    def find_unprocessed(self, group: str, partition: TopicPartition) -> int | None:
        """The first record that was promised and not processed."""
        processed = self._processed.get((group, partition), {})
        missing = [
            offset
            for offset, text in self._promised(partition).items()
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
