"""How far a member has read a partition: never past the log's end, never faster than it can."""

from dataclasses import dataclass
from typing import Final

from kohort.corpus.feed import Flow

_HOUR_MS: Final = 3_600_000

_SPEED_MIN: Final = 36_000
"""Ten records a second: whole numbers would round what is much slower down to nothing."""


@dataclass(slots=True)
class Reading:
    flow: Flow
    position: int
    """The next record to be processed."""
    looked_ms: int
    speed: int
    """Records an hour, at most; 0 where the program hangs."""

    def advance(self, progressed: int, now: int) -> int:
        """Where it is now, when producers have progressed so far."""
        reach = self.position + self.speed * (now - self.looked_ms) // _HOUR_MS
        end = self.flow.end(progressed)
        self.looked_ms = now
        end = min(end, reach)
        self.position = max(self.position, end)
        return self.position


def usual_speed(flow: Flow, factor: int = 6) -> int:
    """Fast enough to catch up within a while."""
    return max(factor * flow.rate, _SPEED_MIN)
