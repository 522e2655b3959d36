"""An acknowledged record is where its producer was told, offsets have no gaps, nothing changes,
and what an idempotent producer sends twice is there once.

What was read without having been acknowledged, or acknowledged without having been synced, may be
lost with the machine's power, and something else may stand in its place.
"""

from collections.abc import Callable, Sequence

from kohort.client.topic_partition import TopicPartition
from kohort.sim.checkers.violation import Violation

_RULE = "records"


class _Log:
    """What is known of one partition."""

    def __init__(self) -> None:
        self.known: dict[int, str] = {}
        """By offset, whatever was seen there."""
        self.places: dict[str, int] = {}
        """And the other way round."""
        self.promised: dict[int, bool] = {}
        """Which of them must stay, and whether they stay without power too."""
        self.replaced: set[int] = set()
        """Where something else stood that somebody has read."""
        self.read: set[int] = set()


class Records:
    def __init__(
        self, on_lost: Callable[[TopicPartition], None], is_unique: Callable[[str], bool]
    ) -> None:
        """A record that is unique has a producer that never writes it twice."""
        self._logs: dict[TopicPartition, _Log] = {}
        self._is_unique = is_unique
        self._on_lost = on_lost
        self._lost_at = -1
        """When the power was lost last: what was not promised then may be gone."""

    def _get(self, partition: TopicPartition) -> _Log:
        return self._logs.setdefault(partition, _Log())

    # What is seen. Whoever tells also says when it asked: an answer may have been on its way, or
    # lain unread, while the power was lost.

    def acknowledged(
        self,
        partition: TopicPartition,
        base_offset: int,
        values: Sequence[str],
        asked_at: int,
        *,
        is_synced: bool,
    ) -> None:
        log = self._get(partition)
        if asked_at < self._lost_at and not is_synced:
            return
        for offset, value in enumerate(values, base_offset):
            self._see(partition, offset, value)
            log.promised[offset] = is_synced

    def fetched(
        self,
        partition: TopicPartition,
        position: int,
        records: Sequence[tuple[int, str]],
        asked_at: int,
    ) -> None:
        """From a position on; the first batch may begin earlier."""
        log = self._get(partition)
        expected = position
        for offset, value in records:
            if offset >= position:
                if offset != expected:
                    what = f"{_show(partition)} has {offset} where {expected} should be"
                    raise Violation(_RULE, what)
                expected = offset + 1
            if asked_at >= self._lost_at or offset not in log.known:
                self._see(partition, offset, value)
            elif log.known[offset] != value:
                log.replaced.add(offset)
            log.read.add(offset)

    def _see(self, partition: TopicPartition, offset: int, value: str) -> None:
        log = self._get(partition)
        before = log.known.get(offset)
        if before == value:
            return
        if before is not None:
            self._check_replaced(partition, log, offset, value)
            if offset in log.read:
                log.replaced.add(offset)
        log.known[offset] = value
        self._check_unique(partition, log, offset, value)

    def _check_unique(self, partition: TopicPartition, log: _Log, offset: int, value: str) -> None:
        other = log.places.get(value)
        log.places[value] = offset
        # Where its first place may be lost, it may well have been written again.
        if other is not None and self._is_unique(value) and self._lost_at < 0:
            what = f"{_show(partition)} holds {value} at {other} and at {offset}"
            raise Violation(_RULE, what)

    def _check_replaced(
        self, partition: TopicPartition, log: _Log, offset: int, value: str
    ) -> None:
        if offset in log.promised:
            what = f"{_show(partition)}@{offset} was {log.known[offset]}, promised, and is {value}"
            raise Violation(_RULE, what)
        if self._lost_at < 0:
            what = f"{_show(partition)}@{offset} was {log.known[offset]} and is {value}"
            raise Violation(_RULE, what)
        self._on_lost(partition)

    def begins(self, partition: TopicPartition, beginning: int) -> None:
        """Somebody was told that a log begins here."""
        missing = [offset for offset in self._get(partition).promised if offset < beginning]
        if missing:
            what = f"{_show(partition)} begins at {beginning}, and {max(missing)} was promised"
            raise Violation(_RULE, what)

    def ends(self, partition: TopicPartition, end: int) -> None:
        """Somebody was told that a log ends here."""
        log = self._get(partition)
        missing = [offset for offset in log.promised if offset >= end]
        if missing:
            what = f"{_show(partition)} ends at {end}, and {min(missing)} was promised"
            raise Violation(_RULE, what)

    def out_of_range(self, partition: TopicPartition, offset: int) -> None:
        """A reader was told that there is no such offset, nor an end there."""
        if self._lost_at < 0:
            what = f"{_show(partition)}@{offset} is out of range, and nothing was lost"
            raise Violation(_RULE, what)
        self._on_lost(partition)

    def sequence_lost(self, partition: TopicPartition) -> None:
        """A producer was told that what it wrote before is not there."""
        if self._lost_at < 0:
            raise Violation(_RULE, f"{_show(partition)} forgot a producer, and nothing was lost")

    # What is excused

    def power_lost(self, now: int, *, is_all_lost: bool) -> None:
        """Promises that were not synced are void; all of them, where nothing is synced."""
        self._lost_at = now
        for log in self._logs.values():
            log.promised = {
                offset: is_synced
                for offset, is_synced in log.promised.items()
                if is_synced and not is_all_lost
            }

    # What must have been done with

    def promised(self, partition: TopicPartition) -> dict[int, str]:
        """What every group must process: promised, and never stood for something else."""
        log = self._get(partition)
        return {offset: log.known[offset] for offset in log.promised if offset not in log.replaced}

    def end(self, partition: TopicPartition) -> int:
        """After the last record that was promised."""
        return max(self._get(partition).promised, default=-1) + 1


def _show(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
