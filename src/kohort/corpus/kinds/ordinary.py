"""Ordinary days: groups that start, scale, pause and go on, and nothing is wrong with them."""

from functools import partial
from typing import Any, Final

from kohort.client.topic_partition import TopicPartition
from kohort.corpus.casting import Casting
from kohort.corpus.feed import progress
from kohort.corpus.fleet import Fleet
from kohort.corpus.kinds.kind import Kind, Sort
from kohort.corpus.makes import JAVA, KOHORT, LIBRDKAFKA
from kohort.types import Millis, Partition


def restart_one(fleet: Fleet, index: int, after_ms: int, **differing: Any) -> None:
    """A process says goodbye and comes back; 0 is the one that has run longest."""
    old = fleet.alive[index]
    old.leave()
    fleet.restart(old, after_ms, **differing)


def steady(cast: Casting) -> None:
    fleet = cast.fleet(make=cast.make())
    fleet.start(cast.chance.randrange(3, 6))
    fleet.at(fleet.moment(0.55), partial(restart_one, fleet, 0, 12_000))


def scaling(cast: Casting) -> None:
    fleet = cast.fleet(make=KOHORT, assignors=("cooperative-sticky",))
    fleet.start(3)
    fleet.start(2, at=fleet.moment(0.25), spread_ms=30_000)
    for number, share in ((4, 0.7), (3, 0.72)):
        fleet.at(fleet.moment(share), partial(leave, fleet, number))


def leave(fleet: Fleet, number: int) -> None:
    fleet.players[number].leave()


def batch(cast: Casting) -> None:
    """Three members come for a while, again and again."""
    fleet = cast.fleet(make=LIBRDKAFKA, assignors=("roundrobin",), partitions=6)
    for turn in range(5):
        begin = fleet.moment(0.02 + turn * 0.2)
        fleet.start(3, at=begin)
        fleet.at(begin + round(0.1 * (fleet.world.end - fleet.world.begin)), partial(stop, fleet))


def stop(fleet: Fleet) -> None:
    """Everyone leaves within a second."""
    for player in fleet.alive:
        fleet.timeline.after(fleet.chance.randrange(1_000), player.leave)


def quiet(cast: Casting) -> None:
    fleet = cast.fleet(
        make=LIBRDKAFKA,
        topics={cast.topic(): cast.rates(3, rate=60)},
        commit_ms=60_000,
    )
    fleet.start(1)


def static_fleet(cast: Casting) -> None:
    fleet = cast.fleet(is_static=True, assignors=("sticky",))
    fleet.start(4)
    fleet.at(fleet.moment(0.4), partial(restart_one, fleet, 2, 15_000))


def mixed(cast: Casting) -> None:
    """Two languages share a group, and agree on the one assignor that both know."""
    topics = {cast.topic(): cast.rates(8), cast.topic("-late"): cast.rates(4)}
    fleet = cast.fleet(make=JAVA, topics=topics, assignors=("range", "roundrobin"))
    fleet.start(2)
    traits = fleet.traits(2, make=LIBRDKAFKA, client_id="rdkafka", assignors=("roundrobin",))
    fleet.at(fleet.moment(0.1), partial(fleet.launch, traits))


def simple(cast: Casting) -> None:
    """A program that assigns itself its partitions, and uses the group for its offsets alone."""
    fleet = cast.fleet(partitions=3, protocol_type="", metadata="checkpoint")
    partitions = [TopicPartition(cast.topic(), Partition(each)) for each in range(3)]

    def commit() -> None:
        progressed = progress(fleet.timeline.now - 5_000)
        flows = fleet.feed.flows
        positions = {each: flows[each].end(progressed) for each in partitions}
        # An old client, which says itself how long its offsets are to be kept.
        fleet.set_offsets(positions, retention_ms=Millis(86_400_000))
        fleet.timeline.after(30_000, commit)

    fleet.at(fleet.moment(0.01), commit)


def connect(cast: Casting) -> None:
    """Workers of Kafka Connect: a group whose metadata is not a consumer's."""
    fleet = cast.fleet(topics={}, protocol_type="connect", assignors=("sessioned",), commit_ms=None)
    fleet.start(3)
    fleet.at(fleet.moment(0.5), partial(restart_one, fleet, 1, 20_000))


def busy(cast: Casting) -> None:
    """Two hundred partitions, all committed every five seconds: 144 thousand records an hour."""
    fleet = cast.fleet(partitions=200, commit_ms=5_000, assignors=("cooperative-sticky",))
    fleet.start(10)
    fleet.at(fleet.moment(0.5), partial(restart_one, fleet, 3, 10_000))


KINDS: Final = tuple(
    Kind(name=name, sort=Sort.ORDINARY, meaning=meaning, play=play)
    for name, meaning, play in (
        ("steady", "a few members, one restart in good order", steady),
        ("scaling", "cooperative; two members come and go again", scaling),
        ("batch", "comes and goes five times", batch),
        ("quiet", "one member, hardly anything to read", quiet),
        ("static-fleet", "static members; one restarts without a rebalance", static_fleet),
        ("mixed", "two client libraries and two topics in one group", mixed),
        ("simple", "offsets without members", simple),
        ("connect", "a group of another protocol than consumers speak", connect),
    )
)

BUSY: Final = Kind(
    name="busy",
    sort=Sort.ORDINARY,
    meaning="200 partitions committed every 5 s: 144,000 records an hour; for size",
    play=busy,
    is_for_size=True,
)
