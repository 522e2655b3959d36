"""Metadata: this broker leads every partition. A request for a topic may create it."""

from collections.abc import Iterable, Iterator, Mapping

from kohort.log.catalog_file import CatalogTopic
from kohort.log.limits import LEADER_EPOCH
from kohort.node.authorized_operations import CLUSTER_OPERATIONS, NOT_REQUESTED, TOPIC_OPERATIONS
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.node.topics import is_internal, unknown_topic_error
from kohort.types import ZERO_UUID, ErrorCode, Millis, Partition, Topic
from kohort.wire.api.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def handle(broker: Broker, request: Request, _: Millis) -> MetadataResponse:
    body: MetadataRequest = request.body
    if 10 <= request.version < 12 and any(_is_by_id(each) for each in body.topics or ()):
        # Responses have topic ids since version 10, requests since version 12.
        return _refuse(body.topics or ())
    is_asked = body.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=(
            MetadataResponseBroker(
                node_id=broker.node_id, host=broker.address.host, port=broker.address.port
            ),
        ),
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=tuple(_topics(broker, body, request.version)),
        cluster_authorized_operations=CLUSTER_OPERATIONS if is_asked else NOT_REQUESTED,
    )


def _topics(broker: Broker, body: MetadataRequest, version: int) -> Iterator[MetadataResponseTopic]:
    operations = TOPIC_OPERATIONS if body.include_topic_authorized_operations else NOT_REQUESTED
    requested = body.topics
    if requested is None or (version == 0 and not requested):
        for topic in broker.topics.all():
            yield _topic(broker, topic, operations)
        return
    may_create = body.allow_auto_topic_creation and broker.settings["auto.create.topics.enable"]
    if any(each.topic_id != ZERO_UUID for each in requested):
        # As in Kafka, names are ignored if one topic of the request has an id.
        yield from _topics_by_id(broker, requested, operations)
        return
    # DEVIATION: Kafka fails on a topic with neither name nor id; here the name is invalid.
    names = dict.fromkeys(each.name or Topic("") for each in requested)
    errors = _create_missing(broker, names) if may_create else {}
    for name in names:
        yield _topic_by_name(broker, name, operations, errors)


def _refuse(requested: tuple[MetadataRequestTopic, ...]) -> MetadataResponse:
    """The response then contains only the error, not even the brokers."""
    return MetadataResponse(
        topics=tuple(
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name=each.name or Topic(""),
                topic_id=each.topic_id,
            )
            for each in requested
        )
    )


def _is_by_id(requested: MetadataRequestTopic) -> bool:
    return requested.name is None or requested.topic_id != ZERO_UUID


def _topics_by_id(
    broker: Broker, requested: tuple[MetadataRequestTopic, ...], operations: int
) -> Iterator[MetadataResponseTopic]:
    for topic_id in dict.fromkeys(each.topic_id for each in requested):
        if topic_id == ZERO_UUID:
            continue
        topic = broker.topics.find_by_id(topic_id)
        if topic is None:
            yield MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
            )
        else:
            yield _topic(broker, topic, operations)


def _topic_by_name(
    broker: Broker, name: Topic, operations: int, errors: Mapping[Topic, ErrorCode]
) -> MetadataResponseTopic:
    found = broker.topics.find(name)
    if found is not None:
        return _topic(broker, found, operations)
    return MetadataResponseTopic(
        error_code=errors.get(name) or unknown_topic_error(name),
        name=name,
        is_internal=is_internal(name),
        topic_authorized_operations=operations,
    )


def _create_missing(broker: Broker, names: Iterable[Topic]) -> dict[Topic, ErrorCode]:
    """Create the topics that do not exist; returns the errors."""
    missing = [name for name in names if broker.topics.find(name) is None]
    errors: dict[Topic, ErrorCode] = {}
    # DEVIATION: Kafka returns UNKNOWN_TOPIC_OR_PARTITION while its controller creates the topic,
    # and forever if the name collides. Here it is created at once, or refused with the reason.
    for name, created in zip(missing, broker.topics.create_on_demand(missing), strict=True):
        if not isinstance(created, CatalogTopic):
            broker.storage_errors.note(created)
            errors[name] = created.code
    return errors


def _topic(broker: Broker, topic: CatalogTopic, operations: int) -> MetadataResponseTopic:
    replicas = (broker.node_id,)
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=tuple(
            MetadataResponsePartition(
                error_code=ErrorCode.NONE,
                partition_index=Partition(index),
                leader_id=broker.node_id,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=replicas,
                isr_nodes=replicas,
            )
            for index in range(topic.partition_count)
        ),
        topic_authorized_operations=operations,
    )
