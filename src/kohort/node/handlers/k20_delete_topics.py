"""DeleteTopics: by name or by id. Groups forget what they had committed there."""

from collections import Counter
from typing import Final

from kohort.log.catalog_file import KeptTopic
from kohort.log.errors import Refused, StorageError
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.node.topics import check_single
from kohort.types import ZERO_UUID, ErrorCode, Millis, Topic, Uuid
from kohort.wire.api.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

_Key = tuple[Topic | None, Uuid]
"""How a request names a topic: by its name or by its id, if it names it well."""


_TWICE: Final = Refused(ErrorCode.INVALID_REQUEST, "named by its name and by its id")


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: DeleteTopicsRequest = request.body
    asked: Counter[_Key] = Counter((each.name, each.topic_id) for each in body.topics)
    if request.version < 6:
        asked = Counter((name, ZERO_UUID) for name in body.topic_names)
    found = {key: _find(broker, *key) for key in asked}
    by_name = {topic.topic_id for (name, _), topic in found.items() if name is not None and topic}
    by_id = {topic_id for name, topic_id in asked if name is None}
    responses = []
    for (name, topic_id), times in asked.items():
        topic = found[name, topic_id]
        if name is None and times == 1 and topic_id in by_name:
            continue  # what is wrong with that is said of the name
        try:
            _check(broker, name, topic_id, request.version)
            check_single(name or "a topic's id", times)
            if topic is None:
                raise _missing(name)
            if topic.topic_id in by_name & by_id:
                responses.append(_refuse(name, topic.topic_id, _TWICE))
                continue
            broker.delete_topic(topic.name, topic.topic_id, now)
            responses.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
        except (Refused, StorageError) as error:
            responses.append(_refuse(name, topic_id, error))
    response = DeleteTopicsResponse(responses=tuple(responses))
    broker.when_durable(lambda: request.answer(response))


def _find(broker: Broker, name: Topic | None, topic_id: Uuid) -> KeptTopic | None:
    return broker.topics.find_by_id(topic_id) if name is None else broker.topics.find(name)


def _check(broker: Broker, name: Topic | None, topic_id: Uuid, version: int) -> None:
    if not broker.settings["delete.topic.enable"]:
        code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        raise Refused(code, "delete.topic.enable is false")
    is_by_id = topic_id != ZERO_UUID
    if is_by_id == (name is not None):
        reason = "both a name and an id are given" if is_by_id else "neither name nor id is given"
        raise Refused(ErrorCode.INVALID_REQUEST, reason)


def _missing(name: Topic | None) -> Refused:
    if name is None:
        return Refused(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")


def _refuse(
    name: Topic | None, topic_id: Uuid, error: Refused | StorageError
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=error.code,
        error_message=error.reason or None,
    )
