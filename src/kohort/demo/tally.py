"""Counts what a demo tells, for its last word. Pure."""

from collections import Counter

from kohort.demo.news import Died, Explained, Found, News, Rebalanced, Returned
from kohort.types import GroupId


class Tally:
    def __init__(self) -> None:
        self._triggers: dict[str, Counter[GroupId]] = {}
        self.returned = 0
        self.findings: tuple[Found, ...] = ()
        """Of the last report."""
        self.died: tuple[Died, ...] = ()

    def note(self, news: News) -> None:
        match news:
            case Rebalanced():
                self._triggers.setdefault(news.trigger, Counter())[news.group_id] += 1
            case Returned():
                self.returned += 1
            case Explained():
                self.findings = news.findings
            case Died():
                self.died += (news,)
            case _:
                pass

    @property
    def triggers(self) -> dict[str, dict[GroupId, int]]:
        """Those that began the most rebalances come first."""
        ranked = sorted(self._triggers.items(), key=lambda item: (-item[1].total(), item[0]))
        return {trigger: dict(sorted(counts.items())) for trigger, counts in ranked}
