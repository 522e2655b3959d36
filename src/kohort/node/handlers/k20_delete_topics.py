"""DeleteTopics: by name or by id. Groups forget what they had committed there."""

from collections import Counter

from kohort.log.catalog_file import KeptTopic
from kohort.log.errors import Refused, StorageError
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.node.topics import check_single
from kohort.types import ZERO_UUID, ErrorCode, Millis, Uuid
from kohort.wire.api.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: DeleteTopicsRequest = request.body
    asked = body.topics
    if request.version < 6:
        asked = tuple(DeleteTopicState(name=name) for name in body.topic_names)
    found = [_find(broker, each) for each in asked]
    counts = Counter(topic.topic_id for topic in found if topic is not None)
    responses = []
    for each, topic in zip(asked, found, strict=True):
        try:
            _check(broker, each, request.version)
            responses.append(_delete(broker, topic or _unknown(each), counts, now))
        except (Refused, StorageError) as error:
            responses.append(_refuse(each, error))
    response = DeleteTopicsResponse(responses=tuple(responses))
    broker.when_durable(lambda: request.answer(response))


def _find(broker: Broker, asked: DeleteTopicState) -> KeptTopic | None:
    if asked.name is None:
        return broker.topics.find_by_id(asked.topic_id)
    return broker.topics.find(asked.name)


def _check(broker: Broker, asked: DeleteTopicState, version: int) -> None:
    if not broker.settings["delete.topic.enable"]:
        code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        raise Refused(code, "delete.topic.enable is false")
    is_by_id = asked.topic_id != ZERO_UUID
    if is_by_id == (asked.name is not None):
        reason = "both a name and an id are given" if is_by_id else "neither name nor id is given"
        raise Refused(ErrorCode.INVALID_REQUEST, reason)


def _delete(
    broker: Broker, topic: KeptTopic | ErrorCode, counts: Counter[Uuid], now: Millis
) -> DeletableTopicResult:
    if isinstance(topic, ErrorCode):
        raise Refused(topic, "")
    check_single(topic.name, counts[topic.topic_id])
    broker.delete_topic(topic.name, topic.topic_id, now)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)


def _unknown(asked: DeleteTopicState) -> ErrorCode:
    by_id = asked.name is None
    return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _refuse(asked: DeleteTopicState, error: Refused | StorageError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=asked.name,
        topic_id=asked.topic_id,
        error_code=error.code,
        error_message=error.reason or None,
    )
