"""Pathologies of what is read and committed: wrong topics, wrong hands, wrong direction."""

from functools import partial
from typing import Final

from kohort.client.topic_partition import TopicPartition
from kohort.corpus.casting import Casting
from kohort.corpus.fleet import MINUTE, Fleet
from kohort.corpus.kinds.kind import Kind, Sort
from kohort.corpus.kinds.ordinary import stop
from kohort.corpus.makes import JAVA, KOHORT, Reason
from kohort.types import Topic


def subscribe_to(fleet: Fleet, number: int, topics: frozenset[Topic]) -> None:
    """A new version of the program reads other topics."""
    player = fleet.players[number]
    player.holding.topics = topics
    player.rejoin(Reason.SUBSCRIPTION_CHANGED)


def subscription_mismatch(cast: Casting) -> None:
    """A new version that reads a second topic was never rolled out to everyone."""
    first, second = cast.topic(), cast.topic("-more")
    topics = {first: cast.rates(8), second: cast.rates(8)}
    fleet = cast.fleet(make=JAVA, topics=topics, has_own_names=True)
    for number in range(4):
        wanted = frozenset({first, second}) if number == 3 else frozenset({first})
        traits = fleet.traits(number, topics=wanted)
        fleet.at(fleet.world.begin + 100 + 300 * number, partial(fleet.launch, traits))
    begin, end = fleet.world.begin, fleet.world.end
    what = "one of four members reads the topic, the others do not subscribe to it"
    fleet.is_wrong(what, begin, end, second)


def unowned_topic(cast: Casting) -> None:
    """A topic that was read is left behind by a new version, while it still grows."""
    first, second = cast.topic(), cast.topic("-old")
    topics = {first: cast.rates(6), second: cast.rates(6)}
    fleet = cast.fleet(make=KOHORT, topics=topics)
    fleet.start(3)
    begin = fleet.moment(0.35)
    for number in range(3):
        at = begin + 20_000 * number
        fleet.at(at, partial(subscribe_to, fleet, number, frozenset({first})))
    what = "nobody reads the topic any more, and it grows"
    fleet.is_wrong(what, begin, fleet.world.end, second)


def zombie_commits(cast: Casting) -> None:
    """A member goes on with partitions that others have got, and commits them as well."""
    fleet = cast.fleet(
        make=JAVA,
        topics={cast.topic(): cast.rates(12, rate=40_000)},
        commit_ms=10_000,
        has_own_names=True,
    )
    zombie = fleet.traits(0, clings=True)
    fleet.at(fleet.world.begin + 50, partial(fleet.launch, zombie))
    fleet.at(fleet.world.begin + 60, lambda: fleet.launch(fleet.traits(1)))
    begin, end = fleet.moment(0.4), fleet.moment(0.6)
    fleet.at(begin, lambda: fleet.launch(fleet.traits(2)))

    def mend() -> None:
        old = fleet.players[0]
        old.leave()
        fleet.restart(old, 5_000, clings=False)

    fleet.at(end, mend)
    what = "commits partitions that were given to others"
    fleet.is_wrong(what, begin, end, zombie.client_id)


def offset_rewind(cast: Casting) -> None:
    """The program itself turns back, time and again, and reads everything once more."""
    fleet = cast.fleet(make=cast.make(), partitions=4)
    fleet.start(2)
    begin = fleet.moment(0.3)

    def turn_back() -> None:
        player = next((each for each in fleet.alive if each.is_at_work), None)
        if player is None:
            return
        player.commit()
        for partition, reading in player.holding.readings.items():
            player.holding.seek(partition, max(0, reading.position - reading.flow.rate))
        player.commit()

    for turn in range(3):
        fleet.at(begin + turn * 9 * MINUTE, turn_back)
    end = begin + 2 * 9 * MINUTE + MINUTE
    fleet.is_wrong("goes back by an hour of records, three times", begin, end, cast.topic())


def expired_offsets(cast: Casting) -> None:
    """Away for longer than offsets are kept: what was written meanwhile is never read."""
    fleet = cast.fleet(make=JAVA, partitions=6)
    fleet.start(2)
    begin, end = fleet.moment(0.2), fleet.moment(0.85)
    fleet.at(begin, partial(stop, fleet))

    def come_back() -> None:
        # Nobody remembers the group: it finds no offsets, and begins where the logs end.
        fleet.committed.clear()
        fleet.witness.is_forgotten()
        fleet.start(2, at=end)

    fleet.at(end, come_back)
    fleet.is_wrong("the group is away for longer than its offsets are kept", begin, end)


KINDS: Final = tuple(
    Kind(name=name, sort=Sort.PATHOLOGY, meaning=meaning, play=play)
    for name, meaning, play in (
        ("subscription-mismatch", "members subscribe to different topics", subscription_mismatch),
        ("unowned-topic", "a topic is left without an owner", unowned_topic),
        ("zombie-commits", "a member commits what is not its own", zombie_commits),
        ("offset-rewind", "a running program goes back", offset_rewind),
        ("expired-offsets", "away for longer than offsets are kept", expired_offsets),
    )
)


def back_by(fleet: Fleet, topic: Topic, hours: int) -> dict[TopicPartition, int]:
    """So many hours of records before what is committed."""
    return {
        each: max(0, position - hours * fleet.feed.flows[each].rate)
        for each, position in fleet.committed.items()
        if each.topic == topic
    }
