"""Ordinary scenarios: groups start, scale and pause, and nothing is wrong with them."""

from functools import partial
from typing import Any, Final

from kohort.types import Millis, Partition, TopicPartition
from tools.histories.client_profiles import JAVA, KOHORT, LIBRDKAFKA
from tools.histories.group_factory import GroupFactory
from tools.histories.group_script import GroupScript
from tools.histories.log_growth import cumulative_traffic
from tools.histories.scenarios.scenario import Category, Scenario


def restart_one(group: GroupScript, index: int, after_ms: int, **differing: Any) -> None:
    """A member leaves and starts again. Index 0 is the member that has run longest."""
    old = group.alive[index]
    old.leave()
    group.restart(old, after_ms, **differing)


def steady(factory: GroupFactory) -> None:
    group = factory.create(client=factory.random_client())
    group.start(factory.rng.randrange(3, 6))
    group.at(group.time_at(0.55), partial(restart_one, group, 0, 12_000))


def scaling(factory: GroupFactory) -> None:
    group = factory.create(client=KOHORT, assignors=("cooperative-sticky",))
    group.start(3)
    group.start(2, at=group.time_at(0.25), spread_ms=30_000)
    for number, share in ((4, 0.7), (3, 0.72)):
        group.at(group.time_at(share), partial(leave, group, number))


def leave(group: GroupScript, number: int) -> None:
    group.members[number].leave()


def batch(factory: GroupFactory) -> None:
    """Three members start and stop five times."""
    group = factory.create(client=LIBRDKAFKA, assignors=("roundrobin",), partitions=6)
    for index in range(5):
        begin = group.time_at(0.02 + index * 0.2)
        group.start(3, at=begin)
        group.at(
            begin + round(0.1 * (group.context.end - group.context.begin)), partial(stop, group)
        )


def stop(group: GroupScript) -> None:
    """All members leave within a second."""
    for member in group.alive:
        group.scheduler.after(group.rng.randrange(1_000), member.leave)


def quiet(factory: GroupFactory) -> None:
    group = factory.create(
        client=LIBRDKAFKA,
        topics={factory.topic(): factory.rates(3, rate=60)},
        commit_ms=60_000,
    )
    group.start(1)


def static_members(factory: GroupFactory) -> None:
    group = factory.create(is_static=True, assignors=("sticky",))
    group.start(4)
    group.at(group.time_at(0.4), partial(restart_one, group, 2, 15_000))


def mixed(factory: GroupFactory) -> None:
    """Two client libraries share a group and use the only assignor that both support."""
    topics = {factory.topic(): factory.rates(8), factory.topic("-late"): factory.rates(4)}
    group = factory.create(client=JAVA, topics=topics, assignors=("range", "roundrobin"))
    group.start(2)
    config = group.member_config(
        2, client=LIBRDKAFKA, client_id="rdkafka", assignors=("roundrobin",)
    )
    group.at(group.time_at(0.1), partial(group.launch, config))


def simple(factory: GroupFactory) -> None:
    """A standalone consumer: it assigns its own partitions and only commits offsets."""
    group = factory.create(partitions=3, protocol_type="", metadata="checkpoint")
    partitions = [TopicPartition(factory.topic(), Partition(each)) for each in range(3)]

    def commit() -> None:
        traffic = cumulative_traffic(group.scheduler.now_ms - 5_000)
        logs = group.log_growth.partitions
        positions = {each: logs[each].end(traffic) for each in partitions}
        # An old client that sets the retention time in its request (OffsetCommit v2 to v4).
        group.set_offsets(positions, retention_ms=Millis(86_400_000))
        group.scheduler.after(30_000, commit)

    group.at(group.time_at(0.01), commit)


def connect(factory: GroupFactory) -> None:
    """Kafka Connect workers: a group whose protocol type is not "consumer"."""
    group = factory.create(
        topics={}, protocol_type="connect", assignors=("sessioned",), commit_ms=None
    )
    group.start(3)
    group.at(group.time_at(0.5), partial(restart_one, group, 1, 20_000))


def busy(factory: GroupFactory) -> None:
    """200 partitions, all committed every 5 s: 144,000 records per hour."""
    group = factory.create(partitions=200, commit_ms=5_000, assignors=("cooperative-sticky",))
    group.start(10)
    group.at(group.time_at(0.5), partial(restart_one, group, 3, 10_000))


SCENARIOS: Final = tuple(
    Scenario(name=name, category=Category.ORDINARY, meaning=meaning, script=script)
    for name, meaning, script in (
        ("steady", "a few members; one leaves and restarts", steady),
        ("scaling", "cooperative assignor; two members join and later leave", scaling),
        ("batch", "all members start and stop five times", batch),
        ("quiet", "one member, almost no records", quiet),
        ("static-fleet", "static members; one restarts without a rebalance", static_members),
        ("mixed", "two client libraries and two topics in one group", mixed),
        ("simple", "offsets without members", simple),
        ("connect", "a Kafka Connect group, not consumers", connect),
    )
)

BUSY: Final = Scenario(
    name="busy",
    category=Category.ORDINARY,
    meaning="200 partitions committed every 5 s: 144,000 records per hour; for benchmarks",
    script=busy,
    is_for_size=True,
)
