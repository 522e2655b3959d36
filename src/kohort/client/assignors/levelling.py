"""Makes loads as even as they can be, by handing partitions down from those with many.

A member may give a partition to any subscriber of its topic. Giving goes through several hands if
need be: A gives to B, and B one of another topic to C; only A then has less, and only C more. As
long as such a chain leads to somebody who has at least two less, taking it makes loads more even.
When none does, they are as even as they can be: in every other way to share the partitions out,
the loads are the same but for who has which, or they are worse.

Chains are not sought one by one. Whatever can flow from above the average load to below it flows
at once, along the shortest chains first (Dinic's algorithm). Who is still above can then reach
nobody who is still below; the two sides have nothing more to do with each other, and each is
levelled for itself. Mostly nobody is left on either side, and that was all.

Members and topics are numbers here, and partitions are counted, not named.
"""

from collections.abc import Iterable, Mapping, Sequence

from kohort.types import value


class Holdings:
    """How many partitions of which topic each member holds."""

    def __init__(
        self, subscribers: Sequence[Sequence[int]], held: Iterable[Mapping[int, int]]
    ) -> None:
        self.subscribers = subscribers
        """By topic."""
        self.held = [dict(each) for each in held]
        """By member, then by topic; never zero."""
        self.loads = [sum(each.values()) for each in self.held]

    def add(self, member: int, topic: int) -> None:
        held = self.held[member]
        held[topic] = held.get(topic, 0) + 1
        self.loads[member] += 1

    def move(self, topic: int, giver: int, taker: int) -> None:
        held = self.held[giver]
        held[topic] -= 1
        if not held[topic]:
            del held[topic]
        self.loads[giver] -= 1
        self.add(taker, topic)


def level(holdings: Holdings, fixed: Sequence[Mapping[int, int]]) -> None:
    """Level the loads; by member and topic, so many as are `fixed` stay where they are."""
    levelling = _Levelling(holdings, fixed)
    regions = [list(range(len(holdings.loads)))]
    while regions:
        region = regions.pop()
        loads = [holdings.loads[member] for member in region]
        if loads and max(loads) - min(loads) > 1:
            regions += levelling.divide(region)


@value
class _Slope:
    """Who can be given something by some members, and through whom: one layer below another."""

    reached: set[int]
    givable: dict[int, list[int]]
    """By member: the topics of which it can give to the layer below its own."""
    takers: dict[int, list[int]]
    """By topic: its subscribers in that layer."""
    has_foot: bool
    """Whether the last layer holds somebody who has too few."""


class _Levelling:
    def __init__(self, holdings: Holdings, fixed: Sequence[Mapping[int, int]]) -> None:
        self._subscribers = holdings.subscribers
        self._held = holdings.held
        self._loads = holdings.loads
        self._fixed = fixed
        self._move = holdings.move
        self._region_of = [0] * len(holdings.loads)
        self._region = 0

    def divide(self, region: list[int]) -> list[list[int]]:
        """Bring a region near its average, and name the parts of it that cannot come there."""
        self._region += 1
        for member in region:
            self._region_of[member] = self._region
        loads = self._loads
        average = sum(loads[member] for member in region) // len(region)
        # First what is out of place at both ends: that takes the fewest moves.
        self._pour(region, above=average + 1, below=average)
        self._pour(region, above=average, below=average)
        self._pour(region, above=average + 1, below=average + 1)
        high = self._descend([each for each in region if loads[each] > average + 1]).reached
        middle = self._descend([each for each in region if loads[each] > average]).reached
        return [
            [each for each in region if each in high],
            [each for each in region if each not in middle],
        ]

    def _pour(self, region: list[int], *, above: int, below: int) -> None:
        """Let those who have more than `above` give to those who have less than `below`."""
        while True:
            sources = [each for each in region if self._loads[each] > above]
            slope = self._descend(sources, below)
            if not slope.has_foot:
                return
            for source in sources:
                while self._loads[source] > above and self._hand_down(source, slope, below):
                    pass

    def _descend(self, sources: list[int], below: int = 0) -> _Slope:
        """Follow what can be given, layer by layer, until one holds somebody who has too few."""
        reached = set(sources)
        givable: dict[int, list[int]] = {}
        takers: dict[int, list[int]] = {}
        layer, has_foot = sources, False
        while layer and not has_foot:
            opened: set[int] = set()
            for member in layer:
                givable[member] = [
                    each for each in self._find_givable(member) if each not in takers
                ]
                opened.update(givable[member])
            found: set[int] = set()
            for topic in opened:
                # Outside of the region everybody has more; not to look there saves much time.
                takers[topic] = [
                    each
                    for each in self._subscribers[topic]
                    if each not in reached and self._region_of[each] == self._region
                ]
                found.update(takers[topic])
            reached |= found
            layer = sorted(found)
            has_foot = any(self._loads[each] < below for each in layer)
        return _Slope(reached=reached, givable=givable, takers=takers, has_foot=has_foot)

    def _find_givable(self, member: int) -> list[int]:
        fixed = self._fixed[member]
        return [topic for topic, count in self._held[member].items() if count > fixed.get(topic, 0)]

    def _hand_down(self, source: int, slope: _Slope, below: int) -> bool:
        """Give along one chain, if there is still one. Where it does not lead on is forgotten."""
        chain = [source]
        topics: list[int] = []
        while chain:
            topic = self._find_topic(chain[-1], slope)
            if topic is None:
                chain.pop()
                if topics:
                    slope.takers[topics.pop()].pop()
                continue
            topics.append(topic)
            chain.append(slope.takers[topic][-1])
            if self._loads[chain[-1]] < below:
                for giver, taker, given in zip(chain, chain[1:], topics, strict=False):
                    self._move(given, giver, taker)
                return True
        return False

    def _find_topic(self, giver: int, slope: _Slope) -> int | None:
        topics = slope.givable.get(giver, [])
        held, fixed = self._held[giver], self._fixed[giver]
        while topics:
            topic = topics[-1]
            if slope.takers[topic] and held.get(topic, 0) > fixed.get(topic, 0):
                return topic
            topics.pop()
        return None
