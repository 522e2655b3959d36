"""Exponential backoff with jitter, so that clients do not retry at the same time.

Callers pass the random numbers.
"""

from collections.abc import Callable
from typing import Final

from kohort.types import Millis

_JITTER: Final = 0.2
"""As in Kafka: up to 20 percent earlier or later."""

_DOUBLINGS_MAX: Final = 31
"""One millisecond doubled 31 times is about three weeks."""


def backoff_ms(attempts: int, first_ms: Millis, most_ms: Millis, roll: float) -> Millis:
    """The delay after `attempts` earlier failures; `roll` is a random number from 0 to 1."""
    if first_ms >= most_ms:
        return most_ms
    wait_ms = min(first_ms << min(attempts, _DOUBLINGS_MAX), most_ms)
    jittered_ms = wait_ms * (1 - _JITTER + 2 * _JITTER * roll)
    return Millis(min(int(jittered_ms), most_ms))


class Backoff:
    """Backoff with fixed limits and a source of random numbers."""

    def __init__(self, first_ms: Millis, most_ms: Millis, roll: Callable[[], float]) -> None:
        self._first_ms = first_ms
        self._most_ms = most_ms
        self._roll = roll

    def after(self, now: Millis, attempts: int) -> Millis:
        """When to try again after `attempts` earlier failures."""
        return Millis(now + backoff_ms(attempts, self._first_ms, self._most_ms, self._roll()))
