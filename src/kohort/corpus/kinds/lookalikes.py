"""Innocent histories: at first sight each looks like a pathology, and is none."""

from functools import partial
from typing import Final

from kohort.corpus.casting import Casting
from kohort.corpus.fleet import MINUTE
from kohort.corpus.kinds.kind import Kind, Sort
from kohort.corpus.kinds.offsets import back_by, subscribe_to
from kohort.corpus.kinds.ordinary import restart_one, stop
from kohort.corpus.makes import JAVA, KOHORT, LIBRDKAFKA, Reason


def static_deploy(cast: Casting) -> None:
    """Every process restarts, one by one, and keeps its place."""
    fleet = cast.fleet(make=JAVA, is_static=True)
    fleet.start(6)
    begin = fleet.moment(0.4)
    for number in range(6):
        fleet.at(begin + 40_000 * number, partial(restart_one, fleet, 0, 12_000))
    what = "static members restart within their session"
    fleet.only_looks_like("deploy-in-a-row", what, begin, begin + 5 * 40_000 + 13_000)


def stop_and_start(cast: Casting) -> None:
    """All stop, all start: two rebalances, however many processes there are."""
    fleet = cast.fleet(make=cast.make())
    fleet.start(5)
    begin = fleet.moment(0.5)
    fleet.at(begin, partial(stop, fleet))
    fleet.start(5, at=begin + 20_000)
    what = "the whole fleet stops and starts at once"
    fleet.only_looks_like("deploy-in-a-row", what, begin, begin + 30_000)


def operator_rewind(cast: Casting) -> None:
    """The group is stopped, its offsets are set back on purpose, and it is started again."""
    fleet = cast.fleet(make=JAVA, partitions=6)
    fleet.start(3)
    begin = fleet.moment(0.5)
    fleet.at(begin, partial(stop, fleet))
    fleet.at(
        begin + 2 * MINUTE,
        lambda: fleet.set_offsets(back_by(fleet, cast.topic(), hours=1)),
    )
    fleet.start(3, at=begin + 4 * MINUTE)
    what = "an operator sets offsets back while nobody reads"
    fleet.only_looks_like("offset-rewind", what, begin, begin + 4 * MINUTE, cast.topic())


def twice_daily_scaling(cast: Casting) -> None:
    """A big group has two sizes, and changes between them in one go."""
    fleet = cast.fleet(make=JAVA, partitions=60, assignors=("sticky",), commit_ms=30_000)
    fleet.start(20)
    up, down = fleet.moment(0.3), fleet.moment(0.7)
    fleet.start(10, at=up, spread_ms=5_000)

    def shrink() -> None:
        for player in fleet.alive[-10:]:
            fleet.timeline.after(fleet.chance.randrange(3_000), player.leave)

    fleet.at(down, shrink)
    what = "a third of a big group comes in the morning and goes in the evening"
    fleet.only_looks_like("rebalance-storm", what, up, down)


def evenly_slow(cast: Casting) -> None:
    """Everyone takes its time, and nobody more than the others."""
    fleet = cast.fleet(make=KOHORT, poll_ms=15_000)
    fleet.start(5)
    for share in (0.35, 0.6):
        fleet.at(fleet.moment(share), partial(restart_one, fleet, 0, 10_000))
    what = "all members are equally slow to rejoin"
    fleet.only_looks_like("slow-member", what, fleet.moment(0.35), fleet.moment(0.65))


def single_crash(cast: Casting) -> None:
    """Its next self comes while its session lasts: for a while the others wait for the dead one."""
    fleet = cast.fleet(make=cast.make(), rebalance_ms=12_000, has_own_names=True)
    fleet.start(4)
    begin = fleet.moment(0.45)

    def crash() -> None:
        old = fleet.players[1]
        old.kill()
        fleet.restart(old, 30_000)

    fleet.at(begin, crash)
    what = "dies once, and comes back for good"
    fleet.only_looks_like("crash-loop", what, begin, begin + 2 * MINUTE, f"{fleet.group_id}-1")


