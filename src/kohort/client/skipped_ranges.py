"""Offsets that a program has skipped because their batches cannot be decoded: reported and counted.

A broker that reports a damaged batch does not say where it ends, so it is skipped offset by offset.
Adjacent offsets with the same reason are therefore reported as one range.
"""

from collections.abc import Callable

from kohort.types import Offset, TopicPartition, value


@value
class _Range:
    partition: TopicPartition
    first: Offset
    stop: Offset
    reason: str


class SkippedRanges:
    def __init__(self, report: Callable[[str], object]) -> None:
        self._report = report
        self._open: _Range | None = None
        self.count = 0
        """The ranges so far."""
        self.offset_count = 0

    def add(self, partition: TopicPartition, first: Offset, stop: Offset, reason: str) -> None:
        """Offsets from `first` up to but excluding `stop` are skipped."""
        self.offset_count += stop - first
        before = self._open
        if before and (before.partition, before.stop, before.reason) == (partition, first, reason):
            first = before.first
        else:
            self.flush()
            self.count += 1
        self._open = _Range(partition=partition, first=first, stop=stop, reason=reason)

    def flush(self) -> None:
        """Report the range that may have been continued."""
        skipped, self._open = self._open, None
        if skipped is not None:
            topic, number = skipped.partition
            self._report(
                f"skipped offsets {skipped.first} to {skipped.stop - 1} of {topic}-{number}, "
                f"which cannot be decoded: {skipped.reason}"
            )

    def report_total(self) -> None:
        """Report the last range, and how many there were."""
        self.flush()
        if self.count:
            self._report(
                f"skipped {self.offset_count} offsets in {self.count} ranges that cannot be decoded"
            )
