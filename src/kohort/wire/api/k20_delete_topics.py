"""DeleteTopics, API key 20: deletes topics; groups lose their committed offsets for them.

Version notes:
 0  removed in Kafka 4.0 (KIP-896)
 1  the response has the throttle time (KIP-124)
 2  the broker responds before it throttles (KIP-219)
 3  the error TOPIC_DELETION_DISABLED (KIP-322)
 4  flexible (KIP-482)
 5  an error message; the error THROTTLING_QUOTA_EXCEEDED (KIP-599)
 6  topics by name or by id (KIP-516)
"""

from kohort.types import Millis, Topic, Uuid
from kohort.wire.schema import array, int16, int32, message, part, string, uuid


@part
class DeleteTopicState:
    # Null if the topic is given by id.
    name: Topic | None = string(since=6, nullable_since=6, default=None)
    topic_id: Uuid = uuid(since=6)


@message(api_key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsRequest:
    topics: tuple[DeleteTopicState, ...] = array(DeleteTopicState, since=6)
    topic_names: tuple[Topic, ...] = array("string", until=5, ignorable=True)
    timeout_ms: Millis = int32()


@part
class DeletableTopicResult:
    name: Topic | None = string(nullable_since=6)
    topic_id: Uuid = uuid(since=6, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(since=5, nullable_since=5, default=None, ignorable=True)


@message(api_key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsResponse:
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    responses: tuple[DeletableTopicResult, ...] = array(DeletableTopicResult)
