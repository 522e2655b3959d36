"""The rebalances a consumer has lived through: the last ones, newest last."""

from collections import deque
from typing import Final

from kohort.client.rebalances import Rebalance

REBALANCES_MAX: Final = 1_000
"""A group that rebalances every second for a quarter of an hour; older ones are forgotten."""


class History:
    def __init__(self, most: int = REBALANCES_MAX) -> None:
        self._rebalances: deque[Rebalance] = deque(maxlen=most)

    def add(self, rebalance: Rebalance) -> None:
        self._rebalances.append(rebalance)

    def rebalances(self) -> list[Rebalance]:
        return list(self._rebalances)
