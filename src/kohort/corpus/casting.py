"""Draws what a group is called, what it reads and what its processes are made of.

Names tell nothing about what will happen to a group: that is in the truth alone.
"""

from typing import Any, Final

from kohort.corpus.dice import Dice
from kohort.corpus.fleet import Fleet, Sketch, World
from kohort.corpus.makes import JAVA, MAKES, Make
from kohort.types import Topic

_THINGS: Final = (
    *("orders", "payments", "clicks", "invoices", "shipments", "carts", "prices", "users"),
    *("returns", "reviews", "sessions", "coupons", "stocks", "tickets", "meters", "bookings"),
)

_TASKS: Final = (
    *("billing", "search", "audit", "reports", "mailer", "ranking", "export", "scoring"),
    *("ledger", "alerts", "cache", "loader", "router", "archive", "sync", "enrich"),
)

_COMMIT_MS: Final = (5_000, 10_000, 30_000)


class Casting:
    """For one group: chance of its own, and the fleet that its script is written for."""

    def __init__(self, world: World, kind: str, number: int, dice: Dice) -> None:
        self.world = world
        self.kind = kind
        self.dice = dice
        self.chance = dice.named("casting")
        self._number = number
        self.thing = self.chance.choice(_THINGS)
        self.name = f"{self.thing}-{self.chance.choice(_TASKS)}-{number:03}"

    def topic(self, suffix: str = "") -> Topic:
        return Topic(f"{self.thing}{suffix}.{self._number:03}")

    def rates(self, partitions: int, rate: int | None = None) -> list[int]:
        """Records an hour; no two partitions are equally busy."""
        usual = self.chance.randrange(4_000, 60_000) if rate is None else rate
        return [usual * self.chance.randrange(80, 120) // 100 for _ in range(partitions)]

    def make(self) -> Make:
        return self.chance.choice(MAKES)

    def fleet(
        self,
        *,
        partitions: int = 12,
        make: Make | None = None,
        topics: dict[Topic, list[int]] | None = None,
        **differing: Any,
    ) -> Fleet:
        """Where nothing else is said: one topic, a make and a rhythm of commits by chance."""
        usual: dict[str, Any] = {
            "commit_ms": self.chance.choice(_COMMIT_MS),
            "has_own_names": self.chance.random() < 0.7,
        }
        sketch = Sketch(
            make=make or JAVA,
            topics={self.topic(): self.rates(partitions)} if topics is None else topics,
            **{**usual, **differing},
        )
        return Fleet(self.world, self.name, self.kind, sketch, self.dice)
