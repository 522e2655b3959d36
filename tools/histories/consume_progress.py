"""The position of a member in one partition: limited by the log end and by the member's speed."""

from dataclasses import dataclass
from typing import Final

from tools.histories.log_growth import PartitionGrowth

_HOUR_MS: Final = 3_600_000

_SPEED_MIN: Final = 36_000
"""Ten records per second: with integer arithmetic a much lower speed would round to zero."""


@dataclass(slots=True)
class ConsumeProgress:
    growth: PartitionGrowth
    position: int
    """The offset of the next record to process."""
    updated_ms: int
    speed: int
    """Records per hour, at most; 0 if the program hangs."""

    def advance(self, traffic: int, now: int) -> int:
        """Return the position now, given the cumulative traffic that producers have written."""
        reach = self.position + self.speed * (now - self.updated_ms) // _HOUR_MS
        end = self.growth.end(traffic)
        self.updated_ms = now
        end = min(end, reach)
        self.position = max(self.position, end)
        return self.position


def usual_speed(growth: PartitionGrowth, factor: int = 6) -> int:
    """Several times the rate of the log, so that members catch up."""
    return max(factor * growth.rate, _SPEED_MIN)
