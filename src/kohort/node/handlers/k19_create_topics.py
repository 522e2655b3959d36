"""CreateTopics: each topic is made or refused on its own, and told with the settings it got."""

from collections import Counter

from kohort.log.errors import Refused, StorageError
from kohort.node.broker import Broker
from kohort.node.described import describe_topic
from kohort.node.placement import check_replicas, check_replication
from kohort.node.request import Request
from kohort.node.topics import NewTopic, check_count, check_single
from kohort.types import ErrorCode, Millis, Uuid
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: CreateTopicsRequest = request.body
    counts = Counter(topic.name for topic in body.topics)
    results = []
    for topic in {each.name: each for each in body.topics}.values():
        try:
            check_single(topic.name, counts[topic.name])
            new = _new_topic(broker, topic)
            # Even a topic that is only tried is told an id, which nobody will hear of again.
            topic_id = broker.topics.fresh_id()
            if not body.validate_only:
                topic_id = broker.topics.create(new, now).topic_id
        except (Refused, StorageError) as error:
            results.append(
                CreatableTopicResult(
                    name=topic.name, error_code=error.code, error_message=error.reason or None
                )
            )
        else:
            results.append(_created(broker, new, topic_id))
    request.answer(CreateTopicsResponse(topics=tuple(results)))


def _new_topic(broker: Broker, asked: CreatableTopic) -> NewTopic:
    """Checked in Kafka's order: that a topic exists is said before anything else is criticised."""
    broker.topics.check_name(asked.name)
    missing = [config.name for config in asked.configs if config.value is None]
    if missing:
        reason = f"no value is given for {', '.join(missing)}"
        raise Refused(ErrorCode.INVALID_CONFIG, reason)
    overrides = {config.name: config.value or "" for config in asked.configs}
    broker.topics.check_overrides(overrides)
    if asked.assignments:
        count = _placed_by_hand(broker, asked)
    else:
        check_replication(asked.replication_factor)
        count = asked.num_partitions
        if count == -1:
            count = broker.settings["num.partitions"]
    check_count(count)
    return NewTopic(name=asked.name, partition_count=count, overrides=overrides)


def _placed_by_hand(broker: Broker, asked: CreatableTopic) -> int:
    if asked.replication_factor != -1 or asked.num_partitions != -1:
        reason = "beside an assignment, partitions and replication factor must be -1"
        raise Refused(ErrorCode.INVALID_REQUEST, reason)
    partitions = sorted(each.partition_index for each in asked.assignments)
    if partitions != list(range(len(partitions))):
        reason = f"partitions {partitions} are assigned; they must count up from 0"
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    for each in asked.assignments:
        check_replicas(each.broker_ids, broker.node_id)
    return len(partitions)


def _created(broker: Broker, new: NewTopic, topic_id: Uuid) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=new.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=new.partition_count,
        replication_factor=1,
        configs=tuple(
            CreatableTopicConfigs(
                name=config.name,
                value=config.value,
                read_only=False,
                config_source=config.source,
                is_sensitive=False,
            )
            for config in describe_topic(new.overrides, broker.settings)
        ),
    )