def single_pause(cast: Casting) -> None:
    """One pause, one refused commit: a zombie for a moment."""
    fleet = cast.fleet(make=JAVA, session_ms=30_000, has_own_names=True)
    fleet.start(4)
    begin = fleet.moment(0.5)
    fleet.at(begin, lambda: fleet.players[2].freeze(50_000))
    what = "a single commit after a single pause, and it is refused"
    fleet.only_looks_like("zombie-commits", what, begin, begin + MINUTE, f"{fleet.group_id}-2")


def idle_topic(cast: Casting) -> None:
    """Nothing is committed because nothing is written."""
    fleet = cast.fleet(make=LIBRDKAFKA, topics={cast.topic(): [0] * 6})
    fleet.start(3)
    what = "members without commits, and without lag"
    fleet.only_looks_like("stuck-consumer", what, fleet.world.begin, fleet.world.end)


def growing_topic(cast: Casting) -> None:
    """Partitions are added twice; each time the leader sees it and joins again."""
    fleet = cast.fleet(make=KOHORT, partitions=6, has_own_names=True)
    fleet.start(3)

    def grow() -> None:
        fleet.feed.add(cast.topic(), cast.rates(3), fleet.timeline.now, is_new=True)
        if fleet.leader is not None:
            fleet.leader.rejoin(Reason.TOPICS_CHANGED)

    for share in (0.4, 0.6):
        fleet.at(fleet.moment(share), grow)
    what = "the leader joins again because its topic has grown"
    fleet.only_looks_like("leader-rejoin-loop", what, fleet.moment(0.4), fleet.moment(0.6))


def long_pause(cast: Casting) -> None:
    """Away for long, but not for longer than offsets are kept."""
    fleet = cast.fleet(make=cast.make(), partitions=6)
    fleet.start(2)
    begin, end = fleet.moment(0.4), fleet.moment(0.6)
    fleet.at(begin, partial(stop, fleet))
    fleet.start(2, at=end)
    what = "away, and back before its offsets expire"
    fleet.only_looks_like("expired-offsets", what, begin, end)


def rolling_subscription(cast: Casting) -> None:
    """For a minute some members know a new topic and others do not."""
    first, second = cast.topic(), cast.topic("-new")
    topics = {first: cast.rates(6), second: cast.rates(6)}
    fleet = cast.fleet(make=JAVA, topics=topics, assignors=("cooperative-sticky",))
    for number in range(4):
        traits = fleet.traits(number, topics=frozenset({first}))
        fleet.at(fleet.world.begin + 100 + 300 * number, partial(fleet.launch, traits))
    begin = fleet.moment(0.5)
    for number in range(4):
        at = begin + 15_000 * number
        fleet.at(at, partial(subscribe_to, fleet, number, frozenset({first, second})))
    what = "a second topic is rolled out within a minute"
    fleet.only_looks_like("subscription-mismatch", what, begin, begin + MINUTE, second)


KINDS: Final = tuple(
    Kind(name=name, sort=Sort.LOOK_ALIKE, meaning=meaning, play=play)
    for name, meaning, play in (
        ("static-deploy", "a deploy that static membership makes free", static_deploy),
        ("stop-and-start", "a deploy of all at once", stop_and_start),
        ("operator-rewind", "offsets set back on purpose, while nobody reads", operator_rewind),
        ("twice-daily-scaling", "a big group with two sizes", twice_daily_scaling),
        ("evenly-slow", "everyone is equally slow", evenly_slow),
        ("single-crash", "one crash, and no more", single_crash),
        ("single-pause", "one pause, and one refused commit", single_pause),
        ("idle-topic", "no commits, for there is nothing to read", idle_topic),
        ("growing-topic", "a leader that rejoins for a reason", growing_topic),
        ("long-pause", "away for long, not for too long", long_pause),
        ("rolling-subscription", "a new topic, rolled out in a minute", rolling_subscription),
    )
)
