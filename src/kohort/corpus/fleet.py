"""A group under script: its topics, its processes, and what the script can do with them.

A script is a list of appointments: at this moment, this happens. Whatever is wrong on purpose is
said in the truth by whoever does it.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final

from kohort.client.topic_partition import TopicPartition
from kohort.coordinator.commands import CommitOffsets, LeaveGroup, Leaver, OffsetToCommit, Ticket
from kohort.coordinator.replies import Reply
from kohort.corpus.dice import Dice
from kohort.corpus.feed import Feed
from kohort.corpus.house import House
from kohort.corpus.makes import Make
from kohort.corpus.player import Player
from kohort.corpus.timeline import Action
from kohort.corpus.traits import Traits
from kohort.corpus.truth import Group, LookAlike, Pathology, Truth
from kohort.corpus.witness import Phase, Witness
from kohort.types import GroupId, InstanceId, Millis, Offset, Topic, value

MINUTE: Final = 60_000
_LOOK_MS: Final = 250


@value
class World:
    """What all groups of a corpus share."""

    house: House
    feed: Feed
    truth: Truth
    begin: Millis
    end: Millis
    everyone: "list[Fleet]"


@value
class Sketch:
    """What a kind of history wants its group to be like; members may differ from it."""

    make: Make
    topics: dict[Topic, list[int]]
    """Records an hour for each of their partitions."""
    assignors: tuple[str, ...] = ("range",)
    protocol_type: str = "consumer"
    session_ms: int = 45_000
    rebalance_ms: int = 300_000
    commit_ms: int | None = 5_000
    poll_ms: int = 400
    is_static: bool = False
    has_own_names: bool = True
    """Whether its processes have client ids of their own, or those their library gives them."""
    metadata: str = ""


class Fleet:
    def __init__(self, world: World, name: str, kind: str, sketch: Sketch, dice: Dice) -> None:
        self.world = world
        self.house, self.feed, self.timeline = world.house, world.feed, world.house.timeline
        self.group_id = GroupId(name)
        self.kind = kind
        self.sketch = sketch
        self.dice = dice
        self.chance: Random = dice.named("script")
        self.protocol_type = sketch.protocol_type
        self.is_cooperative = sketch.assignors[0] == "cooperative-sticky"
        self.witness = Witness(self.group_id, self.timeline, world.truth)
        self.players: list[Player] = []
        self.committed: dict[TopicPartition, int] = {}
        self._network = self.chance.randrange(1, 250)
        self._hosts = 0
        self.house.on_rebalance[self.group_id] = self._tell
        for topic, rates in sketch.topics.items():
            self.feed.add(topic, rates, world.begin)
        world.everyone.append(self)
        world.truth.groups.append(
            Group(
                group_id=self.group_id,
                kind=kind,
                protocol_type=sketch.protocol_type,
                topics=tuple(sketch.topics),
            )
        )

    def _tell(self) -> None:
        for player in self.players:
            player.is_told_of_rebalance()

    # When

    def moment(self, share: float) -> Millis:
        """Such a share of the history is over then."""
        length = self.world.end - self.world.begin
        return Millis(self.world.begin + round(length * share))

    def at(self, when: int, action: Action) -> None:
        self.timeline.at(when, action)

    def when(self, is_so: Callable[[], bool], action: Action) -> None:
        """As soon as it is so, looked at every now and then."""

        def look() -> None:
            if is_so():
                action()
            else:
                self.timeline.after(_LOOK_MS, look)

        look()

    def when_stable(self, action: Action) -> None:
        self.when(lambda: self.witness.phase is Phase.STABLE, action)

    # Who

    @property
    def alive(self) -> list[Player]:
        return [player for player in self.players if player.is_alive]

    @property
    def leader(self) -> Player | None:
        return next((each for each in self.alive if each.member_id == self.witness.leader), None)

    def fresh_host(self) -> str:
        self._hosts += 1
        return f"/10.{self._network}.{self._hosts // 200}.{self._hosts % 200 + 1}"

    def traits(self, number: int, **differing: Any) -> Traits:
        """What the group's process of that number is like."""
        sketch = self.sketch
        own_name = f"{self.group_id}-{number}"
        default_name = sketch.make.default_client_id.format(group=self.group_id)
        instance = InstanceId(f"{self.group_id}-pod-{number}") if sketch.is_static else None
        usual = Traits(
            make=sketch.make,
            client_id=own_name if sketch.has_own_names else default_name,
            host=self.fresh_host(),
            instance_id=instance,
            topics=frozenset(sketch.topics),
            assignors=sketch.assignors,
            session_ms=sketch.session_ms,
            rebalance_ms=sketch.rebalance_ms,
            commit_ms=sketch.commit_ms,
            poll_ms=sketch.poll_ms,
            metadata=sketch.metadata,
        )
        return replace(usual, **differing)

    def launch(self, traits: Traits) -> Player:
        """A process is started now."""
        player = Player(self, traits, self.dice.named("player", len(self.players)))
        self.players.append(player)
        player.start()
        return player

    # What

    def start(self, count: int, *, at: int | None = None, spread_ms: int = 2_000) -> None:
        """So many processes, one soon after the other."""
        first = len(self.players)
        for index in range(count):
            traits = self.traits(first + index)
            delay = self.chance.randrange(spread_ms)
            begin = self.world.begin if at is None else at
            self.at(begin + 50 + delay, partial(self.launch, traits))

    def restart(self, old: Player, after_ms: int, **differing: Any) -> None:
        """The same program again, in a process of its own, a while after the old one is gone."""
        self.timeline.after(after_ms, partial(self.launch, replace(old.traits, **differing)))

    def remove_by_admin(self, instance_id: InstanceId) -> None:
        self.witness.is_removed(instance_id)
        leaver = Leaver(instance_id=instance_id, reason="member was removed by admin")

        def request(ticket: Ticket) -> LeaveGroup:
            return LeaveGroup(ticket=ticket, group_id=self.group_id, leavers=(leaver,))

        self.house.ask(request, _ignore)

    def set_offsets(
        self, positions: dict[TopicPartition, int], retention_ms: Millis | None = None
    ) -> None:
        """Somebody who is no member commits: an operator, or a program without a group."""
        offsets = tuple(
            OffsetToCommit(
                topic=each.topic,
                partition=each.partition,
                offset=Offset(position),
                metadata=self.sketch.metadata,
            )
            for each, position in positions.items()
        )

        def request(ticket: Ticket) -> CommitOffsets:
            return CommitOffsets(
                ticket=ticket,
                group_id=self.group_id,
                offsets=offsets,
                retention_ms=retention_ms,
            )

        self.house.ask(request, _ignore)
        self.committed.update(positions)

    # The truth about it

    def is_wrong(
        self, what: str, begin: int, end: int, subject: str | None = None, kind: str | None = None
    ) -> None:
        self.world.truth.pathologies.append(
            Pathology(
                kind=kind or self.kind,
                group_id=self.group_id,
                from_ms=Millis(begin),
                to_ms=Millis(min(end, self.world.end)),
                subject=subject,
                what=what,
            )
        )

    def only_looks_like(
        self, resembles: str, what: str, begin: int, end: int, subject: str | None = None
    ) -> None:
        self.world.truth.look_alikes.append(
            LookAlike(
                resembles=resembles,
                group_id=self.group_id,
                from_ms=Millis(begin),
                to_ms=Millis(min(end, self.world.end)),
                subject=subject,
                what=what,
            )
        )


def _ignore(_reply: Reply) -> None:
    """It is done; nobody waits to hear so."""
