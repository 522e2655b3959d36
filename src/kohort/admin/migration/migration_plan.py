"""Computes what a migration would do, and why it cannot start. Changes neither cluster."""

from collections.abc import Iterable, Mapping
from typing import Final

from kohort.admin import groups as group_admin
from kohort.admin import offsets as offset_admin
from kohort.admin import topics
from kohort.admin.cluster_connection import Cluster
from kohort.admin.migration import config_sync
from kohort.admin.migration.cluster_reader import ClusterReader
from kohort.admin.migration.migration_state import MigrationState, TopicCheckpoint
from kohort.admin.migration.migration_types import (
    GroupPlan,
    MigrationOptions,
    MigrationPlan,
    TopicPlan,
    TopicStep,
)
from kohort.admin.topics import TopicConfigEntry
from kohort.types import (
    ZERO_UUID,
    ErrorCode,
    GroupId,
    Partition,
    Topic,
    TopicPartition,
    Uuid,
    value,
)
from kohort.wire.api.k03_metadata import MetadataRequest

_INTERNAL_PREFIX: Final = "__"


@value
class TopicInfo:
    topic: Topic
    topic_id: Uuid
    partitions: int
    is_internal: bool


@value
class ClusterInfo:
    bootstrap_servers: str
    cluster_id: str
    topics: dict[Topic, TopicInfo]


def read_cluster(cluster: Cluster) -> ClusterInfo:
    response = cluster.router.send_to_any(
        MetadataRequest(topics=None, allow_auto_topic_creation=False)
    )
    found = {
        each.name: TopicInfo(
            topic=each.name,
            topic_id=each.topic_id,
            partitions=len(each.partitions),
            is_internal=each.is_internal or each.name.startswith(_INTERNAL_PREFIX),
        )
        for each in response.topics
        if each.error_code == ErrorCode.NONE
    }
    servers = cluster.bootstrap_servers
    return ClusterInfo(
        bootstrap_servers=servers, cluster_id=response.cluster_id or servers, topics=found
    )


def read_topic_config(cluster: Cluster, topic: Topic) -> dict[str, TopicConfigEntry]:
    return {each.name: each for each in topics.describe_config(cluster, topic)}


def make_plan(
    source: ClusterReader, target: ClusterReader, options: MigrationOptions, state: MigrationState
) -> MigrationPlan:
    source_info, target_info = read_cluster(source.cluster), read_cluster(target.cluster)
    if source_info.cluster_id == target_info.cluster_id:
        return _refused_plan(source_info, target_info, "source and target are the same cluster")
    refusals = [
        *_check_clusters(source_info, target_info, state),
        *_check_topics(source_info, options),
    ]
    names = _topic_names(source_info, options)
    planned: list[TopicPlan] = []
    for topic in names:
        source_topic, target_topic = source_info.topics[topic], target_info.topics.get(topic)
        checkpoint = state.find_topic(topic)
        config = read_topic_config(source.cluster, topic)
        differences = _differences(target, source_topic, target_topic, checkpoint, config)
        step = _choose_step(
            source_topic,
            target_topic,
            checkpoint,
            differences,
            is_into_existing=options.is_into_existing,
        )
        if not isinstance(step, TopicStep):
            refusals.append(step)
            continue
        planned.append(
            TopicPlan(
                topic=topic,
                step=step,
                partitions=source_topic.partitions,
                offsets=_offsets_left(source, state, source_topic),
                settings=tuple(sorted(config_sync.overrides(config).items())),
            )
        )
    groups, unknown = _plan_groups(source.cluster, options, names)
    refusals += unknown
    return MigrationPlan(
        source=source_info.bootstrap_servers,
        target=target_info.bootstrap_servers,
        topics=tuple(planned),
        groups=groups,
        internal=tuple(
            sorted(name for name, each in source_info.topics.items() if each.is_internal)
        ),
        refusals=tuple(refusals),
        warnings=tuple(
            f"group {each.group_id!r} has members in the source: its later commits are not moved"
            for each in groups
            if each.has_members
        ),
    )


def _refused_plan(source: ClusterInfo, target: ClusterInfo, reason: str) -> MigrationPlan:
    return MigrationPlan(
        source=source.bootstrap_servers,
        target=target.bootstrap_servers,
        topics=(),
        groups=(),
        internal=(),
        refusals=(reason,),
        warnings=(),
    )


