"""A clock that a test sets: the wall clock and the monotonic clock move together, or apart."""

from kohort.types import Millis
from tests.node.broker_harness import START


class SteppedClock:
    def __init__(self) -> None:
        self._monotonic_ms = 5_000
        self._wall_ahead_ms: int = START

    def now(self) -> Millis:
        return Millis(self._wall_ahead_ms + self._monotonic_ms)

    def monotonic(self) -> float:
        return self._monotonic_ms / 1000

    def advance(self, ms: int) -> None:
        """Time passes, for both clocks."""
        self._monotonic_ms += ms

    def set_wall(self, by_ms: int) -> None:
        """The wall clock is set forward, or back."""
        self._wall_ahead_ms += by_ms
