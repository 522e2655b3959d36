"""Balances partition counts between members by maximum flow (Dinic's algorithm).

A member may give a partition to any subscriber of its topic, also through others: A gives one to
B, and B one of another topic to C; only A then has fewer and only C more. As long as such a chain
ends at a member with at least two fewer, following it improves the balance. When there is no such
chain, the counts are as balanced as the subscriptions allow.

The search does not follow chains one by one. Members above the average load send to members below
it, shortest chains first. Members that remain above can then not reach members that remain below,
so both sides are balanced separately. Usually no member remains on either side.

Members and topics are numbers here, and partitions are only counted.
"""

from collections.abc import Iterable, Mapping, Sequence

from kohort.types import value


class PartitionCounts:
    """The number of partitions of each topic that each member holds."""

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


def balance(counts: PartitionCounts, fixed: Sequence[Mapping[int, int]]) -> None:
    """Balance the loads. `fixed` is, by member and topic, how many partitions must not move."""
    balancer = _Balancer(counts, fixed)
    regions = [list(range(len(counts.loads)))]
    while regions:
        region = regions.pop()
        loads = [counts.loads[member] for member in region]
        if loads and max(loads) - min(loads) > 1:
            regions += balancer.divide(region)


@value
class _LayeredGraph:
    """The members that some members can give partitions to, in breadth-first layers."""

    reached: set[int]
    givable: dict[int, list[int]]
    """By member: the topics of which it can give partitions to the next layer."""
    takers: dict[int, list[int]]
    """By topic: its subscribers in the next layer."""
    has_sink: bool
    """Whether the last layer has a member with too few partitions."""


class _Balancer:
    def __init__(self, counts: PartitionCounts, fixed: Sequence[Mapping[int, int]]) -> None:
        self._subscribers = counts.subscribers
        self._held = counts.held
        self._loads = counts.loads
        self._fixed = fixed
        self._move = counts.move
        self._region_of = [0] * len(counts.loads)
        self._region = 0

    def divide(self, region: list[int]) -> list[list[int]]:
        """Bring a region close to its average; return the parts that cannot reach it."""
        self._region += 1
        for member in region:
            self._region_of[member] = self._region
        loads = self._loads
        average = sum(loads[member] for member in region) // len(region)
        # First move from far above to far below: that takes the fewest moves.
        self._send_flow(region, above=average + 1, below=average)
        self._send_flow(region, above=average, below=average)
        self._send_flow(region, above=average + 1, below=average + 1)
        high = self._build_layers([each for each in region if loads[each] > average + 1]).reached
        middle = self._build_layers([each for each in region if loads[each] > average]).reached
        return [
            [each for each in region if each in high],
            [each for each in region if each not in middle],
        ]

    def _send_flow(self, region: list[int], *, above: int, below: int) -> None:
        """Move partitions from members with more than `above` to those with less than `below`."""
        while True:
            sources = [each for each in region if self._loads[each] > above]
            graph = self._build_layers(sources, below)
            if not graph.has_sink:
                return
            for source in sources:
                while self._loads[source] > above and self._augment(source, graph, below):
                    pass

    def _build_layers(self, sources: list[int], below: int = 0) -> _LayeredGraph:
        """Search breadth-first until a layer has a member with less than `below` partitions."""
        reached = set(sources)
        givable: dict[int, list[int]] = {}
        takers: dict[int, list[int]] = {}
        layer, has_sink = sources, False
        while layer and not has_sink:
            opened: set[int] = set()
            for member in layer:
                givable[member] = [
                    each for each in self._find_givable(member) if each not in takers
                ]
                opened.update(givable[member])
            found: set[int] = set()
            for topic in opened:
                # Members outside the region cannot improve it; skipping them saves much time.
                takers[topic] = [
                    each
                    for each in self._subscribers[topic]
                    if each not in reached and self._region_of[each] == self._region
                ]
                found.update(takers[topic])
            reached |= found
            layer = sorted(found)
            has_sink = any(self._loads[each] < below for each in layer)
        return _LayeredGraph(reached=reached, givable=givable, takers=takers, has_sink=has_sink)

    def _find_givable(self, member: int) -> list[int]:
        fixed = self._fixed[member]
        return [topic for topic, count in self._held[member].items() if count > fixed.get(topic, 0)]

    def _augment(self, source: int, graph: _LayeredGraph, below: int) -> bool:
        """Move one partition along each link of a chain, if there is one; drop dead ends."""
        chain = [source]
        topics: list[int] = []
        while chain:
            topic = self._find_topic(chain[-1], graph)
            if topic is None:
                chain.pop()
                if topics:
                    graph.takers[topics.pop()].pop()
                continue
            topics.append(topic)
            chain.append(graph.takers[topic][-1])
            if self._loads[chain[-1]] < below:
                for giver, taker, given in zip(chain, chain[1:], topics, strict=False):
                    self._move(given, giver, taker)
                return True
        return False

    def _find_topic(self, giver: int, graph: _LayeredGraph) -> int | None:
        topics = graph.givable.get(giver, [])
        held, fixed = self._held[giver], self._fixed[giver]
        while topics:
            topic = topics[-1]
            if graph.takers[topic] and held.get(topic, 0) > fixed.get(topic, 0):
                return topic
            topics.pop()
        return None