def partitions_of(topic: Topic, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, Partition(number)) for number in range(count)]


# Clusters


def _check_clusters(
    source: ClusterInfo, target: ClusterInfo, state: MigrationState
) -> Iterable[str]:
    for name, cluster in (("source", source), ("target", target)):
        known = state.find_fact(name)
        if known is not None and known != cluster.cluster_id:
            yield (
                f"the state file belongs to another {name} cluster: it has cluster id {known}, "
                f"{cluster.bootstrap_servers} has {cluster.cluster_id}"
            )


def _check_topics(source: ClusterInfo, options: MigrationOptions) -> Iterable[str]:
    for topic in options.topics:
        found = source.topics.get(topic)
        if found is None:
            yield f"there is no topic {topic!r} in the source"
        elif found.is_internal:
            yield f"topic {topic!r} is internal and cannot be migrated"


def _topic_names(source: ClusterInfo, options: MigrationOptions) -> list[Topic]:
    wanted = options.topics or tuple(source.topics)
    return sorted(
        {each for each in wanted if each in source.topics and not source.topics[each].is_internal}
    )


# Topics


def _choose_step(
    source: TopicInfo,
    target: TopicInfo | None,
    checkpoint: TopicCheckpoint | None,
    differences: list[str],
    *,
    is_into_existing: bool,
) -> TopicStep | str:
    """The step, or the reason why the topic cannot be copied."""
    if checkpoint is not None and checkpoint.target_id != ZERO_UUID:
        if checkpoint.source_id != source.topic_id:
            return f"topic {source.topic!r} of the source is not the one in the state file"
        if target is None:
            return f"topic {source.topic!r} was deleted in the target since the migration started"
        if checkpoint.target_id != target.topic_id:
            return f"topic {source.topic!r} of the target is not the one that was started"
        return TopicStep.CONTINUE
    if target is None:
        return TopicStep.CREATE
    if target.partitions < source.partitions:
        return (
            f"topic {source.topic!r} has {target.partitions} partitions in the target, "
            f"{source.partitions} in the source"
        )
    if differences and not is_into_existing:
        return f"topic {source.topic!r} exists in the target and {' and '.join(differences)}"
    return TopicStep.ADD if differences or checkpoint is None else TopicStep.CREATE


def _differences(
    reader: ClusterReader,
    source: TopicInfo,
    target: TopicInfo | None,
    checkpoint: TopicCheckpoint | None,
    config: Mapping[str, TopicConfigEntry],
) -> list[str]:
    """How the existing target topic differs, unless this migration created it."""
    found: list[str] = []
    if target is None or (checkpoint is not None and checkpoint.target_id != ZERO_UUID):
        return found
    if source.partitions != target.partitions:
        found.append(f"has {target.partitions} partitions, not {source.partitions}")
    partitions = partitions_of(target.topic, target.partitions)
    if reader.starts(partitions) != reader.ends(partitions):
        found.append("is not empty")
    names = config_sync.differences(config, read_topic_config(reader.cluster, target.topic))
    # If an earlier run created the topic and was killed, this run sets its config.
    if names and checkpoint is None:
        found.append(f"has a different {', '.join(names)}")
    return found


def _offsets_left(reader: ClusterReader, state: MigrationState, topic: TopicInfo) -> int:
    partitions = partitions_of(topic.topic, topic.partitions)
    starts, ends = reader.starts(partitions), reader.ends(partitions)
    left = 0
    for each in partitions:
        known = state.find_partition(each)
        position = starts[each] if known is None else max(known.source_next, starts[each])
        left += max(0, ends[each] - position)
    return left


# Groups


def _plan_groups(
    source: Cluster, options: MigrationOptions, topics: Iterable[Topic]
) -> tuple[tuple[GroupPlan, ...], list[str]]:
    if options.is_without_groups:
        return (), []
    listed = {each.group_id: each for each in group_admin.list_groups(source)}
    unknown = [
        f"there is no group {each!r} in the source" for each in options.groups if each not in listed
    ]
    wanted = [each for each in options.groups or tuple(listed) if each in listed]
    committed = offset_admin.list_group_offsets(source, wanted)
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
