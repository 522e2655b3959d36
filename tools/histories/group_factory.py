"""Creates the group of a scenario with random names, topics, rates and client profile.

The names do not reveal the scenario; only the labels do.
"""

from typing import Any, Final

from kohort.types import Topic
from kohort.virtual_time.rng import RandomStreams
from tools.histories.client_profiles import CLIENT_PROFILES, JAVA, ClientProfile
from tools.histories.group_script import GroupProfile, GroupScript, HistoryContext

_SUBJECTS: Final = (
    *("orders", "payments", "clicks", "invoices", "shipments", "carts", "prices", "users"),
    *("returns", "reviews", "sessions", "coupons", "stocks", "tickets", "meters", "bookings"),
)

_TASKS: Final = (
    *("billing", "search", "audit", "reports", "mailer", "ranking", "export", "scoring"),
    *("ledger", "alerts", "cache", "loader", "router", "archive", "sync", "enrich"),
)

_COMMIT_MS: Final = (5_000, 10_000, 30_000)


class GroupFactory:
    """For one group. It has its own random streams."""

    def __init__(
        self, context: HistoryContext, scenario: str, number: int, streams: RandomStreams
    ) -> None:
        self.context = context
        self.scenario = scenario
        self.streams = streams
        self.rng = streams.named("casting")
        self._number = number
        self.subject = self.rng.choice(_SUBJECTS)
        self.name = f"{self.subject}-{self.rng.choice(_TASKS)}-{number:03}"

    def topic(self, suffix: str = "") -> Topic:
        return Topic(f"{self.subject}{suffix}.{self._number:03}")

    def rates(self, partitions: int, rate: int | None = None) -> list[int]:
        """Records per hour; each partition has its own rate."""
        usual = self.rng.randrange(4_000, 60_000) if rate is None else rate
        return [usual * self.rng.randrange(80, 120) // 100 for _ in range(partitions)]

    def random_client(self) -> ClientProfile:
        return self.rng.choice(CLIENT_PROFILES)

    def create(
        self,
        *,
        partitions: int = 12,
        client: ClientProfile | None = None,
        topics: dict[Topic, list[int]] | None = None,
        **differing: Any,
    ) -> GroupScript:
        """By default the group has one topic and a random commit interval."""
        usual: dict[str, Any] = {
            "commit_ms": self.rng.choice(_COMMIT_MS),
            "has_own_names": self.rng.random() < 0.7,
        }
        profile = GroupProfile(
            client=client or JAVA,
            topics={self.topic(): self.rates(partitions)} if topics is None else topics,
            **{**usual, **differing},
        )
        return GroupScript(self.context, self.name, self.scenario, profile, self.streams)
