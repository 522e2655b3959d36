"""The fetch purgatory: reads for fetches, and parks those that wait for more records.

A parked fetch has a deadline and an entry for each of its partitions. It is checked again only when
records are appended there, its topic changes or its deadline expires. It reads the log when it is
parked and when it is completed, not in between.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol

from kohort.log.errors import LogError, RequestRejected, StorageError
from kohort.log.index import AbortedTxn
from kohort.log.limits import LEADER_EPOCH
from kohort.log.partition import PartitionLog
from kohort.node.request import ITEMS_PER_SLICE
from kohort.node.timers import Timers
from kohort.node.topics import Topics, find_leader_epoch_error
from kohort.types import DeadlineMillis, ErrorCode, Millis, Offset, Partition, Topic, value


@value
class PartitionFetch:
    """One partition of a fetch, and the offset to read from."""

    topic: Topic
    partition: Partition
    offset: Offset
    bytes_max: int
    leader_epoch: int
    last_epoch: int = -1
    """The leader epoch of the last record that the client has read, if it sent it (KIP-595)."""


@value
class LogReadResult:
    """The records of one partition, or an error."""

    error: ErrorCode = ErrorCode.NONE
    records: bytes = b""
    start_offset: Offset = Offset(-1)
    end_offset: Offset = Offset(-1)
    last_stable_offset: Offset = Offset(-1)
    aborted: tuple[AbortedTxn, ...] = ()
    """For read_committed: the transactions whose records the client must skip."""
    has_diverged: bool = False
    """Whether the client has read beyond the end of this log; it gets no records then."""


@value
class FetchParams:
    """A fetch of many partitions. Its result has one `LogReadResult` for each, in order."""

    partitions: tuple[PartitionFetch, ...]
    bytes_min: int
    bytes_max: int
    wait_ms: Millis
    is_committed_only: bool


class FetchWaiter(Protocol):
    """Waits for the result of one parked fetch."""

    def deliver(self, reply: list[LogReadResult], /) -> None:
        """Must not submit another request; the next iteration does."""

    def fail(self, error: Exception, /) -> None:
        """An internal error happened during the read."""


@dataclass(slots=True)
class _DelayedFetch:
    fetch: FetchParams
    waiter: FetchWaiter
    missing_bytes: int


class FetchPurgatory:
    """`appended`, `topic_changed` and `fire_due` only mark parked fetches as ready; `complete`
    reads for them, once per event-loop iteration."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._delayed: dict[int, _DelayedFetch] = {}
        self._by_partition: dict[tuple[Topic, Partition], dict[int, None]] = {}
        self.ready: dict[int, None] = {}
        """The numbers of the fetches that `complete` will complete."""
        self.timers: Timers[int] = Timers()
        self._last_number = 0

    def __len__(self) -> int:
        return len(self._delayed)

    def submit(self, fetch: FetchParams, waiter: FetchWaiter) -> list[LogReadResult] | int:
        """Return the result if there are enough bytes, an error, or if the client does not wait.

        Otherwise park the fetch and return its number, for `withdraw`.
        """
        return self._submit(fetch, self._read(fetch), waiter)

    def submit_read(
        self, fetch: FetchParams, reads: list[LogReadResult], waiter: FetchWaiter
    ) -> list[LogReadResult] | int:
        """Like `submit`, for a fetch that `read_in_slices` has read."""
        if self._has_changed(fetch, reads):
            return reads
        return self._submit(fetch, reads, waiter)

    def _submit(
        self, fetch: FetchParams, reads: list[LogReadResult], waiter: FetchWaiter
    ) -> list[LogReadResult] | int:
        missing = fetch.bytes_min - sum(len(read.records) for read in reads)
        if missing <= 0 or fetch.wait_ms <= 0 or not fetch.partitions:
            return reads
        if any(read.error or read.has_diverged for read in reads):
            return reads
        return self._park(_DelayedFetch(fetch, waiter, missing))

    def _park(self, delayed: _DelayedFetch) -> int:
        self._last_number += 1
        number = self._last_number
        self._delayed[number] = delayed
        for target in delayed.fetch.partitions:
            self._by_partition.setdefault((target.topic, target.partition), {})[number] = None
        self.timers.set(number, delayed.fetch.wait_ms)
        return number

    def withdraw(self, number: int) -> None:
        """Forget a fetch whose client has disconnected."""
        if number in self._delayed:
            self._take(number)

    # Marking fetches as ready

    def appended(self, topic: Topic, partition: Partition, size: int) -> None:
        numbers = self._by_partition.get((topic, partition))
        if numbers is None:
            return
        for number in numbers:
            delayed = self._delayed[number]
            delayed.missing_bytes -= size
            if delayed.missing_bytes <= 0:
                self.ready[number] = None

    def topic_changed(self, topic: Topic) -> None:
        """The topic was deleted, or deleted and created again."""
        for (name, _), numbers in self._by_partition.items():
            if name == topic:
                self.ready |= numbers

    def make_all_ready(self) -> None:
        self.ready |= dict.fromkeys(self._delayed)

    def fire_due(self, deadline: DeadlineMillis) -> None:
        self.ready |= dict.fromkeys(self.timers.take_due(deadline))

    def complete(self, bytes_max: int) -> None:
        """Read for the fetches that are ready, and deliver the results.

        Once more than `bytes_max` are read, the rest stays ready for the next iteration.
        """
        while self.ready and bytes_max > 0:
            delayed = self._take(next(iter(self.ready)))
            try:
                reads = self._read(delayed.fetch)
            except Exception as error:  # it affects only this fetch
                delayed.waiter.fail(error)
            else:
                bytes_max -= sum(len(read.records) for read in reads)
                delayed.waiter.deliver(reads)

    def _take(self, number: int) -> _DelayedFetch:
        delayed = self._delayed.pop(number)
        self.ready.pop(number, None)
        self.timers.cancel(number)
        for target in delayed.fetch.partitions:
            key = (target.topic, target.partition)
            numbers = self._by_partition.get(key)
            if numbers is not None:
                numbers.pop(number, None)
                if not numbers:
                    del self._by_partition[key]
        return delayed

    def _has_changed(self, fetch: FetchParams, reads: list[LogReadResult]) -> bool:
        """Whether something was appended after it was read in slices. A parked fetch would
        not be marked for it, so this one must not wait."""
        partition = self._topics.catalog.partition
        for target, read in zip(fetch.partitions, reads, strict=True):
            log = partition(target.topic, target.partition)
            if log is None or log.end_offset != read.end_offset:
                return True
        return False

    def _read(self, fetch: FetchParams) -> list[LogReadResult]:
        reading = self.read_in_slices(fetch)
        while True:
            try:
                next(reading)
            except StopIteration as end:
                reads: list[LogReadResult] = end.value
                return reads

    def read_in_slices(self, fetch: FetchParams) -> Generator[None, Millis, list[LogReadResult]]:
        """Obey the size limits, except for the first batch: otherwise a client could get stuck."""
        reads: list[LogReadResult] = []
        left = fetch.bytes_max
        is_first = True
        for target in fetch.partitions:
            log = self._topics.catalog.partition(target.topic, target.partition)
            limit = max(0, min(target.bytes_max, left))
            read = _read(
                log,
                target,
                limit,
                at_least_one=is_first,
                committed_only=fetch.is_committed_only,
                note_error=self._topics.storage_errors.note,
            )
            if read.records:
                is_first = False
                left -= len(read.records)
            reads.append(read)
            if not len(reads) % ITEMS_PER_SLICE:
                yield
        return reads


