"""Metadata: this broker leads every partition. A request for a topic may create it."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from kohort.log.catalog_file import CatalogTopic
from kohort.log.limits import LEADER_EPOCH
from kohort.node.authorized_operations import CLUSTER_OPERATIONS, NOT_REQUESTED, TOPIC_OPERATIONS
from kohort.node.broker import Broker
from kohort.node.request import (
    ITEMS_PER_SLICE,
    NAMED_PER_SLICE,
    WROTE_FILES,
    Request,
    SlicedPart,
    SlicedWork,
)
from kohort.node.topics import PARTITIONS_MAX, is_internal, unknown_topic_error
from kohort.types import ZERO_UUID, ErrorCode, Millis, Partition, Topic, Uuid
from kohort.wire.api.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_NOTHING_REFUSED: Final[Mapping[Topic, ErrorCode]] = {}


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: MetadataRequest = request.body
    if 10 <= request.version < 12 and any(_is_by_id(each) for each in body.topics or ()):
        # Responses have topic ids since version 10, requests since version 12.
        return (yield from _refuse(body.topics or ()))
    topics = yield from _topics(broker, body, request.version)
    is_asked = body.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=describe_brokers(broker),
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=tuple(topics),
        cluster_authorized_operations=CLUSTER_OPERATIONS if is_asked else NOT_REQUESTED,
    )


def describe_brokers(broker: Broker) -> tuple[MetadataResponseBroker, ...]:
    address = broker.address
    return (MetadataResponseBroker(node_id=broker.node_id, host=address.host, port=address.port),)


_Topics = SlicedPart[list[MetadataResponseTopic]]


def _topics(broker: Broker, body: MetadataRequest, version: int) -> _Topics:
    operations = TOPIC_OPERATIONS if body.include_topic_authorized_operations else NOT_REQUESTED
    requested = body.topics
    if requested is None or (version == 0 and not requested):
        names = [topic.name for topic in broker.topics.all()]
        return (yield from _describe(broker, names, operations))
    by_name: dict[Topic, None] = {}
    by_id: dict[Uuid, None] = {}
    for index, each in enumerate(requested, 1):
        # DEVIATION: Kafka fails on a topic with neither name nor id; here the name is invalid.
        by_name[each.name or Topic("")] = None
        if each.topic_id != ZERO_UUID:
            by_id[each.topic_id] = None
        if not index % NAMED_PER_SLICE:
            yield
    if by_id:
        # As in Kafka, names are ignored if one topic of the request has an id.
        return (yield from _describe_by_id(broker, by_id, operations))
    refused: dict[Topic, ErrorCode] = {}
    if body.allow_auto_topic_creation and broker.settings["auto.create.topics.enable"]:
        refused = yield from _create_missing(broker, by_name)
    return (yield from _describe(broker, by_name, operations, refused))


def _refuse(requested: tuple[MetadataRequestTopic, ...]) -> SlicedPart[MetadataResponse]:
    """The response then contains only the error, not even the brokers."""
    topics = []
    for each in requested:
        topics.append(
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name=each.name or Topic(""),
                topic_id=each.topic_id,
            )
        )
        if not len(topics) % ITEMS_PER_SLICE:
            yield
    return MetadataResponse(topics=tuple(topics))


def _is_by_id(requested: MetadataRequestTopic) -> bool:
    return requested.name is None or requested.topic_id != ZERO_UUID


def _describe_by_id(broker: Broker, ids: Iterable[Uuid], operations: int) -> _Topics:
    described = []
    for index, topic_id in enumerate(ids, 1):
        topic = broker.topics.find_by_id(topic_id)
        described.append(
            _unknown(None, ErrorCode.UNKNOWN_TOPIC_ID, NOT_REQUESTED, topic_id)
            if topic is None
            else _topic(broker, topic, operations)
        )
        if not index % ITEMS_PER_SLICE:
            yield
    return described


def _describe(
    broker: Broker,
    names: Iterable[Topic],
    operations: int,
    refused: Mapping[Topic, ErrorCode] = _NOTHING_REFUSED,
) -> _Topics:
    described = []
    left = ITEMS_PER_SLICE
    for name in names:
        topic = broker.topics.find(name)
        if topic is not None:
            described.append(_topic(broker, topic, operations))
            left -= topic.partition_count
        else:
            error = refused.get(name) or unknown_topic_error(name)
            described.append(_unknown(name, error, operations))
        left -= 1
        if left <= 0:
            yield
            left = ITEMS_PER_SLICE
    return described


def _unknown(
    name: Topic | None, error: ErrorCode, operations: int, topic_id: Uuid = ZERO_UUID
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
        topic_authorized_operations=operations,
    )


def _create_missing(broker: Broker, names: Iterable[Topic]) -> SlicedPart[dict[Topic, ErrorCode]]:
    """Create the topics that do not exist, some in each slice. Return those that were refused."""
    # DEVIATION: Kafka returns UNKNOWN_TOPIC_OR_PARTITION while its controller creates the topic,
    # and forever if the name collides. Here it is created at once, or refused with the reason.
    # Kafka creates nothing if there are more topics than this; here the others remain unknown.
    topics = broker.topics
    missing = (name for name in names if topics.find(name) is None)
    bounded = islice(missing, max(1, PARTITIONS_MAX // broker.settings["num.partitions"]))
    refused: dict[Topic, ErrorCode] = {}
    while some := list(islice(bounded, ITEMS_PER_SLICE)):
        results = yield from topics.create_on_demand(some)
        for name, created in zip(some, results, strict=True):
            if not isinstance(created, CatalogTopic):
                broker.storage_errors.note(created)
                refused[name] = created.code
        yield WROTE_FILES
    return refused


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
