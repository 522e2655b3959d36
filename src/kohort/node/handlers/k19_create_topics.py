"""CreateTopics: each topic is created or refused on its own; the response has its settings."""

from dataclasses import replace
from itertools import islice

from kohort.log.catalog_file import CatalogTopic
from kohort.log.errors import RequestRejected, StorageError
from kohort.node.broker import Broker
from kohort.node.describe_configs import describe_topic
from kohort.node.request import (
    ITEMS_PER_SLICE,
    WROTE_FILES,
    Request,
    SlicedPart,
    SlicedWork,
    count_in_slices,
)
from kohort.node.topics import (
    PARTITIONS_MAX,
    NewTopic,
    check_named_once,
    check_partition_count,
    check_replicas,
    check_replication_factor,
)
from kohort.types import ErrorCode, Millis, Topic, Uuid
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_Configs = dict[tuple[tuple[str, str], ...], tuple[CreatableTopicConfigs, ...]]
"""The settings for the response, by the overrides of a topic."""


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: CreateTopicsRequest = request.body
    counts = yield from count_in_slices(topic.name for topic in body.topics)
    partition_count = _count_partitions(broker, body)
    results: dict[Topic, CreatableTopicResult] = {}
    described: _Configs = {}
    left = iter({each.name: each for each in body.topics}.values())
    while some := list(islice(left, ITEMS_PER_SLICE)):
        if results:
            yield WROTE_FILES
        accepted: list[NewTopic] = []
        for topic in some:
            try:
                check_named_once(topic.name, counts[topic.name])
                _check_total(partition_count)
                new = _new_topic(broker, topic)
            except RequestRejected as error:
                results[topic.name] = _refused(topic.name, error)
            else:
                accepted.append(new)
                # With validate_only the response has an id too, which is never used.
                results[topic.name] = _created(broker, new, broker.topics.fresh_id(), described)
        if not body.validate_only:
            yield from _create(broker, accepted, results)
    return CreateTopicsResponse(topics=tuple(results.values()))


def _create(
    broker: Broker, accepted: list[NewTopic], results: dict[Topic, CreatableTopicResult]
) -> SlicedPart[None]:
    creation = yield from broker.topics.create_all(accepted)
    for new, created in zip(accepted, creation, strict=True):
        if isinstance(created, CatalogTopic):
            results[new.name] = replace(results[new.name], topic_id=created.topic_id)
        else:
            broker.storage_errors.note(created)
            results[new.name] = _refused(new.name, created)


def _refused(name: Topic, error: RequestRejected | StorageError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.reason or None
    )


def _check_total(partition_count: int) -> None:
    if partition_count > PARTITIONS_MAX:
        reason = "Excessively large number of partitions per request."
        raise RequestRejected(ErrorCode.POLICY_VIOLATION, reason)


def _count_partitions(broker: Broker, body: CreateTopicsRequest) -> int:
    default: int = broker.settings["num.partitions"]
    return sum(
        len(topic.assignments)
        or (default if topic.num_partitions == -1 else max(0, topic.num_partitions))
        for topic in body.topics
    )


def _new_topic(broker: Broker, requested: CreatableTopic) -> NewTopic:
    """Check in Kafka's order: TOPIC_ALREADY_EXISTS comes first."""
    broker.topics.check_name(requested.name)
    missing = [config.name for config in requested.configs if config.value is None]
    if missing:
        reason = f"missing value of {', '.join(missing)}"
        raise RequestRejected(ErrorCode.INVALID_CONFIG, reason)
    overrides = {config.name: config.value or "" for config in requested.configs}
    broker.topics.check_overrides(overrides)
    if requested.assignments:
        count = _manual_assignment(broker, requested)
    else:
        check_replication_factor(requested.replication_factor)
        count = requested.num_partitions
        if count == -1:
            count = broker.settings["num.partitions"]
    check_partition_count(count)
    return NewTopic(name=requested.name, partition_count=count, overrides=overrides)


def _manual_assignment(broker: Broker, requested: CreatableTopic) -> int:
    if requested.replication_factor != -1 or requested.num_partitions != -1:
        reason = "with a manual assignment, num_partitions and replication_factor must be -1"
        raise RequestRejected(ErrorCode.INVALID_REQUEST, reason)
    partitions = sorted(each.partition_index for each in requested.assignments)
    if partitions != list(range(len(partitions))):
        reason = (
            f"the assigned partitions are {partitions}; they must be consecutive and begin at 0"
        )
        raise RequestRejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    for each in requested.assignments:
        check_replicas(each.broker_ids, broker.node_id)
    return len(partitions)


def _created(
    broker: Broker, new: NewTopic, topic_id: Uuid, described: _Configs
) -> CreatableTopicResult:
    overrides = tuple(new.overrides.items())
    configs = described.get(overrides)
    if configs is None:
        configs = described[overrides] = _describe(broker, new)
    return CreatableTopicResult(
        name=new.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=new.partition_count,
        replication_factor=1,
        configs=configs,
    )


def _describe(broker: Broker, new: NewTopic) -> tuple[CreatableTopicConfigs, ...]:
    return tuple(
        CreatableTopicConfigs(
            name=config.name,
            value=config.value,
            read_only=False,
            config_source=config.source,
            is_sensitive=False,
        )
        for config in describe_topic(new.overrides, broker.settings)
    )
