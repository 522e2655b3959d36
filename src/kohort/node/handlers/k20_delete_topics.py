"""DeleteTopics: by name or by id. The committed offsets of the topics are removed."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from kohort.log.catalog_file import CatalogTopic
from kohort.log.errors import RequestRejected, StorageError
from kohort.node.broker import Broker
from kohort.node.request import (
    ITEMS_PER_SLICE,
    NAMED_PER_SLICE,
    WROTE_FILES,
    AfterSync,
    Request,
    SlicedPart,
    SlicedWork,
    count_in_slices,
)
from kohort.node.topics import check_named_once
from kohort.types import ZERO_UUID, ErrorCode, Millis, Topic, Uuid
from kohort.wire.api.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

_Key = tuple[Topic | None, Uuid]
"""The name or the id of a topic in the request."""


_TWICE: Final = RequestRejected(
    ErrorCode.INVALID_REQUEST, "the request has both the name and the id of this topic"
)


def handle(broker: Broker, request: Request, now: Millis) -> SlicedWork:
    body: DeleteTopicsRequest = request.body
    keys: Iterator[_Key] = ((each.name, each.topic_id) for each in body.topics)
    if request.version < 6:
        keys = ((name, ZERO_UUID) for name in body.topic_names)
    requested = yield from count_in_slices(keys)
    by_name, by_id = yield from _find_ids(broker, requested)
    twice = by_name & by_id
    responses: list[DeletableTopicResult] = []
    left = iter(requested.items())
    while some := dict(islice(left, ITEMS_PER_SLICE)):
        if responses:
            now = yield WROTE_FILES
        accepted: dict[int, tuple[CatalogTopic, Topic | None]] = {}
        """The topics to delete with the requested names, by the position of their responses."""
        for (name, topic_id), times in some.items():
            if name is None and times == 1 and topic_id in by_name:
                continue  # `_check` reports the error for the name
            try:
                _check(broker, name, topic_id, request.version)
                check_named_once(name or "the topic id", times)
                # Found again: another request may have deleted it since the last slice.
                topic = _find(broker, name, topic_id)
                if topic is None:
                    raise _missing(name)
                if topic.topic_id in twice:
                    responses.append(_refuse(name, topic.topic_id, _TWICE))
                    continue
                broker.topics.check_deletion(topic.name)
                accepted[len(responses)] = topic, name
                responses.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
            except RequestRejected as error:
                responses.append(_refuse(name, topic_id, error))
        _delete(broker, accepted, responses, now)
    return AfterSync(DeleteTopicsResponse(responses=tuple(responses)))


def _find_ids(broker: Broker, keys: Iterable[_Key]) -> SlicedPart[tuple[set[Uuid], set[Uuid]]]:
    """The ids of the topics that are requested by name, and those in the request."""
    by_name: set[Uuid] = set()
    by_id: set[Uuid] = set()
    for index, (name, topic_id) in enumerate(keys, 1):
        if name is None:
            by_id.add(topic_id)
        elif (topic := broker.topics.find(name)) is not None:
            by_name.add(topic.topic_id)
        if not index % NAMED_PER_SLICE:
            yield
    return by_name, by_id


def _delete(
    broker: Broker,
    accepted: dict[int, tuple[CatalogTopic, Topic | None]],
    responses: list[DeletableTopicResult],
    now: Millis,
) -> None:
    try:
        broker.delete_topics([topic for topic, _ in accepted.values()], now)
    except StorageError as error:
        broker.storage_errors.note(error)
        for position, (topic, name) in accepted.items():
            responses[position] = _refuse(name, topic.topic_id, error)


def _find(broker: Broker, name: Topic | None, topic_id: Uuid) -> CatalogTopic | None:
    return broker.topics.find_by_id(topic_id) if name is None else broker.topics.find(name)


def _check(broker: Broker, name: Topic | None, topic_id: Uuid, version: int) -> None:
    if not broker.settings["delete.topic.enable"]:
        code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        raise RequestRejected(code, "delete.topic.enable is false")
    is_by_id = topic_id != ZERO_UUID
    if is_by_id == (name is not None):
        reason = (
            "the topic has both a name and an id"
            if is_by_id
            else "the topic has neither a name nor an id"
        )
        raise RequestRejected(ErrorCode.INVALID_REQUEST, reason)


def _missing(name: Topic | None) -> RequestRejected:
    if name is None:
        return RequestRejected(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
    return RequestRejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")


def _refuse(
    name: Topic | None, topic_id: Uuid, error: RequestRejected | StorageError
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=error.code,
        error_message=error.reason or None,
    )
