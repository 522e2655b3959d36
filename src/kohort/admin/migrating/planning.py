"""What a migration would do, and what forbids it. It asks both clusters, and changes neither."""

from collections.abc import Iterable, Mapping

from kohort.admin import groups as group_admin
from kohort.admin import offsets as offset_admin
from kohort.admin.cluster import Cluster
from kohort.admin.migrating import settings
from kohort.admin.migrating.facts import ClusterFacts, TopicFacts, ask_cluster, ask_settings
from kohort.admin.migrating.reading import Reader
from kohort.admin.migrating.state import State, TopicState
from kohort.admin.migrating.wish import (
    GroupPlan,
    MigrationPlan,
    MigrationWish,
    TopicPlan,
    TopicStep,
)
from kohort.admin.topics import Setting
from kohort.client.topic_partition import TopicPartition
from kohort.types import ZERO_UUID, GroupId, Partition, Topic


def make_plan(source: Reader, target: Reader, wish: MigrationWish, state: State) -> MigrationPlan:
    a, b = ask_cluster(source.cluster), ask_cluster(target.cluster)
    if a.cluster_id == b.cluster_id:
        return _refuse_all(a, b, "A and B are one cluster")
    refusals = [*_refuse_clusters(a, b, state), *_refuse_names(a, wish)]
    names = _names(a, wish)
    planned: list[TopicPlan] = []
    for topic in names:
        here, there, begun = a.topics[topic], b.topics.get(topic), state.find_topic(topic)
        its_settings = ask_settings(source.cluster, topic)
        differences = _differences(target, here, there, begun, its_settings)
        step = _choose_step(here, there, begun, differences, is_into_existing=wish.is_into_existing)
        if not isinstance(step, TopicStep):
            refusals.append(step)
            continue
        planned.append(
            TopicPlan(
                topic=topic,
                step=step,
                partitions=here.partitions,
                offsets=_offsets_left(source, state, here),
                settings=tuple(sorted(settings.own_settings(its_settings).items())),
            )
        )
    groups, unknown = _plan_groups(source.cluster, wish, names)
    refusals += unknown
    return MigrationPlan(
        source=a.where,
        target=b.where,
        topics=tuple(planned),
        groups=groups,
        internal=tuple(sorted(name for name, told in a.topics.items() if told.is_internal)),
        refusals=tuple(refusals),
        warnings=tuple(
            f"group {each.group_id!r} has members in A: what it does from now on stays there"
            for each in groups
            if each.has_members
        ),
    )


def _refuse_all(a: ClusterFacts, b: ClusterFacts, reason: str) -> MigrationPlan:
    return MigrationPlan(
        source=a.where,
        target=b.where,
        topics=(),
        groups=(),
        internal=(),
        refusals=(reason,),
        warnings=(),
    )


def partitions_of(topic: Topic, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, Partition(number)) for number in range(count)]


# The clusters


def _refuse_clusters(a: ClusterFacts, b: ClusterFacts, state: State) -> Iterable[str]:
    for name, facts in (("source", a), ("target", b)):
        known = state.find_fact(name)
        if known is not None and known != facts.cluster_id:
            yield (
                f"the state is that of a migration {'from' if name == 'source' else 'to'} cluster "
                f"{known}, and {facts.where} is {facts.cluster_id}"
            )


def _refuse_names(a: ClusterFacts, wish: MigrationWish) -> Iterable[str]:
    for topic in wish.topics:
        found = a.topics.get(topic)
        if found is None:
            yield f"there is no topic {topic!r} in A"
        elif found.is_internal:
            yield f"topic {topic!r} is internal, and belongs to its cluster"


def _names(a: ClusterFacts, wish: MigrationWish) -> list[Topic]:
    wanted = wish.topics or tuple(a.topics)
    return sorted({each for each in wanted if each in a.topics and not a.topics[each].is_internal})


# Topics


def _choose_step(
    a: TopicFacts,
    b: TopicFacts | None,
    begun: TopicState | None,
    differences: list[str],
    *,
    is_into_existing: bool,
) -> TopicStep | str:
    """What to do; or why not."""
    if begun is not None and begun.target_id != ZERO_UUID:
        if begun.source_id != a.topic_id:
            return f"topic {a.topic!r} of A is not the one that the state knows"
        if b is None:
            return f"topic {a.topic!r} was begun, and is gone in B"
        if begun.target_id != b.topic_id:
            return f"topic {a.topic!r} of B is not the one that was begun"
        return TopicStep.CONTINUE
    if b is None:
        return TopicStep.CREATE
    if b.partitions < a.partitions:
        return f"topic {a.topic!r} has {b.partitions} partitions in B, and {a.partitions} in A"
    if differences and not is_into_existing:
        return f"topic {a.topic!r} is in B already, and {' and '.join(differences)}"
    return TopicStep.ADD if differences or begun is None else TopicStep.CREATE


def _differences(
    target: Reader,
    a: TopicFacts,
    b: TopicFacts | None,
    begun: TopicState | None,
    its_settings: Mapping[str, Setting],
) -> list[str]:
    """What B's topic has other than A's, if it is not one that was begun."""
    found: list[str] = []
    if b is None or (begun is not None and begun.target_id != ZERO_UUID):
        return found
    if a.partitions != b.partitions:
        found.append(f"has {b.partitions} partitions, not {a.partitions}")
    partitions = partitions_of(b.topic, b.partitions)
    if target.starts(partitions) != target.ends(partitions):
        found.append("is not empty")
    names = settings.differences(its_settings, ask_settings(target.cluster, b.topic))
    # One that an earlier run had made, and no more when it was killed, is ours to set.
    if names and begun is None:
        found.append(f"has another {', '.join(names)}")
    return found


def _offsets_left(reader: Reader, state: State, a: TopicFacts) -> int:
    partitions = partitions_of(a.topic, a.partitions)
    starts, ends = reader.starts(partitions), reader.ends(partitions)
    left = 0
    for each in partitions:
        begun = state.find_partition(each)
        place = starts[each] if begun is None else max(begun.source_next, starts[each])
        left += max(0, ends[each] - place)
    return left


# Groups


def _plan_groups(
    source: Cluster, wish: MigrationWish, topics: Iterable[Topic]
) -> tuple[tuple[GroupPlan, ...], list[str]]:
    if wish.is_without_groups:
        return (), []
    listed = {each.group_id: each for each in group_admin.list_groups(source)}
    unknown = [f"there is no group {each!r} in A" for each in wish.groups if each not in listed]
    wanted = [each for each in wish.groups or tuple(listed) if each in listed]
    committed = offset_admin.committed(source, wanted)
    names = frozenset(topics)
    planned: list[GroupPlan] = []
    for group_id in sorted(wanted):
        count = sum(each.topic in names for each in committed[group_id])
        if count:
            has_members = listed[group_id].state not in group_admin.IDLE_STATES
            planned.append(
                GroupPlan(group_id=GroupId(group_id), partitions=count, has_members=has_members)
            )
    return tuple(planned), unknown
