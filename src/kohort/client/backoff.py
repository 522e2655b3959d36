"""How long to wait before trying again: twice as long each time, up to a limit, and never in step.

The dice are an argument: what is tried again at the same moment by everyone fails again.
"""

from collections.abc import Callable
from typing import Final

from kohort.types import Millis

_JITTER: Final = 0.2
"""Kafka's own: up to a fifth sooner or later."""

_DOUBLINGS_MAX: Final = 31
"""A millisecond has become three weeks by then."""


def backoff_ms(attempts: int, first_ms: Millis, most_ms: Millis, roll: float) -> Millis:
    """After so many failures that came before this one; `roll` is from 0 up to 1."""
    if first_ms >= most_ms:
        return most_ms
    wait_ms = min(first_ms << min(attempts, _DOUBLINGS_MAX), most_ms)
    jittered_ms = wait_ms * (1 - _JITTER + 2 * _JITTER * roll)
    return Millis(min(int(jittered_ms), most_ms))


class Backoff:
    """The same, with its limits and dice given once."""

    def __init__(self, first_ms: Millis, most_ms: Millis, roll: Callable[[], float]) -> None:
        self._first_ms = first_ms
        self._most_ms = most_ms
        self._roll = roll

    def after(self, now: Millis, attempts: int) -> Millis:
        """The moment to try again, after so many failures that came before this one."""
        return Millis(now + backoff_ms(attempts, self._first_ms, self._most_ms, self._roll()))
