"""Look-alikes: harmless scenarios that resemble a pathology."""

from functools import partial
from typing import Final

from tools.histories.client_profiles import JAVA, KOHORT, LIBRDKAFKA, Reason
from tools.histories.group_factory import GroupFactory
from tools.histories.group_script import MINUTE
from tools.histories.scenarios.offsets import offsets_before, subscribe_to
from tools.histories.scenarios.ordinary import restart_one, stop
from tools.histories.scenarios.scenario import Category, Scenario


def static_deploy(factory: GroupFactory) -> None:
    """Static members restart one by one and keep their partitions."""
    group = factory.create(client=JAVA, is_static=True)
    group.start(6)
    begin = group.time_at(0.4)
    for number in range(6):
        group.at(begin + 40_000 * number, partial(restart_one, group, 0, 12_000))
    what = "static members restart within their session"
    group.label_look_alike("deploy-in-a-row", what, begin, begin + 5 * 40_000 + 13_000)


def stop_and_start(factory: GroupFactory) -> None:
    """All members stop and start together: two rebalances for any number of members."""
    group = factory.create(client=factory.random_client())
    group.start(5)
    begin = group.time_at(0.5)
    group.at(begin, partial(stop, group))
    group.start(5, at=begin + 20_000)
    what = "the whole fleet stops and starts at once"
    group.label_look_alike("deploy-in-a-row", what, begin, begin + 30_000)


def operator_rewind(factory: GroupFactory) -> None:
    """An operator stops the group, resets its offsets and starts it again."""
    group = factory.create(client=JAVA, partitions=6)
    group.start(3)
    begin = group.time_at(0.5)
    group.at(begin, partial(stop, group))
    group.at(
        begin + 2 * MINUTE,
        lambda: group.set_offsets(offsets_before(group, factory.topic(), hours=1)),
    )
    group.start(3, at=begin + 4 * MINUTE)
    what = "an operator resets the offsets of the stopped group"
    group.label_look_alike("offset-rewind", what, begin, begin + 4 * MINUTE, factory.topic())


def twice_daily_scaling(factory: GroupFactory) -> None:
    """A large group scales up and down once a day."""
    group = factory.create(client=JAVA, partitions=60, assignors=("sticky",), commit_ms=30_000)
    group.start(20)
    up, down = group.time_at(0.3), group.time_at(0.7)
    group.start(10, at=up, spread_ms=5_000)

    def shrink() -> None:
        for member in group.alive[-10:]:
            group.scheduler.after(group.rng.randrange(3_000), member.leave)

    group.at(down, shrink)
    what = "a third of a big group comes in the morning and goes in the evening"
    group.label_look_alike("rebalance-storm", what, up, down)


def evenly_slow(factory: GroupFactory) -> None:
    """All members are equally slow to rejoin."""
    group = factory.create(client=KOHORT, poll_ms=15_000)
    group.start(5)
    for share in (0.35, 0.6):
        group.at(group.time_at(share), partial(restart_one, group, 0, 10_000))
    what = "all members are equally slow to rejoin"
    group.label_look_alike("slow-member", what, group.time_at(0.35), group.time_at(0.65))


def single_crash(factory: GroupFactory) -> None:
    """The new process joins before the old session expires, so the group waits for the old one."""
    group = factory.create(client=factory.random_client(), rebalance_ms=12_000, has_own_names=True)
    group.start(4)
    begin = group.time_at(0.45)

    def crash() -> None:
        old = group.members[1]
        old.kill()
        group.restart(old, 30_000)

    group.at(begin, crash)
    what = "dies once, and comes back for good"
    group.label_look_alike("crash-loop", what, begin, begin + 2 * MINUTE, f"{group.group_id}-1")


def single_pause(factory: GroupFactory) -> None:
    """A single pause with a single rejected commit."""
    group = factory.create(client=JAVA, session_ms=30_000, has_own_names=True)
    group.start(4)
    begin = group.time_at(0.5)
    group.at(begin, lambda: group.members[2].pause(50_000))
    what = "a single commit after a single pause, and it is refused"
    group.label_look_alike("zombie-commits", what, begin, begin + MINUTE, f"{group.group_id}-2")


def idle_topic(factory: GroupFactory) -> None:
    """Members commit nothing because the topic has no new records."""
    group = factory.create(client=LIBRDKAFKA, topics={factory.topic(): [0] * 6})
    group.start(3)
    what = "members without commits, and without lag"
    group.label_look_alike("stuck-consumer", what, group.context.begin, group.context.end)


def growing_topic(factory: GroupFactory) -> None:
    """Partitions are added twice, and the leader rejoins each time."""
    group = factory.create(client=KOHORT, partitions=6, has_own_names=True)
    group.start(3)

    def grow() -> None:
        group.log_growth.add(factory.topic(), factory.rates(3), group.scheduler.now_ms, is_new=True)
        if group.leader is not None:
            group.leader.rejoin(Reason.TOPICS_CHANGED)

    for share in (0.4, 0.6):
        group.at(group.time_at(share), grow)
    what = "the leader joins again because its topic has grown"
    group.label_look_alike("leader-rejoin-loop", what, group.time_at(0.4), group.time_at(0.6))


def long_pause(factory: GroupFactory) -> None:
    """The group stops for less than the offset retention."""
    group = factory.create(client=factory.random_client(), partitions=6)
    group.start(2)
    begin, end = group.time_at(0.4), group.time_at(0.6)
    group.at(begin, partial(stop, group))
    group.start(2, at=end)
    what = "away, and back before its offsets expire"
    group.label_look_alike("expired-offsets", what, begin, end)


def rolling_subscription(factory: GroupFactory) -> None:
    """During a rolling restart of one minute only some members subscribe to a new topic."""
    first, second = factory.topic(), factory.topic("-new")
    topics = {first: factory.rates(6), second: factory.rates(6)}
    group = factory.create(client=JAVA, topics=topics, assignors=("cooperative-sticky",))
    for number in range(4):
        config = group.member_config(number, topics=frozenset({first}))
        group.at(group.context.begin + 100 + 300 * number, partial(group.launch, config))
    begin = group.time_at(0.5)
    for number in range(4):
        at = begin + 15_000 * number
        group.at(at, partial(subscribe_to, group, number, frozenset({first, second})))
    what = "a second topic is rolled out within a minute"
    group.label_look_alike("subscription-mismatch", what, begin, begin + MINUTE, second)


SCENARIOS: Final = tuple(
    Scenario(name=name, category=Category.LOOK_ALIKE, meaning=meaning, script=script)
    for name, meaning, script in (
        ("static-deploy", "static members restart without a rebalance", static_deploy),
        ("stop-and-start", "all members stop and start together", stop_and_start),
        ("operator-rewind", "an operator resets the offsets of a stopped group", operator_rewind),
        ("twice-daily-scaling", "a large group scales up and down once", twice_daily_scaling),
        ("evenly-slow", "all members are equally slow to rejoin", evenly_slow),
        ("single-crash", "one crash", single_crash),
        ("single-pause", "one pause and one rejected commit", single_pause),
        ("idle-topic", "no commits because there are no records", idle_topic),
        ("growing-topic", "the leader rejoins because partitions were added", growing_topic),
        ("long-pause", "the group stops for less than the offset retention", long_pause),
        ("rolling-subscription", "a new topic is rolled out within a minute", rolling_subscription),
    )
)
