"""What a fetch reads, and the fetches that wait for more of it.

A waiting fetch is a deadline and an entry for each of its partitions: nobody looks at it before
records are appended there, its topic changes or its time is up. It reads when it comes and when
it is answered, never in between.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kohort.log.errors import Refused, StorageError
from kohort.log.index import AbortedTransaction
from kohort.log.limits import LEADER_EPOCH
from kohort.log.partition import PartitionLog
from kohort.node.timers import Timers
from kohort.node.topics import Topics, find_epoch_fault
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic, value

OnAppend = Callable[[Topic, Partition, int], None]
"""Told by whoever appends: so many bytes are new in a partition."""


@value
class Wanted:
    """One partition of a fetch, and from where on it is read."""

    topic: Topic
    partition: Partition
    offset: Offset
    bytes_max: int
    leader_epoch: int
    last_epoch: int = -1
    """Of the last record that was read before, as far as a reader tells (KIP-595)."""


@value
class Read:
    """What a partition had to give: records, or an error and nothing else."""

    error: ErrorCode = ErrorCode.NONE
    records: bytes = b""
    start_offset: Offset = Offset(-1)
    end_offset: Offset = Offset(-1)
    last_stable_offset: Offset = Offset(-1)
    aborted: tuple[AbortedTransaction, ...] = ()
    """What a reader of committed records must leave out; nothing for others."""
    has_diverged: bool = False
    """Whether the reader has read further than the log goes: nothing is given then."""


@value
class Fetch:
    """A question about many partitions, answered once through `deliver`, in their order."""

    wanted: tuple[Wanted, ...]
    bytes_min: int
    bytes_max: int
    wait_ms: Millis
    is_committed_only: bool
    deliver: Callable[[list[Read]], None]


@dataclass(slots=True)
class _Waiting:
    fetch: Fetch
    missing: int


class Fetches:
    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._waiting: dict[int, _Waiting] = {}
        self._by_partition: dict[tuple[Topic, Partition], dict[int, None]] = {}
        self._timers: Timers[int] = Timers()
        self.next_deadline = self._timers.next_deadline
        self._last_number = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def submit(self, fetch: Fetch, now: Millis) -> int | None:
        """Answer at once if there is enough, something is wrong or nobody wants to wait.

        Otherwise returns the number it waits under.
        """
        reads = self._read(fetch)
        missing = fetch.bytes_min - sum(len(read.records) for read in reads)
        is_settled = missing <= 0 or fetch.wait_ms <= 0 or not fetch.wanted
        if is_settled or any(read.error or read.has_diverged for read in reads):
            fetch.deliver(reads)
            return None
        return self._park(_Waiting(fetch, missing), now)

    def withdraw(self, number: int) -> None:
        """Whoever has asked is gone."""
        self._take(number)

    def appended(self, topic: Topic, partition: Partition, size: int) -> None:
        """So many bytes are new in a partition: whoever has waited for them is answered."""
        numbers = self._by_partition.get((topic, partition))
        if numbers is None:
            return
        ready = []
        for number in numbers:
            waiting = self._waiting[number]
            waiting.missing -= size
            if waiting.missing <= 0:
                ready.append(number)
        self._answer(ready)

    def topic_changed(self, topic: Topic) -> None:
        """The topic is gone or another: whoever waits for it is told what there is now."""
        numbers: dict[int, None] = {}
        for (name, _), waiting in self._by_partition.items():
            if name == topic:
                numbers |= waiting
        self._answer(list(numbers))

    def answer_all(self) -> None:
        self._answer(list(self._waiting))

    def fire_due(self, now: Millis) -> None:
        self._answer(self._timers.take_due(now))

    def _park(self, waiting: _Waiting, now: Millis) -> int:
        self._last_number += 1
        number = self._last_number
        self._waiting[number] = waiting
        for wanted in waiting.fetch.wanted:
            self._by_partition.setdefault((wanted.topic, wanted.partition), {})[number] = None
        self._timers.set(number, Millis(now + waiting.fetch.wait_ms))
        return number

    def _answer(self, numbers: list[int]) -> None:
        # All are taken out first: an answer may lead to the next question of the same client.
        fetches = [self._take(number) for number in numbers]
        for fetch in fetches:
            fetch.deliver(self._read(fetch))

    def _take(self, number: int) -> Fetch:
        fetch = self._waiting.pop(number).fetch
        self._timers.cancel(number)
        for wanted in fetch.wanted:
            key = (wanted.topic, wanted.partition)
            numbers = self._by_partition.get(key)
            if numbers is not None:
                numbers.pop(number, None)
                if not numbers:
                    del self._by_partition[key]
        return fetch

    def _read(self, fetch: Fetch) -> list[Read]:
        """Within the limits, but for the first batch of all, so that no reader gets stuck."""
        reads = []
        left = fetch.bytes_max
        is_first = True
        for wanted in fetch.wanted:
            log = self._topics.catalog.partition(wanted.topic, wanted.partition)
            limit = max(0, min(wanted.bytes_max, left))
            read = _read(
                log, wanted, limit, at_least_one=is_first, committed_only=fetch.is_committed_only
            )
            if read.records:
                is_first = False
                left -= len(read.records)
            reads.append(read)
        return reads


def _read(
    log: PartitionLog | None,
    wanted: Wanted,
    limit: int,
    *,
    at_least_one: bool,
    committed_only: bool,
) -> Read:
    if log is None:
        return Read(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    fault = find_epoch_fault(wanted.leader_epoch)
    if fault is not None:
        return Read(error=fault)
    start, end, stable = log.start_offset, log.end_offset, log.last_stable_offset
    if wanted.last_epoch > LEADER_EPOCH:
        return Read(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    if wanted.last_epoch == LEADER_EPOCH and wanted.offset > end:
        return Read(
            start_offset=start, end_offset=end, last_stable_offset=stable, has_diverged=True
        )
    if not start <= wanted.offset <= end:
        return Read(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    records = b""
    aborted: tuple[AbortedTransaction, ...] = ()
    try:
        if wanted.offset < end and (limit or at_least_one):
            records = log.read(
                wanted.offset,
                limit,
                at_least_one=at_least_one,
                before=stable if committed_only else None,
            )
        if committed_only and records:
            aborted = log.aborted_transactions(wanted.offset, stable)
    except (Refused, StorageError) as error:
        return Read(error=error.code)
    return Read(
        records=records,
        start_offset=start,
        end_offset=end,
        last_stable_offset=stable,
        aborted=aborted,
    )
