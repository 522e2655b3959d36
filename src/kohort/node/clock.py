"""The one place where the node asks what time it is."""

import time
from typing import Protocol

from kohort.types import Millis


class Clock(Protocol):
    def now(self) -> Millis: ...


class SystemClock:
    """The wall clock, made to never step back: deadlines and generations only go forward."""

    def __init__(self) -> None:
        self._last = Millis(0)

    def now(self) -> Millis:
        # Asked for every request, so that even a call of max() would be felt.
        now: Millis = time.time_ns() // 1_000_000  # type: ignore[assignment]  # a call less
        if now > self._last:  # noqa: PLR1730
            self._last = now
        return self._last
