"""Pathologies of subscriptions and committed offsets."""

from functools import partial
from typing import Final

from kohort.types import Topic, TopicPartition
from tools.histories.client_profiles import JAVA, KOHORT, Reason
from tools.histories.group_factory import GroupFactory
from tools.histories.group_script import MINUTE, GroupScript
from tools.histories.scenarios.ordinary import stop
from tools.histories.scenarios.scenario import Category, Scenario


def subscribe_to(group: GroupScript, number: int, topics: frozenset[Topic]) -> None:
    """A new version of the program subscribes to other topics."""
    member = group.members[number]
    member.assignment.topics = topics
    member.rejoin(Reason.SUBSCRIPTION_CHANGED)


def subscription_mismatch(factory: GroupFactory) -> None:
    """A new version that subscribes to a second topic was rolled out to one member only."""
    first, second = factory.topic(), factory.topic("-more")
    topics = {first: factory.rates(8), second: factory.rates(8)}
    group = factory.create(client=JAVA, topics=topics, has_own_names=True)
    for number in range(4):
        wanted = frozenset({first, second}) if number == 3 else frozenset({first})
        config = group.member_config(number, topics=wanted)
        group.at(group.context.begin + 100 + 300 * number, partial(group.launch, config))
    begin, end = group.context.begin, group.context.end
    what = "one of four members reads the topic, the others do not subscribe to it"
    group.label_pathology(what, begin, end, second)


def unowned_topic(factory: GroupFactory) -> None:
    """A new version no longer subscribes to a topic that still grows."""
    first, second = factory.topic(), factory.topic("-old")
    topics = {first: factory.rates(6), second: factory.rates(6)}
    group = factory.create(client=KOHORT, topics=topics)
    group.start(3)
    begin = group.time_at(0.35)
    for number in range(3):
        at = begin + 20_000 * number
        group.at(at, partial(subscribe_to, group, number, frozenset({first})))
    what = "no member reads the topic any more, and it grows"
    group.label_pathology(what, begin, group.context.end, second)


def zombie_commits(factory: GroupFactory) -> None:
    """A member goes on processing and committing partitions that other members own."""
    group = factory.create(
        client=JAVA,
        topics={factory.topic(): factory.rates(12, rate=40_000)},
        commit_ms=10_000,
        has_own_names=True,
    )
    zombie = group.member_config(0, keeps_revoked=True)
    group.at(group.context.begin + 50, partial(group.launch, zombie))
    group.at(group.context.begin + 60, lambda: group.launch(group.member_config(1)))
    begin, end = group.time_at(0.4), group.time_at(0.6)
    group.at(begin, lambda: group.launch(group.member_config(2)))

    def fix() -> None:
        old = group.members[0]
        old.leave()
        group.restart(old, 5_000, keeps_revoked=False)

    group.at(end, fix)
    what = "commits partitions that were given to others"
    group.label_pathology(what, begin, end, zombie.client_id)


def offset_rewind(factory: GroupFactory) -> None:
    """The program seeks back three times while it runs."""
    group = factory.create(client=factory.random_client(), partitions=4)
    group.start(2)
    begin = group.time_at(0.3)

    def seek_back() -> None:
        member = next((each for each in group.alive if each.is_processing), None)
        if member is None:
            return
        member.commit()
        for partition, consumed in member.assignment.progress.items():
            member.assignment.seek(partition, max(0, consumed.position - consumed.growth.rate))
        member.commit()

    for index in range(3):
        group.at(begin + index * 9 * MINUTE, seek_back)
    end = begin + 2 * 9 * MINUTE + MINUTE
    group.label_pathology(
        "goes back by an hour of records, three times", begin, end, factory.topic()
    )


def expired_offsets(factory: GroupFactory) -> None:
    """The group stops for longer than the offset retention, so it skips records."""
    group = factory.create(client=JAVA, partitions=6)
    group.start(2)
    begin, end = group.time_at(0.2), group.time_at(0.85)
    group.at(begin, partial(stop, group))

    def start_again() -> None:
        # The group has no committed offsets and starts at the log ends.
        group.committed.clear()
        group.oracle.on_group_expired()
        group.start(2, at=end)

    group.at(end, start_again)
    group.label_pathology("the group is away for longer than its offsets are kept", begin, end)


SCENARIOS: Final = tuple(
    Scenario(name=name, category=Category.PATHOLOGY, meaning=meaning, script=script)
    for name, meaning, script in (
        ("subscription-mismatch", "members subscribe to different topics", subscription_mismatch),
        (
            "unowned-topic",
            "no member subscribes to a topic that was consumed before",
            unowned_topic,
        ),
        ("zombie-commits", "a member commits partitions of other members", zombie_commits),
        ("offset-rewind", "a running program seeks back", offset_rewind),
        (
            "expired-offsets",
            "the group stops for longer than the offset retention",
            expired_offsets,
        ),
    )
)


def offsets_before(group: GroupScript, topic: Topic, hours: int) -> dict[TopicPartition, int]:
    """The committed offsets minus this number of hours of records."""
    return {
        each: max(0, position - hours * group.log_growth.partitions[each].rate)
        for each, position in group.committed.items()
        if each.topic == topic
    }
