"""What producers write: how long every partition's log is at any moment, by formula.

Rates are records an hour and follow the hours of a day. All numbers are whole, so that every
machine agrees on every offset.
"""

from typing import Final

from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis, Offset, Partition, Topic, value

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS

_PERCENT: Final = (
    *(40, 35, 30, 30, 35, 45, 60, 80, 100, 120, 130, 135),
    *(130, 130, 135, 130, 125, 120, 120, 125, 120, 100, 75, 55),
)
"""How much of the usual rate each hour of the day sees, in UTC."""

_BEFORE: Final = tuple(sum(_PERCENT[:hour]) for hour in range(25))

_WHOLE: Final = 100 * _HOUR_MS


def progress(at: int) -> int:
    """How much an hour's rate has been worked off since 1970, in parts of _WHOLE."""
    days, in_day = divmod(at, _DAY_MS)
    hour, in_hour = divmod(in_day, _HOUR_MS)
    return (days * _BEFORE[24] + _BEFORE[hour]) * _HOUR_MS + _PERCENT[hour] * in_hour


@value
class Flow:
    """One partition: what it held when it was first seen, and what is added in an hour."""

    base: int
    rate: int
    since: int
    """The progress at which it was first seen."""
    born_ms: Millis

    def end(self, progressed: int) -> int:
        """The log's end at a moment of that progress."""
        return self.base + max(0, self.rate * (progressed - self.since) // _WHOLE)

    @property
    def start(self) -> int:
        """Where its log begins; a day of records is kept at least."""
        return max(0, self.base - 24 * self.rate)


class Feed:
    """All topics of the corpus."""

    def __init__(self) -> None:
        self.flows: dict[TopicPartition, Flow] = {}
        self._counts: dict[Topic, int] = {}

    def add(self, topic: Topic, rates: list[int], at: Millis, *, is_new: bool = False) -> None:
        """A topic, or more partitions of one, which are empty if they are new."""
        first = self._counts.get(topic, 0)
        for number, rate in enumerate(rates, start=first):
            base = 0 if is_new else 200 * rate + 17 * number
            flow = Flow(base=base, rate=rate, since=progress(at), born_ms=at)
            self.flows[TopicPartition(topic, Partition(number))] = flow
        self._counts[topic] = first + len(rates)

    @property
    def counts(self) -> dict[Topic, int]:
        """How many partitions each topic has."""
        return self._counts

    def end(self, partition: TopicPartition, at: int) -> Offset:
        return Offset(self.flows[partition].end(progress(at)))
