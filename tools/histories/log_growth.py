"""The growth of the consumed logs: a formula gives each partition's end offset at any time.

Rates are records per hour and follow the time of day. All arithmetic is integer arithmetic, so
that every machine computes the same offsets.
"""

from typing import Final

from kohort.types import Millis, Offset, Partition, Topic, TopicPartition, value

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS

_PERCENT: Final = (
    *(40, 35, 30, 30, 35, 45, 60, 80, 100, 120, 130, 135),
    *(130, 130, 135, 130, 125, 120, 120, 125, 120, 100, 75, 55),
)
"""The traffic in each hour of the day (UTC), in percent of the usual rate."""

_PERCENT_BEFORE: Final = tuple(sum(_PERCENT[:hour]) for hour in range(25))

_USUAL_HOUR: Final = 100 * _HOUR_MS
"""The traffic of one hour at the usual rate, in the unit of `cumulative_traffic`."""


def cumulative_traffic(at: int) -> int:
    """All traffic from 1970 to this time, in percent of the usual rate times milliseconds."""
    days, in_day = divmod(at, _DAY_MS)
    hour, in_hour = divmod(in_day, _HOUR_MS)
    before = days * _PERCENT_BEFORE[24] + _PERCENT_BEFORE[hour]
    return before * _HOUR_MS + _PERCENT[hour] * in_hour


@value
class PartitionGrowth:
    base: int
    """Its end offset when it was created or the history began."""
    rate: int
    """Records per hour."""
    since: int
    """The cumulative traffic at that time."""
    created_ms: Millis

    def end(self, traffic: int) -> int:
        """The end offset at the time of that cumulative traffic."""
        return self.base + max(0, self.rate * (traffic - self.since) // _USUAL_HOUR)

    @property
    def start(self) -> int:
        """The log start offset; retention keeps at least a day of records."""
        return max(0, self.base - 24 * self.rate)


class LogGrowth:
    """The logs of all topics."""

    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, PartitionGrowth] = {}
        self._counts: dict[Topic, int] = {}

    def add(self, topic: Topic, rates: list[int], at: Millis, *, is_new: bool = False) -> None:
        """Add a topic, or partitions to a topic. New partitions are empty."""
        first = self._counts.get(topic, 0)
        for number, rate in enumerate(rates, start=first):
            base = 0 if is_new else 200 * rate + 17 * number
            growth = PartitionGrowth(
                base=base, rate=rate, since=cumulative_traffic(at), created_ms=at
            )
            self.partitions[TopicPartition(topic, Partition(number))] = growth
        self._counts[topic] = first + len(rates)

    @property
    def counts(self) -> dict[Topic, int]:
        """The number of partitions of each topic."""
        return self._counts

    def end(self, partition: TopicPartition, at: int) -> Offset:
        return Offset(self.partitions[partition].end(cumulative_traffic(at)))