def _read(
    log: PartitionLog | None,
    target: PartitionFetch,
    limit: int,
    *,
    at_least_one: bool,
    committed_only: bool,
    note_error: Callable[[LogError], None],
) -> LogReadResult:
    if log is None:
        return LogReadResult(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = find_leader_epoch_error(target.leader_epoch)
    if error is not None:
        return LogReadResult(error=error)
    if log.is_refused:
        return LogReadResult(error=ErrorCode.KAFKA_STORAGE_ERROR)
    start, end, stable = log.start_offset, log.end_offset, log.last_stable_offset
    if target.last_epoch > LEADER_EPOCH:
        return LogReadResult(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    if target.last_epoch == LEADER_EPOCH and target.offset > end:
        return LogReadResult(
            start_offset=start, end_offset=end, last_stable_offset=stable, has_diverged=True
        )
    if not start <= target.offset <= end:
        return LogReadResult(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    records = b""
    aborted: tuple[AbortedTxn, ...] = ()
    try:
        if target.offset < end and (limit or at_least_one):
            records = log.read(
                target.offset,
                limit,
                at_least_one=at_least_one,
                before=stable if committed_only else None,
            )
        if committed_only and records:
            aborted = log.aborted_transactions(target.offset, stable)
    except (RequestRejected, StorageError) as failure:
        note_error(failure)
        return LogReadResult(error=failure.code)
    return LogReadResult(
        records=records,
        start_offset=start,
        end_offset=end,
        last_stable_offset=stable,
        aborted=aborted,
    )
